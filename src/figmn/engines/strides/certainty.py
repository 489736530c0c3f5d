r"""Which rows are certain: they belong to one component, and change no other.

A component of mass ``n``, mean ``m`` and covariance ``S`` that learns rows of
weight ``W`` with deviations ``e`` from ``m`` obeys, after any number of them,

.. math::

    \frac{n}{n + W} S \preceq S' \preceq \Bigl(1 + \frac{\lambda}{n}\Bigr) S, \qquad
    \|m' - m\|_S \le \frac{\sqrt{W \lambda}}{n}, \qquad
    \lambda = \lambda_{\max} \Bigl(S^{-1} \sum w e e^\top\Bigr)

which bounds the distances and log joint densities of rows that are still to come
from both sides. A row is certain if it is sure to lie within the novelty
threshold of its component and to leave next to nothing for others.

What components gain from rows uncertain that were not guessed to be theirs is not
among those rows. It has an allowance, in ``W`` and in the trace of the sum.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import LOG_LOST, SURELY, inlined

if TYPE_CHECKING:
    from figmn.engines.rowwise.dense_state import DenseState
    from figmn.engines.rowwise.row_kernel import Scratch
    from figmn.engines.strides.stride_kernel import StridePlan

FARTHEST: Final = 64.0
"""Squared distance up to which rows can be judged, relative to what is usual."""

MOST_COMPONENTS: Final = 62
"""That can gain from a row, as bits of a number."""

N_BOUNDS: Final = 9
"""Columns of the bounds: mass and variances relative to what they were, the mean in
standard deviations, the log prior density, as others' rows and as its own see it, and
the squared distance within which a row is sure not to be novel. With them the squared
distance of the farthest row, and what is left of the allowances."""
GROWTH, _SPREAD, _SHIFT, _MOST, _LEAST, LIMIT, RADIUS, _WEIGHT_LEFT, _SCATTER_LEFT = range(
    N_BOUNDS
)

_LOG_LEAST = 28.0  # exp(-28) of a row may be missing from its component
_LARGE = 1e280  # smaller numbers are safe to multiply with a few others
# Allowances, by what a component's own rows change; they fall until they end a stride.
_LEAST_ALLOWANCE, _MOST_ALLOWANCE, _LESS_ALLOWED, _MORE_ALLOWED = 0.1, 4.0, 0.9, 2.0
_LEAST_ALLOWED = 0.005  # by its mass


@inlined
def bound(
    k: int,
    threshold: float,
    heaviest: float,
    masses: Array,
    log_dets: Array,
    allowances: Array,
    scatters: Array,
    bounds: Array,
) -> None:
    """Bound what a component's rows, none heavier than ``heaviest``, can change in it.

    Growth and radius are those by its own rows.
    """
    _, n_features, _ = scatters.shape
    weight, mean, squares = bounds[k, GROWTH] - 1.0, 0.0, 0.0
    for r in range(n_features):
        mean += scatters[k, r, r] / n_features
    for r in range(n_features):
        for j in range(r):
            squares += 2.0 * scatters[k, r, j] * scatters[k, r, j]
        squares += (scatters[k, r, r] - mean) * (scatters[k, r, r] - mean)
    # No eigenvalue is further from their mean than all of them together.
    largest = mean + math.sqrt(squares)
    allowance = allowances[k]
    bounds[k, _WEIGHT_LEFT] = max(allowance * weight, _LEAST_ALLOWED)
    bounds[k, _SCATTER_LEFT] = max(allowance * largest, _LEAST_ALLOWED)
    allowances[k] = max(_LESS_ALLOWED * allowance, _LEAST_ALLOWANCE)
    weight += bounds[k, _WEIGHT_LEFT]
    largest += bounds[k, _SCATTER_LEFT]
    mean += bounds[k, _SCATTER_LEFT] / n_features
    bounds[k, GROWTH] = 1.0 + weight
    bounds[k, _SPREAD] = 1.0 + largest
    bounds[k, _SHIFT] = math.sqrt(weight * largest)
    log_mass = math.log(masses[k])
    log_prior = log_mass - 0.5 * log_dets[k]
    # What is lost when added to its mass, whatever the row's weight; what is left for
    # another component is then the whole row, but for exp(-_LOG_LEAST).
    lost = max(LOG_LOST + math.log(heaviest) - log_mass, _LOG_LEAST)
    bounds[k, _MOST] = log_prior + (1.0 + 0.5 * n_features) * math.log1p(weight) + lost
    bounds[k, _LEAST] = log_prior - 0.5 * n_features * math.log1p(mean)
    root = math.sqrt(threshold / bounds[k, GROWTH]) - bounds[k, _SHIFT]
    bounds[k, LIMIT] = SURELY * root * root if root > 0.0 else 0.0


@inlined
def allow(k: int, gained: float, distance: float, masses: Array, plan: StridePlan) -> bool:
    """Take what a component gains from a row from its allowance; False if it is used up."""
    bounds = plan.bounds
    if gained == 0.0:  # be it from as far as it may
        return True
    share = gained / masses[k] * bounds[k, GROWTH]
    reached = math.sqrt(bounds[k, _SPREAD] * distance) + bounds[k, _SHIFT]
    bounds[k, _WEIGHT_LEFT] -= share
    bounds[k, _SCATTER_LEFT] -= share * reached * reached
    allowed = bool(bounds[k, _WEIGHT_LEFT] >= 0.0 and bounds[k, _SCATTER_LEFT] >= 0.0)
    if not allowed:
        plan.allowances[k] = min(_MORE_ALLOWED * plan.allowances[k], _MOST_ALLOWANCE)
    return allowed


@inlined
def find_shared(points: Array, state: DenseState, scratch: Scratch, plan: StridePlan) -> None:
    """Note which rows more components than one may gain from."""
    means, whiteners, variances = state.means, state.whiteners, state.variances
    bounds, distances = plan.bounds, plan.distances
    _, n_features = means.shape
    for j in range(state.size[0]):
        wide, shift = math.sqrt(bounds[j, GROWTH]), bounds[j, _SHIFT]
        for k in range(state.size[0]):
            needed = max(2.0 * (bounds[k, _MOST] - bounds[j, _LEAST]), 0.0)
            reach = np.inf if j == k else _reach(j, k, needed, state, scratch, bounds)
            if bounds[j, RADIUS] <= reach:
                continue
            for c in range(plan.first[j], plan.last[j]):
                if reach < distances[c] < np.inf:
                    farthest = wide * (math.sqrt(distances[c]) + shift)
                    limit = math.sqrt((needed + farthest * farthest) * bounds[k, _SPREAD])
                    limit += bounds[k, _SHIFT]
                    limit *= limit / SURELY
                    t, distance, r = plan.numbers[c], 0.0, 0
                    while r < n_features and not distance > limit:
                        scratch.vector[r] = points[t, r] - means[k, r]
                        total = scratch.vector[r]
                        for i in range(r):
                            total += whiteners[k, r, i] * scratch.vector[i]
                        distance += total * total / variances[k, r]
                        r += 1
                    if not distance > limit:
                        plan.sharers[c] |= 1 << k
                        plan.n_uncertain[k] += 1


@inlined
def _reach(
    j: int, k: int, needed: float, state: DenseState, scratch: Scratch, bounds: Array
) -> float:
    r"""Squared distance from ``j`` within which ``k`` gains nothing, or -1.

    With :math:`u = S_k^{-1} (m_j - m_k)` and :math:`\Delta^2 = u^\top (m_j - m_k)`,
    a point at a distance of ``y`` from ``j`` is at least
    :math:`\Delta - y \sqrt{u^\top S_j u} / \Delta` from ``k``.
    """
    means, whiteners, variances = state.means, state.whiteners, state.variances
    n_features, apart, across = len(scratch.vector), scratch.vector, scratch.residuals
    between, width = 0.0, 0.0
    for r in range(n_features):
        apart[r] = means[j, r] - means[k, r]
        across[k, r] = 0.0
        total = apart[r]
        for i in range(r):
            total += whiteners[k, r, i] * apart[i]
        scaled = total / variances[k, r]
        between += total * scaled
        for i in range(r + 1):
            across[k, i] += whiteners[k, r, i] * scaled
    for r in range(n_features - 1, -1, -1):
        value = across[k, r]
        width += variances[j, r] * value * value
        for i in range(r):
            across[k, i] -= whiteners[j, r, i] * value
    # The least y where (clear - slope y)^2 = needed + y^2, y being the largest distance;
    # nothing is within reach at first, not even a distance of zero.
    reach = -1.0
    if 0.0 < between < _LARGE and width < _LARGE:
        narrow, wide = 1.0 / math.sqrt(bounds[k, _SPREAD]), math.sqrt(bounds[j, GROWTH])
        slope = narrow * math.sqrt(width / between)
        clear = narrow * (math.sqrt(between) - bounds[k, _SHIFT]) + slope * bounds[j, _SHIFT]
        slope /= wide
        if clear > 0.0 and clear * clear > needed:
            root = math.sqrt(clear * clear + (slope * slope - 1.0) * needed)
            y = (clear * clear - needed) / (clear * slope + root) / wide - bounds[j, _SHIFT]
            reach = SURELY * y * y if y > 0.0 else -1.0
    return reach
