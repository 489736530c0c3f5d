"""Running column means and standard deviations.

``moments`` is an array of shape (3, D): for each column the weight seen so
far, the mean and the variance. Missing entries are passed over.
"""

from __future__ import annotations

import math

from figmn._typing import Array
from figmn.kernels.compiler import compiled, inlined


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
