"""One pass over input to tell whether it can be learnt."""

from __future__ import annotations

import math

from figmn._typing import Array
from figmn.kernels.compiler import LARGEST, compiled


@compiled
def first_out_of_range(values: Array) -> int:
    """Position of the first value that is neither NaN nor within range, or -1."""
    for i in range(len(values)):
        if not (abs(values[i]) <= LARGEST or math.isnan(values[i])):
            return i
    return -1
