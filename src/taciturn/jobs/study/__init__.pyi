from taciturn.jobs.study.job import StudyJob as StudyJob
from taciturn.jobs.study.job import StudySide as StudySide
