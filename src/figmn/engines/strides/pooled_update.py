"""One component learns many rows by one update of its matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import Array
from figmn.engines.strides.certainty import RADIUS
from figmn.kernels.compiler import compensated, inlined, internal
from figmn.kernels.factor import log_determinant

if TYPE_CHECKING:
    from figmn.engines.rowwise.dense_state import DenseState
    from figmn.engines.rowwise.row_kernel import Scratch
    from figmn.engines.strides.stride_kernel import StridePlan

STRIP: Final = 64
"""Rows that are measured side by side."""

# Sums over a component's rows: of deviations, of their squares, and of whitened ones.
_DEVIATION, _SQUARE, _WHITE = range(3)


@internal
def accumulate(
    k: int,
    begin: int,
    end: int,
    limit: float,
    points: Array,
    weights: Array,
    state: DenseState,
    plan: StridePlan,
) -> None:
    """Measure a component's rows from the ``begin``-th on, and sum over the near ones.

    Rows that are not within ``limit`` get an infinite distance. Where one cannot be
    measured at all, the component's rows end.

    Rows lie side by side, and where there are none, zeros. In ``strip`` are deviations,
    what is left of them after whitening, distances, and roots of shares.
    """
    _, n_features = points.shape
    strip = plan.strip
    distance, root, farthest = 2 * n_features, 2 * n_features + 1, 0.0
    for r in range(n_features):
        for i in range(3):
            plan.sums[k, i, r] = 0.0
        for i in range(r + 1):
            plan.scatters[k, r, i] = 0.0
    while begin < end:
        width = min(STRIP, end - begin)
        for c in range(width):
            for i in range(n_features):
                strip[i, c] = points[plan.numbers[begin + c], i] - state.means[k, i]
        _whiten(k, state.whiteners, state.variances, strip)
        for c in range(STRIP):
            if c < width and not strip[distance, c] < np.inf:
                width, end = c, begin + c
                plan.last[k] = end
            if c < width:
                near = strip[distance, c] < limit
                plan.distances[begin + c] = strip[distance, c] if near else np.inf
                if near:
                    farthest = max(farthest, strip[distance, c])
                strip[root, c] = math.sqrt(weights[plan.numbers[begin + c]] / state.masses[k])
            if c >= width or not strip[distance, c] < limit:
                for i in range(2 * n_features + 2):
                    strip[i, c] = 0.0
        _add_up(k, strip, plan.sums, plan.scatters)
        begin += STRIP
    plan.bounds[k, RADIUS] = farthest


@inlined
def _whiten(k: int, whiteners: Array, variances: Array, strip: Array) -> None:
    """Whiten deviations, and measure them."""
    _, n_features = variances.shape
    distance = 2 * n_features
    for c in range(STRIP):
        strip[distance, c] = 0.0
    for r in range(n_features):
        narrow, white = 1.0 / math.sqrt(variances[k, r]), n_features + r
        for c in range(STRIP):
            strip[white, c] = 0.0
        j = 0
        while j + 4 <= r + 1:  # four at a time, for fewer passes through memory
            w, x = narrow * whiteners[k, r, j], narrow * whiteners[k, r, j + 1]
            y, z = narrow * whiteners[k, r, j + 2], narrow * whiteners[k, r, j + 3]
            for c in range(STRIP):
                strip[white, c] += (w * strip[j, c] + x * strip[j + 1, c]) + (
                    y * strip[j + 2, c] + z * strip[j + 3, c]
                )
            j += 4
        while j <= r:
            w = narrow * whiteners[k, r, j]
            for c in range(STRIP):
                strip[white, c] += w * strip[j, c]
            j += 1
        for c in range(STRIP):
            strip[distance, c] += strip[white, c] * strip[white, c]


@inlined
def _add_up(k: int, strip: Array, sums: Array, scatters: Array) -> None:
    """Add the rows of a strip to the sums, by the roots of their shares."""
    _, _, n_features = sums.shape
    root = 2 * n_features + 1
    for r in range(n_features):
        total, square, white = 0.0, 0.0, 0.0
        for c in range(STRIP):
            share = strip[root, c] * strip[root, c]
            total += share * strip[r, c]
            square += share * strip[r, c] * strip[r, c]
            strip[n_features + r, c] *= strip[root, c]
            white += strip[root, c] * strip[n_features + r, c]
        sums[k, _DEVIATION, r] += total
        sums[k, _SQUARE, r] += square
        sums[k, _WHITE, r] += white
        j = 0
        while j + 4 <= r + 1:
            w, x, y, z = 0.0, 0.0, 0.0, 0.0
            for c in range(STRIP):
                value = strip[n_features + r, c]
                w += value * strip[n_features + j, c]
                x += value * strip[n_features + j + 1, c]
                y += value * strip[n_features + j + 2, c]
                z += value * strip[n_features + j + 3, c]
            scatters[k, r, j] += w
            scatters[k, r, j + 1] += x
            scatters[k, r, j + 2] += y
            scatters[k, r, j + 3] += z
            j += 4
        while j <= r:
            w = 0.0
            for c in range(STRIP):
                w += strip[n_features + r, c] * strip[n_features + j, c]
            scatters[k, r, j] += w
            j += 1


@inlined
def update_pooled(
    k: int,
    begin: int,
    end: int,
    points: Array,
    weights: Array,
    state: DenseState,
    scratch: Scratch,
    plan: StridePlan,
) -> None:
    """Let a component learn its rows from the ``begin``-th to before the ``end``-th.

    The covariance they leave, in units in which it was the identity, takes the place of
    the scatter row by row, and is decomposed on the way: ``L P L'``, the pivots ``P`` on
    the diagonal.
    """
    if plan.untouched[k] == 0 or begin > plan.first[k] or end < plan.last[k]:
        accumulate(k, begin, end, np.inf, points, weights, state, plan)
    plan.untouched[k] = 0
    means, marginals, masses = state.means, state.marginals, state.masses
    sums, scatters = plan.sums, plan.scatters
    before = masses[k]
    for c in range(begin, end):
        masses[k] += weights[plan.numbers[c]]
    after, kept = masses[k] / before, before / masses[k]
    for r in range(len(scratch.vector)):
        shift, least = sums[k, _DEVIATION, r] / after, kept * marginals[k, r]
        means[k, r] += shift
        marginals[k, r] = max(least + (sums[k, _SQUARE, r] / after - shift * shift), least)
        white = sums[k, _WHITE, r] / after
        for j in range(r):
            total = (scatters[k, r, j] - white * sums[k, _WHITE, j]) / after
            for i in range(j):
                total -= scatters[k, r, i] * scatters[k, j, i]
            scatters[k, r, j] = total
        pivot = kept + (scatters[k, r, r] - white * sums[k, _WHITE, r]) / after
        for j in range(r):
            factor = scatters[k, r, j] / scatters[k, j, j]
            pivot -= factor * scatters[k, r, j]
            scatters[k, r, j] = factor
        scatters[k, r, r] = pivot
    _update_factor(k, state.whiteners, state.remainders, state.variances, scatters, scratch)
    state.log_dets[k] = log_determinant(state.variances, k)


@compensated
def _update_factor(
    k: int, whiteners: Array, remainders: Array, variances: Array, factors: Array, scratch: Scratch
) -> None:
    r"""Replace a covariance by another one, in units in which it was the identity.

    With :math:`L P L^\top` the factors of that one and memory back in the
    variables' units, :math:`T' = L^{-1} T` and :math:`v' = P v`, row by row.
    No variance comes near its floor: it was far from it when the stride began.
    """
    n_features, change, roots = len(scratch.vector), scratch.vector, scratch.residuals
    for r in range(n_features):
        roots[k, r] = math.sqrt(variances[k, r])
        for i in range(r):
            change[i] = remainders[k, r, i]
        for j in range(r):
            factor = factors[k, r, j] * (roots[k, r] / roots[k, j])
            for i in range(j + 1):
                change[i] -= factor * whiteners[k, j, i]
        for i in range(r):
            old = whiteners[k, r, i]
            entry = old + change[i]
            whiteners[k, r, i] = entry
            remainders[k, r, i] = change[i] - (entry - old)
        variances[k, r] *= factors[k, r, r]
