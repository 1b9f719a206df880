"""Training: splits, search, calibration, evaluation."""
