from taciturn.jobs.train.command import leave_model_page as leave_model_page
from taciturn.jobs.train.evaluation import FinishedTraining as FinishedTraining
from taciturn.jobs.train.job import DryRunJob as DryRunJob
from taciturn.jobs.train.job import TrainJob as TrainJob
from taciturn.jobs.train.job import TrainSide as TrainSide
from taciturn.jobs.train.job import training_job as training_job
from taciturn.jobs.train.side import TrainingSide as TrainingSide
