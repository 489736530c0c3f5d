"""Running column means and standard deviations, and the scale they suggest.

``moments`` is an array of shape (3, D): for each column the weight seen so
far, the mean and the variance. Missing entries are passed over.
"""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import LARGEST, compiled, inlined

# A spread this small relative to a column's mean is rounding, not variation.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


@inlined
def absorb(moments: Array, points: Array, t: int, weight: float) -> None:
    """Add row ``t`` to the moments, by the same recursion as a component's."""
    before, after, share, kept = -1.0, 0.0, 0.0, 0.0
    for i in range(points.shape[1]):
        value = points[t, i]
        if not math.isnan(value):
            if moments[0, i] != before:  # else as in the column before: no division
                before = moments[0, i]
                after = before + weight
                share = weight / after
                kept = before / after
            deviation = value - moments[1, i]
            moments[0, i] = after
            moments[1, i] += share * deviation
            moments[2, i] = kept * moments[2, i] + share * kept * deviation * deviation


@compiled
def absorb_all(moments: Array, points: Array, weights: Array) -> None:
    """Add rows of shape (N, D) with weights of shape (N,)."""
    for t in range(points.shape[0]):
        if weights[t] > 0.0:
            absorb(moments, points, t, weights[t])


@compiled
def scale_of(moments: Array, out: Array) -> None:
    """Write a positive scale for each column: its standard deviation, if it has one.

    A column that has not varied takes the geometric mean of the scales of
    those that have. If none has, the magnitudes of the means stand in, and
    failing these, one.
    """
    n_features = out.shape[0]
    varied = False
    for i in range(n_features):
        deviation = math.sqrt(moments[2, i])
        out[i] = deviation if deviation > _ROUNDING * abs(moments[1, i]) else 0.0
        varied |= out[i] > 0.0
    if not varied:
        for i in range(n_features):
            out[i] = abs(moments[1, i])
    total = 0.0
    count = 0
    for i in range(n_features):
        if out[i] > 0.0:
            total += math.log(out[i])
            count += 1
    typical = math.exp(total / count) if count > 0 else 1.0
    for i in range(n_features):
        value = out[i] if out[i] > 0.0 else typical
        out[i] = min(max(value, 1.0 / LARGEST), LARGEST)
