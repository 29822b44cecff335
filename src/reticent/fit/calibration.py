"""Calibration error: the distance between confidence and accuracy."""

from typing import Any

import numpy as np

CALIBRATION_BINS = 10


def calibration_error(confidence: Any, right: Any) -> float:
    """Mean distance between confidence and how often it is right, over bins of confidence, weighted by their size."""
    confidence, right = np.ravel(confidence), np.ravel(right)
    bins = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    count = np.bincount(bins, minlength=CALIBRATION_BINS)
    apart = np.bincount(bins, right - confidence, minlength=CALIBRATION_BINS)
    return float(np.abs(apart).sum() / count.sum())
