"""Files of a trained model: a side's share, its scores, earlier models; and the whole model."""
