from taciturn.jobs.predict.job import Answer as Answer
from taciturn.jobs.predict.job import PredictionSide as PredictionSide
from taciturn.jobs.predict.job import PredictJob as PredictJob
from taciturn.jobs.predict.result import PredictionResult as PredictionResult
