"""Rows whose component is beyond doubt, learnt together.

Where clusters lie apart, most rows belong to one component and change no other.
What it has learnt after many such rows does not depend on what it was in
between, so that a *stride* of them can be learnt by one update of a matrix for
each component. That they are such rows must be known beforehand, while
components still are what they were: :mod:`figmn.kernels.doubts` shows it. A
stride ends before the first row of which it cannot be shown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import UNEXPLAINED, compensated, compiled, internal
from figmn.kernels.doubts import FARTHEST, LIMIT, N_BOUNDS, bound, doubt_shared
from figmn.kernels.factor import log_determinant

if TYPE_CHECKING:
    from figmn.kernels.learning import State

_STRIP = 64  # rows that are guessed or measured side by side
_MOST_WEIGHT = 0.5  # of the rows of a stride, relative to a component's mass
_LEAST_SHARE = 1e-12  # of a row in a component's mass: a lighter one may change nothing
_ORDINARY = 1e-280  # variances above it, and below its inverse, are safe to multiply

# Sums over a component's rows: of deviations, of their squares, and of whitened ones.
_DEVIATION, _SQUARE, _WHITE = range(3)


class Rows(NamedTuple):
    """The M rows of a stride, those of one component together, in order."""

    first: IntArray
    """Shape (K + 1,): where those of each component begin."""
    last: IntArray
    """Shape (K,): where those end that it can learn together."""
    numbers: IntArray
    """Shape (M,): where they stand in the stream."""
    shares: Array
    """Shape (M,): weights, by the component's mass: no scale of them is out of range."""
    distances: Array
    """Shape (M,): squared distances from the component; infinite where in doubt."""
    sums: Array
    """Shape (K, 3, D): over the rows of each component, by their shares."""
    scatters: Array
    """Shape (K, D, D): such sums of products of whitened deviations; lower triangles."""


@compiled
def stride(
    points: Array, weights: Array, start: int, stop: int, state: State, threshold: float
) -> int:
    """Learn rows together, until one that is in doubt.

    A stride of a few rows takes longer than learning them one by one.

    Parameters
    ----------
    points : array of shape (N, D)
        Rows with missing entries are always in doubt.
    weights : array of shape (N,)
        Rows of weight zero are, too.
    start, stop : int
        The first row to learn, and the row after the last.
    state : State
        With one component at least.
    threshold : float
        Squared distance from which on a row is novel.

    Returns
    -------
    int
        The first row not learnt.
    """
    n_components, n_features, n_rows = state.size[0], points.shape[1], stop - start
    rows = Rows(
        np.zeros(n_components + 1, np.int64),
        np.zeros(n_components, np.int64),
        np.zeros(n_rows, np.int64),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros((n_components, 3, n_features)),
        np.zeros((n_components, n_features, n_features)),
    )
    first, last, numbers, distances = rows.first, rows.last, rows.numbers, rows.distances
    bounds = np.zeros((n_components, N_BOUNDS))
    strip = np.zeros((2 * n_features + 2, _STRIP))
    scratch = np.zeros((2, n_features))
    guesses = np.zeros(n_rows, np.int64)
    _guess(points, start, n_components, state.means, state.marginals, guesses)
    heaviest = _group(guesses, start, weights, state.masses, rows)
    limit = min(threshold, FARTHEST * (n_features + 8.0))
    for k in range(n_components):
        _accept(k, state.variances, state.marginals, rows)
        _sum_up(k, points, limit, state.means, state.whiteners, state.variances, rows, strip)
        bound(k, threshold, heaviest, state, rows, bounds)
    for j in range(n_components):
        for k in range(n_components):
            if j != k and first[j] < last[j]:
                doubt_shared(j, k, points, state, rows, bounds, scratch)
    done = stop
    for k in range(n_components):
        for c in range(first[k], first[k + 1]):
            if not distances[c] < bounds[k, LIMIT]:
                done = min(done, numbers[c])
    for k in range(n_components):
        end = last[k]
        while end > first[k] and numbers[end - 1] >= done:
            end -= 1
        if first[k] < end < last[k]:
            last[k] = end
            _sum_up(k, points, limit, state.means, state.whiteners, state.variances, rows, strip)
        if first[k] < end:
            _learn_together(k, weights, rows, state, scratch)
        state.ages[k] += done - start
    state.size[1] += done - start
    return done


@internal
def _guess(
    points: Array,
    start: int,
    n_components: int,
    means: Array,
    marginals: Array,
    guesses: IntArray,
) -> None:
    """Guess the components of rows, as if variables were independent.

    Rows lie side by side, so that several are compared at once, in four variables
    at a time; there are zeros where a variable has no three others.
    """
    n_features, n_rows = points.shape[1], len(guesses)
    total = 4 * ((n_features + 3) // 4)
    least, best = total + 1, total + 2
    strip = np.zeros((total + 3, _STRIP))
    centers = np.zeros((n_components, total))
    narrowness = np.zeros((n_components, total))
    for k in range(n_components):
        for i in range(n_features):
            centers[k, i], narrowness[k, i] = means[k, i], 1.0 / marginals[k, i]
    for begin in range(0, n_rows, _STRIP):
        width = min(_STRIP, n_rows - begin)
        for c in range(width):
            for i in range(n_features):
                strip[i, c] = points[start + begin + c, i]
            strip[least, c], strip[best, c] = np.inf, 0.0
        for k in range(n_components if n_components > 1 else 0):
            for c in range(_STRIP):
                strip[total, c] = 0.0
            for i in range(0, total, 4):
                v, w = centers[k, i], centers[k, i + 1]
                x, y = centers[k, i + 2], centers[k, i + 3]
                e, f = narrowness[k, i], narrowness[k, i + 1]
                g, h = narrowness[k, i + 2], narrowness[k, i + 3]
                for c in range(_STRIP):
                    strip[total, c] += (
                        e * (strip[i, c] - v) ** 2 + f * (strip[i + 1, c] - w) ** 2
                    ) + (g * (strip[i + 2, c] - x) ** 2 + h * (strip[i + 3, c] - y) ** 2)
            for c in range(_STRIP):
                closer = strip[total, c] < strip[least, c]
                strip[least, c] = strip[total, c] if closer else strip[least, c]
                strip[best, c] = k if closer else strip[best, c]
        for c in range(width):
            guesses[begin + c] = int(strip[best, c])


@internal
def _group(guesses: IntArray, start: int, weights: Array, masses: Array, rows: Rows) -> float:
    """Put rows in their places: those of one component together, in order.

    Returns the largest weight.
    """
    first, last = rows.first, rows.last
    numbers, shares, distances = rows.numbers, rows.shares, rows.distances
    heaviest = 0.0
    for c in range(len(guesses)):
        first[guesses[c] + 1] += 1
    for k in range(len(last)):
        first[k + 1] += first[k]
        last[k] = first[k]
    for c in range(len(guesses)):
        k, weight = guesses[c], weights[start + c]
        place = last[k]
        last[k] += 1
        numbers[place], shares[place], distances[place] = start + c, weight / masses[k], np.inf
        heaviest = max(heaviest, weight)
    return heaviest


@internal
def _accept(k: int, variances: Array, marginals: Array, rows: Rows) -> None:
    """Leave a component as many rows as it can learn together, by their weights."""
    n_features, shares, last = variances.shape[1], rows.shares, rows.last
    # Far from the range of numbers, and from the floors even if the rows should
    # make a variance grow by as much as they can.
    ordinary = True
    for i in range(n_features):
        variance, marginal = variances[k, i], marginals[k, i]
        ordinary &= variance > FARTHEST * (n_features + 8.0) * UNEXPLAINED * marginal
        ordinary &= variance > _ORDINARY and marginal < 1.0 / _ORDINARY
    end, total = rows.first[k], 0.0
    while ordinary and end < last[k]:
        total += shares[end]
        ordinary = shares[end] > _LEAST_SHARE and total <= _MOST_WEIGHT
        end += ordinary
    last[k] = end


@internal
def _sum_up(
    k: int,
    points: Array,
    limit: float,
    means: Array,
    whiteners: Array,
    variances: Array,
    rows: Rows,
    strip: Array,
) -> None:
    """Measure a component's rows, and sum over those before one that is far from it.

    Rows lie side by side, and where there are none, zeros. In ``strip`` are deviations,
    what is left of them after whitening, distances, and roots of shares.
    """
    n_features, first, last = points.shape[1], rows.first, rows.last
    numbers, shares, distances = rows.numbers, rows.shares, rows.distances
    sums, scatters = rows.sums, rows.scatters
    for r in range(n_features):
        for i in range(3):
            sums[k, i, r] = 0.0
        for i in range(r + 1):
            scatters[k, r, i] = 0.0
    begin = first[k]
    while begin < last[k]:
        width = min(_STRIP, last[k] - begin)
        for c in range(width):
            for i in range(n_features):
                strip[i, c] = points[numbers[begin + c], i] - means[k, i]
        _whiten(k, whiteners, variances, strip)
        near = 0
        while near < width and strip[2 * n_features, near] < limit:
            distances[begin + near] = strip[2 * n_features, near]
            strip[2 * n_features + 1, near] = math.sqrt(shares[begin + near])
            near += 1
        for c in range(near, _STRIP):
            for i in range(2 * n_features + 2):
                strip[i, c] = 0.0
        _add_up(k, strip, sums, scatters)
        begin += width
        if near < width:
            last[k] = begin - width + near


@internal
def _whiten(k: int, whiteners: Array, variances: Array, strip: Array) -> None:
    """Whiten deviations, and measure them."""
    n_features = variances.shape[1]
    distance = 2 * n_features
    for c in range(_STRIP):
        strip[distance, c] = 0.0
    for r in range(n_features):
        narrow, white = 1.0 / math.sqrt(variances[k, r]), n_features + r
        for c in range(_STRIP):
            strip[white, c] = 0.0
        j = 0
        while j + 4 <= r + 1:  # four at a time, for fewer passes through memory
            w, x = narrow * whiteners[k, r, j], narrow * whiteners[k, r, j + 1]
            y, z = narrow * whiteners[k, r, j + 2], narrow * whiteners[k, r, j + 3]
            for c in range(_STRIP):
                strip[white, c] += (w * strip[j, c] + x * strip[j + 1, c]) + (
                    y * strip[j + 2, c] + z * strip[j + 3, c]
                )
            j += 4
        while j <= r:
            w = narrow * whiteners[k, r, j]
            for c in range(_STRIP):
                strip[white, c] += w * strip[j, c]
            j += 1
        for c in range(_STRIP):
            strip[distance, c] += strip[white, c] * strip[white, c]


@internal
def _add_up(k: int, strip: Array, sums: Array, scatters: Array) -> None:
    """Add the rows of a strip to the sums, by the roots of their shares."""
    n_features = sums.shape[2]
    root = 2 * n_features + 1
    for r in range(n_features):
        total, square, white = 0.0, 0.0, 0.0
        for c in range(_STRIP):
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
            for c in range(_STRIP):
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
            for c in range(_STRIP):
                w += strip[n_features + r, c] * strip[n_features + j, c]
            scatters[k, r, j] += w
            j += 1


@internal
def _learn_together(k: int, weights: Array, rows: Rows, state: State, scratch: Array) -> None:
    """Let a component learn the rows that were summed up."""
    means, marginals, masses = state.means, state.marginals, state.masses
    sums, scatters = rows.sums, rows.scatters
    before = masses[k]
    for c in range(rows.first[k], rows.last[k]):
        masses[k] += weights[rows.numbers[c]]
    after, kept = masses[k] / before, before / masses[k]
    for r in range(means.shape[1]):
        shift, least = sums[k, _DEVIATION, r] / after, kept * marginals[k, r]
        means[k, r] += shift
        marginals[k, r] = max(least + (sums[k, _SQUARE, r] / after - shift * shift), least)
        for j in range(r + 1):
            common = sums[k, _WHITE, r] * sums[k, _WHITE, j] / after
            scatters[k, r, j] = (scatters[k, r, j] - common) / after
        scatters[k, r, r] += kept
    _decompose(k, scatters)
    _update_factor(k, state.whiteners, state.remainders, state.variances, scatters, scratch)
    state.log_dets[k] = log_determinant(state.variances, k)


@internal
def _decompose(k: int, matrices: Array) -> None:
    """Replace a lower triangle by its factors ``L P L'``, the pivots on the diagonal."""
    for r in range(matrices.shape[1]):
        for j in range(r):
            total = matrices[k, r, j]
            for i in range(j):
                total -= matrices[k, r, i] * matrices[k, j, i]
            matrices[k, r, j] = total
        pivot = matrices[k, r, r]
        for j in range(r):
            factor = matrices[k, r, j] / matrices[k, j, j]
            pivot -= factor * matrices[k, r, j]
            matrices[k, r, j] = factor
        matrices[k, r, r] = pivot


@compensated
def _update_factor(
    k: int, whiteners: Array, remainders: Array, variances: Array, factors: Array, scratch: Array
) -> None:
    r"""Replace a covariance by another one, in units in which it was the identity.

    With :math:`L P L^\top` the factors of that one and memory back in the
    variables' units, :math:`T' = L^{-1} T` and :math:`v' = P v`, row by row.
    No variance comes near its floor: it is far from it, and loses a third at most.
    """
    n_features = variances.shape[1]
    for r in range(n_features):
        scratch[0, r] = math.sqrt(variances[k, r])
        for i in range(r):
            scratch[1, i] = remainders[k, r, i]
        for j in range(r):
            factor = factors[k, r, j] * (scratch[0, r] / scratch[0, j])
            for i in range(j + 1):
                scratch[1, i] -= factor * whiteners[k, j, i]
        for i in range(r):
            old = whiteners[k, r, i]
            entry = old + scratch[1, i]
            whiteners[k, r, i] = entry
            remainders[k, r, i] = scratch[1, i] - (entry - old)
        variances[k, r] *= factors[k, r, r]
