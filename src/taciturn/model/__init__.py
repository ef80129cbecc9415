"""A trained model for other programs: two shares put together, ONNX, scikit-learn."""

from taciturn.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
