from taciturn.jobs.predict.job import PredictJob as PredictJob
from taciturn.jobs.predict.result import PredictionResult as PredictionResult
from taciturn.jobs.predict.side import Answer as Answer
from taciturn.jobs.predict.side import PredictionSide as PredictionSide
