from taciturn.jobs.study.job import StudyJob as StudyJob
from taciturn.jobs.study.job import StudySide as StudySide
from taciturn.jobs.study.use import studied_model as studied_model
from taciturn.jobs.study.use import use_model as use_model
