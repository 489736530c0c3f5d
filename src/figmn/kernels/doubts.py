r"""Which rows are beyond doubt: they belong to one component, and change no other.

A component of mass ``n``, mean ``m`` and covariance ``S`` that learns rows of
weight ``W`` with deviations ``e`` from ``m`` obeys, after any number of them,

.. math::

    \frac{n}{n + W} S \preceq S' \preceq \Bigl(1 + \frac{\lambda}{n}\Bigr) S, \qquad
    \|m' - m\|_S \le \frac{\sqrt{W \lambda}}{n}, \qquad
    \lambda = \lambda_{\max} \Bigl(S^{-1} \sum w e e^\top\Bigr)

which bounds the distances and log joint densities of rows that are still to come
from both sides. A row is beyond doubt if it is sure to lie within the novelty
threshold of its component and to leave next to nothing for others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import LOG_LOST, SURELY, internal

if TYPE_CHECKING:
    from figmn.kernels.learning import State
    from figmn.kernels.strides import Rows

FARTHEST: Final = 64.0
"""Squared distance up to which rows can be judged, relative to what is usual."""

N_BOUNDS: Final = 7
"""Columns of the bounds: mass and variances relative to what they were, the mean in
standard deviations, the log prior density, as others' rows and as its own see it, and
the squared distance within which a row is sure not to be novel. With them the squared
distance of the farthest row."""
_GROWTH, _SPREAD, _SHIFT, _MOST, _LEAST, LIMIT, _RADIUS = range(N_BOUNDS)

_LOG_LEAST = 28.0  # exp(-28) of a row may be missing from its component
_LARGE = 1e280  # smaller numbers are safe to multiply with a few others


@internal
def bound(
    k: int, threshold: float, heaviest: float, state: State, rows: Rows, bounds: Array
) -> None:
    """Bound what a component's rows, none heavier than ``heaviest``, can change in it."""
    shares, distances, scatters = rows.shares, rows.distances, rows.scatters
    n_features = scatters.shape[1]
    weight, farthest, mean, squares = 0.0, 0.0, 0.0, 0.0
    for c in range(rows.first[k], rows.last[k]):
        weight += shares[c]
        farthest = max(farthest, distances[c])
    for r in range(n_features):
        mean += scatters[k, r, r] / n_features
    for r in range(n_features):
        for j in range(r):
            squares += 2.0 * scatters[k, r, j] * scatters[k, r, j]
        squares += (scatters[k, r, r] - mean) * (scatters[k, r, r] - mean)
    # No eigenvalue is further from their mean than all of them together.
    largest = mean + math.sqrt(squares)
    bounds[k, _GROWTH] = 1.0 + weight
    bounds[k, _SPREAD] = 1.0 + largest
    bounds[k, _SHIFT] = math.sqrt(weight * largest)
    log_mass = math.log(state.masses[k])
    log_prior = log_mass - 0.5 * state.log_dets[k]
    # What is lost when added to its mass, whatever the row's weight; what is left for
    # another component is then the whole row, but for exp(-_LOG_LEAST).
    lost = max(LOG_LOST + math.log(heaviest) - log_mass, _LOG_LEAST)
    bounds[k, _MOST] = log_prior + (1.0 + 0.5 * n_features) * math.log1p(weight) + lost
    bounds[k, _LEAST] = log_prior - 0.5 * n_features * math.log1p(mean)
    root = math.sqrt(threshold / bounds[k, _GROWTH]) - bounds[k, _SHIFT]
    bounds[k, LIMIT] = SURELY * root * root if root > 0.0 else 0.0
    bounds[k, _RADIUS] = farthest


@internal
def doubt_shared(
    j: int,
    k: int,
    points: Array,
    state: State,
    rows: Rows,
    bounds: Array,
    scratch: Array,
) -> None:
    """Doubt the rows of component ``j`` that component ``k`` may have a say in."""
    means, whiteners, variances = state.means, state.whiteners, state.variances
    needed = max(2.0 * (bounds[k, _MOST] - bounds[j, _LEAST]), 0.0)
    reach = _reach(j, k, needed, means, whiteners, variances, bounds, scratch)
    if bounds[j, _RADIUS] <= reach:
        return
    wide, shift, distances = math.sqrt(bounds[j, _GROWTH]), bounds[j, _SHIFT], rows.distances
    for c in range(rows.first[j], rows.last[j]):
        if reach < distances[c] < np.inf:
            farthest = wide * (math.sqrt(distances[c]) + shift)
            limit = math.sqrt((needed + farthest * farthest) * bounds[k, _SPREAD])
            limit += bounds[k, _SHIFT]
            limit *= limit / SURELY
            t, distance, r = rows.numbers[c], 0.0, 0
            while r < means.shape[1] and not distance > limit:
                scratch[0, r] = points[t, r] - means[k, r]
                total = scratch[0, r]
                for i in range(r):
                    total += whiteners[k, r, i] * scratch[0, i]
                distance += total * total / variances[k, r]
                r += 1
            if not distance > limit:
                distances[c] = np.inf


@internal
def _reach(
    j: int,
    k: int,
    needed: float,
    means: Array,
    whiteners: Array,
    variances: Array,
    bounds: Array,
    scratch: Array,
) -> float:
    r"""Squared distance from ``j`` within which ``k`` has no say, or -1.

    With :math:`u = S_k^{-1} (m_j - m_k)` and :math:`\Delta^2 = u^\top (m_j - m_k)`,
    a point at a distance of ``y`` from ``j`` is at least
    :math:`\Delta - y \sqrt{u^\top S_j u} / \Delta` from ``k``.
    """
    n_features = means.shape[1]
    between, width = 0.0, 0.0
    for r in range(n_features):
        scratch[0, r] = means[j, r] - means[k, r]
        scratch[1, r] = 0.0
        total = scratch[0, r]
        for i in range(r):
            total += whiteners[k, r, i] * scratch[0, i]
        scaled = total / variances[k, r]
        between += total * scaled
        for i in range(r + 1):
            scratch[1, i] += whiteners[k, r, i] * scaled
    for r in range(n_features - 1, -1, -1):
        value = scratch[1, r]
        width += variances[j, r] * value * value
        for i in range(r):
            scratch[1, i] -= whiteners[j, r, i] * value
    # The least y where (clear - slope y)^2 = needed + y^2, y being the largest distance;
    # nothing is within reach at first, not even a distance of zero.
    reach = -1.0
    if 0.0 < between < _LARGE and width < _LARGE:
        narrow, wide = 1.0 / math.sqrt(bounds[k, _SPREAD]), math.sqrt(bounds[j, _GROWTH])
        slope = narrow * math.sqrt(width / between)
        clear = narrow * (math.sqrt(between) - bounds[k, _SHIFT]) + slope * bounds[j, _SHIFT]
        slope /= wide
        if clear > 0.0 and clear * clear > needed:
            root = math.sqrt(clear * clear + (slope * slope - 1.0) * needed)
            y = (clear * clear - needed) / (clear * slope + root) / wide - bounds[j, _SHIFT]
            reach = SURELY * y * y if y > 0.0 else -1.0
    return reach
