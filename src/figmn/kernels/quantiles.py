"""Quantiles of mixtures of one variable, by Newton steps that cannot leave their bracket."""

from __future__ import annotations

import math
from typing import Final

from figmn._typing import Array
from figmn.kernels.compiler import uncounted

_MOST_STEPS: Final = 120  # more than all halvings that a number has digits for
_TOLERANCE: Final = 1e-12  # of the narrowest component's deviation
_ROOT_HALF: Final = math.sqrt(0.5)
_PEAK: Final = 1.0 / math.sqrt(2.0 * math.pi)


@uncounted
def solve_quantiles(
    weights: Array, means: Array, deviations: Array, asked: Array, standard: Array, out: Array
) -> None:
    r"""Solve :math:`\sum_j p_j \Phi((y - m_j) / s_j) = q` for every row and variable.

    Parameters
    ----------
    weights : array of shape (N, K)
        The :math:`p_j`: those of a row sum to one.
    means, deviations : arrays of shape (N, K, M)
        Deviations may be those of all rows, of shape (1, K, M).
    asked, standard : arrays of shape (N, M)
        The :math:`q`, and the standard normal distribution's quantiles for them.
    out : array of shape (N, M)
        Written.
    """
    n_rows, count, n_wanted = means.shape
    for n in range(n_rows):
        d = n if len(deviations) > 1 else 0
        for m in range(n_wanted):
            # Between the lowest and the highest of the components' own quantiles.
            low, high, y, narrowest = math.inf, -math.inf, 0.0, math.inf
            for k in range(count):
                if weights[n, k] > 0.0:
                    own = means[n, k, m] + standard[n, m] * deviations[d, k, m]
                    low, high = min(low, own), max(high, own)
                    y += weights[n, k] * own
                    narrowest = min(narrowest, deviations[d, k, m])
            step = before = high - low
            for _ in range(_MOST_STEPS):
                if not abs(step) > _TOLERANCE * narrowest:
                    break
                if not low < y < high:
                    step = 0.5 * (high - low)
                    y = low + step
                if not low < y < high:  # two neighbouring numbers
                    break
                excess, density = -asked[n, m], 0.0
                for k in range(count):
                    if weights[n, k] > 0.0:
                        z = (y - means[n, k, m]) / deviations[d, k, m]
                        excess += 0.5 * weights[n, k] * math.erfc(-_ROOT_HALF * z)
                        part = weights[n, k] * _PEAK / deviations[d, k, m]
                        density += part * math.exp(-0.5 * z * z)
                if excess < 0.0:
                    low = y
                else:
                    high = y
                # A step that is not half as long as the last but one is halving's turn.
                halving = not 2.0 * abs(excess) < abs(before) * density
                before, step = step, 0.5 * (high - low)
                if halving:
                    y = low + step
                else:
                    step = excess / density
                    y -= step
            out[n, m] = y
