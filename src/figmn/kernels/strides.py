r"""Rows whose component is beyond doubt, learnt together.

Where clusters lie apart, most rows belong to one component and change no other.
What it has learnt after many such rows does not depend on what it was in
between, so that a *stride* of them can be learnt by one update of a matrix for
each component. That they are such rows must be known beforehand, while
components still are what they were. It is shown by bounds on what the rows can
change. A component of mass ``n``, mean ``m`` and covariance ``S`` that learns
rows of weight ``W`` with deviations ``e`` from ``m`` obeys, after any number of
them,

.. math::

    \frac{n}{n + W} S \preceq S' \preceq \Bigl(1 + \frac{\lambda}{n}\Bigr) S, \qquad
    \|m' - m\|_S \le \frac{\sqrt{W \lambda}}{n}, \qquad
    \lambda = \lambda_{\max} \Bigl(S^{-1} \sum w e e^\top\Bigr)

which bounds a row's distances and log joint densities from both sides. A row is
beyond doubt if it is sure to lie within the novelty threshold of its component
and to leave nothing for others. A stride ends before the first row that is not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import (
    SURELY,
    UNEXPLAINED,
    compensated,
    compiled,
    internal,
)
from figmn.kernels.factor import log_determinant

if TYPE_CHECKING:
    from figmn.kernels.learning import State

_STRIP = 64  # rows whose components are guessed together
_MOST_WEIGHT = 0.5  # of the rows of a stride, relative to a component's mass
_FARTHEST = 64.0  # squared distance of rows, relative to what is usual
_LOG_LEAST = 28.0  # exp(-28) of a row, or of a component's mass, may be missing
_ORDINARY = 1e-280  # variances above it, and below its inverse, are safe to multiply

# Bounds on what rows can change in a component: mass and variances relative to
# what they were, the mean in standard deviations, the log prior either way, and
# the squared distance within which a row is sure not to be novel. With them the
# squared distance of the farthest row.
_GROWTH, _SPREAD, _SHIFT, _RISE, _FALL, _LIMIT, _RADIUS = range(7)


class Rows(NamedTuple):
    """The M rows of a stride that are one component's, as far as one can guess."""

    numbers: IntArray
    """Shape (M,): where they stand in the stream."""
    shares: Array
    """Shape (M,): weights, by the component's mass: no scale of them is out of range."""
    distances: Array
    """Shape (M,): squared distances from the component; infinite where in doubt."""
    deviations: Array
    """Shape (D, M): the rows minus the component's mean."""
    residuals: Array
    """Shape (D, M): the same, whitened, times the roots of the shares."""


class Memory(NamedTuple):
    """The same of all components, one after the other, each matrix in one piece."""

    numbers: IntArray
    shares: Array
    distances: Array
    deviations: Array
    residuals: Array


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
    masses = state.masses
    memory = Memory(
        np.empty(n_rows, np.int64),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_rows * n_features),
        np.empty(n_rows * n_features),
    )
    first = np.zeros(n_components + 1, np.int64)
    counts = np.zeros(n_components, np.int64)
    scatters = np.empty((n_components, n_features, n_features))
    bounds = np.empty((n_components, 7))
    scratch = np.empty((2, n_features))
    guesses = np.empty(n_rows, np.int64)
    _guess(points, start, n_components, state.means, state.marginals, guesses)
    _group(guesses, start, weights, masses, first, counts, memory)
    for k in range(n_components):
        rows = _rows_of(k, first, n_features, memory)
        count = _acceptable(k, rows, state.variances, state.marginals)
        _whiten(k, count, rows, points, state.means, state.whiteners, state.variances)
        counts[k] = _near(count, min(threshold, _FARTHEST * (n_features + 8.0)), rows)
        _scatter(counts[k], rows.residuals, scatters[k])
        _bound(k, counts[k], rows, threshold, scatters, bounds)
    heaviest = weights[start]
    for t in range(start, stop):
        heaviest = max(heaviest, weights[t])
    for j in range(n_components):
        rows = _rows_of(j, first, n_features, memory)
        for k in range(n_components if counts[j] > 0 else 0):
            if j != k:
                _doubt_shared(j, k, counts[j], rows, points, heaviest, state, bounds, scratch)
    done = stop
    for k in range(n_components):
        for place in range(first[k], first[k + 1]):
            if not memory.distances[place] < bounds[k, _LIMIT]:
                done = min(done, memory.numbers[place])
    for k in range(n_components):
        rows = _rows_of(k, first, n_features, memory)
        count = counts[k]
        while count > 0 and rows.numbers[count - 1] >= done:
            count -= 1
        if count > 0:
            if count < counts[k]:
                _scatter(count, rows.residuals, scatters[k])
            _learn_together(k, count, rows, weights, scatters[k], state, scratch)
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
def _group(
    guesses: IntArray,
    start: int,
    weights: Array,
    masses: Array,
    first: IntArray,
    filled: IntArray,
    memory: Memory,
) -> None:
    """Put rows in their places: those of one component together, in order.

    ``first``, of shape (K + 1,), is where those of each component begin.
    """
    for c in range(len(guesses)):
        first[guesses[c] + 1] += 1
    for k in range(len(filled)):
        first[k + 1] += first[k]
    numbers, shares, distances = memory.numbers, memory.shares, memory.distances
    for c in range(len(guesses)):
        k = guesses[c]
        place = first[k] + filled[k]
        filled[k] += 1
        numbers[place], shares[place] = start + c, weights[start + c] / masses[k]
        distances[place] = np.inf


@internal
def _rows_of(k: int, first: IntArray, n_features: int, memory: Memory) -> Rows:
    """The rows of one component, and its part of the memory for matrices."""
    begin, end = first[k], first[k + 1]
    shape = (n_features, end - begin)
    return Rows(
        memory.numbers[begin:end],
        memory.shares[begin:end],
        memory.distances[begin:end],
        memory.deviations[begin * n_features : end * n_features].reshape(shape),
        memory.residuals[begin * n_features : end * n_features].reshape(shape),
    )


@internal
def _acceptable(k: int, rows: Rows, variances: Array, marginals: Array) -> int:
    """How many of its rows a component can learn together."""
    n_features = variances.shape[1]
    # Far from the range of numbers, and from the floors even if the rows should
    # make a variance grow by as much as they can.
    ordinary = True
    for i in range(n_features):
        ordinary &= (
            variances[k, i] > _FARTHEST * (n_features + 8.0) * UNEXPLAINED * marginals[k, i]
        )
        ordinary &= variances[k, i] > _ORDINARY and marginals[k, i] < 1.0 / _ORDINARY
    count, total, shares = 0, 0.0, rows.shares
    while ordinary and count < len(shares):
        total += shares[count]
        # Nor may a row be too light to change anything.
        ordinary = shares[count] > 1e-12 and total <= _MOST_WEIGHT
        count += ordinary
    return count


@internal
def _whiten(
    k: int,
    count: int,
    rows: Rows,
    points: Array,
    means: Array,
    whiteners: Array,
    variances: Array,
) -> None:
    """Write the deviations of a component's first rows, whiten and measure them.

    Rows lie side by side here as well.
    """
    n_features = points.shape[1]
    numbers, shares, distances = rows.numbers, rows.shares, rows.distances
    deviations, residuals = rows.deviations, rows.residuals
    for c in range(count):
        distances[c] = 0.0
        for i in range(n_features):
            deviations[i, c] = points[numbers[c], i] - means[k, i]
    for r in range(n_features):
        narrow = 1.0 / math.sqrt(variances[k, r])
        for c in range(count):
            residuals[r, c] = 0.0
        j = 0
        while j + 4 <= r + 1:  # four at a time, for fewer passes through memory
            w, x = narrow * whiteners[k, r, j], narrow * whiteners[k, r, j + 1]
            y, z = narrow * whiteners[k, r, j + 2], narrow * whiteners[k, r, j + 3]
            for c in range(count):
                residuals[r, c] += (w * deviations[j, c] + x * deviations[j + 1, c]) + (
                    y * deviations[j + 2, c] + z * deviations[j + 3, c]
                )
            j += 4
        while j <= r:
            w = narrow * whiteners[k, r, j]
            for c in range(count):
                residuals[r, c] += w * deviations[j, c]
            j += 1
        for c in range(count):
            distances[c] += residuals[r, c] * residuals[r, c]
    for c in range(count):
        root = math.sqrt(shares[c])
        for r in range(n_features):
            residuals[r, c] *= root


@internal
def _near(count: int, limit: float, rows: Rows) -> int:
    """How many rows come before one that is far from its component."""
    near, distances = 0, rows.distances
    while near < count and distances[near] < limit:
        near += 1
    for c in range(near, count):
        distances[c] = np.inf
    return near


@internal
def _scatter(count: int, residuals: Array, out: Array) -> None:
    """Sum the products of the first of a component's whitened rows, as a lower triangle."""
    for r in range(residuals.shape[0]):
        j = 0
        while j + 4 <= r + 1:
            w, x, y, z = 0.0, 0.0, 0.0, 0.0
            for c in range(count):
                w += residuals[r, c] * residuals[j, c]
                x += residuals[r, c] * residuals[j + 1, c]
                y += residuals[r, c] * residuals[j + 2, c]
                z += residuals[r, c] * residuals[j + 3, c]
            out[r, j], out[r, j + 1], out[r, j + 2], out[r, j + 3] = w, x, y, z
            j += 4
        while j <= r:
            w = 0.0
            for c in range(count):
                w += residuals[r, c] * residuals[j, c]
            out[r, j] = w
            j += 1


@internal
def _bound(
    k: int, count: int, rows: Rows, threshold: float, scatters: Array, bounds: Array
) -> None:
    """Bound what a component's first rows can change in it."""
    n_features = scatters.shape[1]
    weight, farthest, mean, squares = 0.0, 0.0, 0.0, 0.0
    for c in range(count):
        weight += rows.shares[c]
        farthest = max(farthest, rows.distances[c])
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
    bounds[k, _RISE] = (1.0 + 0.5 * n_features) * math.log1p(weight)
    bounds[k, _FALL] = 0.5 * n_features * math.log1p(mean)
    root = math.sqrt(threshold / bounds[k, _GROWTH]) - bounds[k, _SHIFT]
    bounds[k, _LIMIT] = SURELY * root * root if root > 0.0 else 0.0
    bounds[k, _RADIUS] = farthest


@internal
def _doubt_shared(
    j: int,
    k: int,
    count: int,
    rows: Rows,
    points: Array,
    heaviest: float,
    state: State,
    bounds: Array,
    scratch: Array,
) -> None:
    """Doubt the rows of component ``j`` that component ``k`` may have a say in."""
    means, whiteners, variances = state.means, state.whiteners, state.variances
    masses, log_dets = state.masses, state.log_dets
    # Less than exp(-_LOG_LEAST) is then missing from the row in j, and of k's mass.
    lost = _LOG_LEAST + max(math.log(heaviest / masses[k]), 0.0)
    most = math.log(masses[k]) - 0.5 * log_dets[k] + bounds[k, _RISE]
    least = math.log(masses[j]) - 0.5 * log_dets[j] - bounds[j, _FALL]
    needed = max(2.0 * (most - least + lost), 0.0)
    reach = _reach(j, k, needed, means, whiteners, variances, bounds, scratch)
    if bounds[j, _RADIUS] <= reach:
        return
    wide, shift, distances = math.sqrt(bounds[j, _GROWTH]), bounds[j, _SHIFT], rows.distances
    for c in range(count):
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
    if 0.0 < between < 1.0 / _ORDINARY and width < 1.0 / _ORDINARY:
        narrow, wide = 1.0 / math.sqrt(bounds[k, _SPREAD]), math.sqrt(bounds[j, _GROWTH])
        slope = narrow * math.sqrt(width / between)
        clear = narrow * (math.sqrt(between) - bounds[k, _SHIFT]) + slope * bounds[j, _SHIFT]
        slope /= wide
        if clear > 0.0 and clear * clear > needed:
            root = math.sqrt(clear * clear + (slope * slope - 1.0) * needed)
            y = (clear * clear - needed) / (clear * slope + root) / wide - bounds[j, _SHIFT]
            reach = SURELY * y * y if y > 0.0 else -1.0
    return reach


@internal
def _learn_together(
    k: int,
    count: int,
    rows: Rows,
    weights: Array,
    scatter: Array,
    state: State,
    scratch: Array,
) -> None:
    """Let a component learn the first of its rows."""
    n_features = scatter.shape[0]
    means, marginals, masses = state.means, state.marginals, state.masses
    variances, log_dets, shares = state.variances, state.log_dets, rows.shares
    before = masses[k]
    for c in range(count):
        masses[k] += weights[rows.numbers[c]]
    after, kept = masses[k] / before, before / masses[k]
    deviations, residuals = rows.deviations, rows.residuals
    for i in range(n_features):
        total, square, white = 0.0, 0.0, 0.0
        for c in range(count):
            total += shares[c] * deviations[i, c]
            square += shares[c] * deviations[i, c] * deviations[i, c]
            white += math.sqrt(shares[c]) * residuals[i, c]
        shift, least = total / after, kept * marginals[k, i]
        means[k, i] += shift
        marginals[k, i] = max(least + (square / after - shift * shift), least)
        scratch[0, i] = white
    for r in range(n_features):
        for j in range(r + 1):
            scatter[r, j] = (scatter[r, j] - scratch[0, r] * scratch[0, j] / after) / after
        scatter[r, r] += kept
    _decompose(scatter)
    _update_factor(k, state.whiteners, state.remainders, variances, scatter, scratch)
    log_dets[k] = log_determinant(variances, k)


@internal
def _decompose(matrix: Array) -> None:
    """Replace a lower triangle by its factors ``L P L'``, the pivots on the diagonal."""
    for r in range(matrix.shape[0]):
        for j in range(r):
            total = matrix[r, j]
            for i in range(j):
                total -= matrix[r, i] * matrix[j, i]
            matrix[r, j] = total
        pivot = matrix[r, r]
        for j in range(r):
            factor = matrix[r, j] / matrix[j, j]
            pivot -= factor * matrix[r, j]
            matrix[r, j] = factor
        matrix[r, r] = pivot


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
            factor = factors[r, j] * (scratch[0, r] / scratch[0, j])
            for i in range(j + 1):
                scratch[1, i] -= factor * whiteners[k, j, i]
        for i in range(r):
            old = whiteners[k, r, i]
            entry = old + scratch[1, i]
            whiteners[k, r, i] = entry
            remainders[k, r, i] = scratch[1, i] - (entry - old)
        variances[k, r] *= factors[r, r]
