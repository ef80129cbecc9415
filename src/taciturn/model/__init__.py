"""A trained model for other programs: two shares put together, ONNX, scikit-learn."""
