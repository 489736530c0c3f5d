"""Running column means and standard deviations.

``moments`` is an array of shape (3, D): for each column the weight seen so
far, the mean and the variance. Missing entries are passed over.
"""

from __future__ import annotations

import math

from figmn._typing import Array
from figmn.kernels.compiler import uncounted


@uncounted
def absorb(moments: Array, points: Array, weights: Array, start: int, stop: int) -> None:
    """Add the rows from ``start`` to before ``stop``, by the same recursion as a component's.

    Those whose weight is zero are passed over.
    """
    _, n_features = points.shape
    for t in range(start, stop):
        if weights[t] == 0.0:
            continue
        before, after, share, kept = -1.0, 0.0, 0.0, 0.0
        for i in range(n_features):
            value = points[t, i]
            if math.isnan(value):
                continue
            if moments[0, i] != before:  # else as in the column before: no division
                before = moments[0, i]
                after = before + weights[t]
                share = weights[t] / after
                kept = before / after
            deviation = value - moments[1, i]
            moments[0, i] = after
            moments[1, i] += share * deviation
            moments[2, i] = kept * moments[2, i] + share * kept * deviation * deviation
