"""The scale of columns, from data."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import LARGEST
from figmn.kernels.moments import absorb

# A spread this small relative to a column's mean is rounding, not variation.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


def moments_of(rows: Array, weights: Array) -> Array:
    """Weight, mean and variance of each column, of shape (3, D); NaN is passed over."""
    moments = np.zeros((3, rows.shape[1]))
    absorb(moments, rows, weights, 0, len(rows))
    return moments


def suggested_scale(moments: Array) -> Array:
    """A positive scale for each column, of shape (D,), whatever the data.

    It is the standard deviation, if there is one. A column that has not varied
    takes the geometric mean of the scales of those that have. If none has, the
    magnitudes of the means stand in, and failing these, one.
    """
    magnitudes = np.abs(moments[1])
    scale: Array = np.sqrt(moments[2])
    scale[scale <= _ROUNDING * magnitudes] = 0.0
    if not scale.any():
        scale = magnitudes
    varied = scale > 0.0
    if not varied.all():
        logarithms = [math.log(value) for value in scale[varied]]
        typical = math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0
        scale = np.where(varied, scale, typical)
    scale = np.clip(scale, 1.0 / LARGEST, LARGEST)
    return scale
