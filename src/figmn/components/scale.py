"""The scale of columns, from data."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.kernels.moments import absorb_all, scale_of


def moments_of(rows: Array, weights: Array) -> Array:
    """Weight, mean and variance of each column, of shape (3, D); NaN is passed over."""
    moments = np.zeros((3, rows.shape[1]))
    absorb_all(moments, rows, weights)
    return moments


def suggested_scale(moments: Array) -> Array:
    """A positive scale for each column, of shape (D,), whatever the data."""
    scale = np.empty(moments.shape[1])
    scale_of(moments, scale)
    return scale
