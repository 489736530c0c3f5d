r"""What wanted variables are on average, for many rows side by side.

The arithmetic is that of :mod:`figmn.kernels.leading`. A component measures a tile of rows
together, variable by variable, in loops along the rows. Few components matter to a row, so

1. all components measure the first of the known variables;
2. the nearest by these measures the others as well, which says how dense the row is at least;
3. the other components measure variables in steps, and leave a row where they fall
   ``LOG_NOTHING`` behind.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import LARGEST_DISTANCE, LOG_NOTHING, internal, uncounted
from figmn.kernels.leading import add_expected, leading_distance

_TILE: Final = 256  # rows: a factor is read once for all of them
_STEP: Final = 8  # variables that are measured before rows are looked through
_GLANCE: Final = 3  # one of so many variables is measured by all components,
_LEAST_GLANCE: Final = 4  # but so many at least
_LOG_2PI: Final = math.log(2.0 * math.pi)


def mean_given_leading(
    points: Array,
    count: int,
    means: Array,
    whiteners: Array,
    variances: Array,
    masses: Array,
    mean: Array,
    log_density: Array,
) -> None:
    """Conditional means of the mixture for many rows whose leading variables are known.

    Parameters
    ----------
    points : array of shape (N, I)
        Complete: the first I variables.
    count : int
        The first K of C components are evaluated.
    means, variances : arrays of shape (C, D)
    whiteners : array of shape (C, D, D)
    masses : array of shape (C,)
    mean : array of shape (N, M)
        Written: of the next M variables.
    log_density : array of shape (N,)
        Written: of the known entries.
    """
    n_known, n_wanted = points.shape[1], mean.shape[1]
    shares = masses[:count] / masses[:count].sum()
    log_priors = np.log(shares) - 0.5 * np.log(variances[:count, :n_known]).sum(axis=1)
    width = min(len(points), _TILE)
    deviations, vectors = np.empty((n_known, width)), np.empty((2, width))
    numbers, expected = np.empty((2, width), np.int64), np.empty(n_known + n_wanted)
    for start in range(0, len(points), _TILE):
        here = slice(start, start + _TILE)
        tile = points[here]
        log_joint, largest = np.empty((count, len(tile))), np.full(len(tile), np.inf)
        columns, parts = np.ascontiguousarray(tile.T), np.zeros(len(tile))
        factors = (means, whiteners, variances, log_priors)
        _measure(tile, columns, *factors, log_joint, largest, deviations, *vectors, *numbers)
        mean[here] = 0.0
        _share(tile, means, whiteners, log_joint, largest, parts, mean[here], expected)
        mean[here] /= parts[:, np.newaxis]
        log_density[here] = largest + np.log(parts) - 0.5 * n_known * _LOG_2PI


@uncounted
def _measure(
    points: Array,
    columns: Array,
    means: Array,
    whiteners: Array,
    variances: Array,
    log_priors: Array,
    log_joint: Array,
    largest: Array,
    deviations: Array,
    distances: Array,
    totals: Array,
    nearest: IntArray,
    rows: IntArray,
) -> None:
    """Log joint densities of a tile, of shape (K, T), and the largest of each row, (T,).

    What cannot matter is minus infinity. The constant of all densities is left out.
    ``largest`` is infinite at first; what follows it is scratch.
    """
    n_known, n_rows = columns.shape
    first = min(n_known, max(n_known // _GLANCE, _LEAST_GLANCE))
    for k in range(len(log_priors)):
        for j in range(first):
            for i in range(n_rows):
                deviations[j, i] = columns[j, i] - means[k, j]
        for i in range(n_rows):
            distances[i] = 0.0
        _add_squares(k, 0, first, n_rows, whiteners, variances, deviations, totals, distances)
        for i in range(n_rows):
            log_joint[k, i] = distances[i]  # for now
            if k == 0 or distances[i] < largest[i]:
                nearest[i], largest[i] = k, distances[i]
    for i in range(n_rows):
        k = nearest[i]
        distance = leading_distance(points, i, k, np.inf, means, whiteners, variances)
        largest[i] = log_joint[k, i] = log_priors[k] - 0.5 * distance
    for k in range(len(log_priors)):
        lost, done, left = log_priors[k] + LOG_NOTHING, first, 0
        for i in range(n_rows):  # without branches, which would be mispredicted
            rows[left], distances[left] = i, log_joint[k, i]
            others = nearest[i] != k
            left += others & (not distances[left] > 2.0 * (lost - largest[i]))
            log_joint[k, i] = -np.inf if others else log_joint[k, i]
        while done < n_known and left > 0:
            stop = min(done + _STEP, n_known)
            for j in range(stop):  # anew, as other rows are left
                for i in range(left):
                    deviations[j, i] = columns[j, rows[i]] - means[k, j]
            _add_squares(k, done, stop, left, whiteners, variances, deviations, totals, distances)
            done, before, left = stop, left, 0
            for i in range(before):
                rows[left], distances[left] = rows[i], distances[i]
                left += not distances[left] > 2.0 * (lost - largest[rows[left]])
        for i in range(left):
            distance = distances[i] if distances[i] <= LARGEST_DISTANCE else LARGEST_DISTANCE
            log_joint[k, rows[i]] = log_priors[k] - 0.5 * distance
            largest[rows[i]] = max(largest[rows[i]], log_joint[k, rows[i]])


@internal
def _add_squares(
    k: int,
    start: int,
    stop: int,
    n_rows: int,
    whiteners: Array,
    variances: Array,
    deviations: Array,
    totals: Array,
    distances: Array,
) -> None:
    """Add what some variables contribute to squared distances."""
    for r in range(start, stop):
        for i in range(n_rows):
            totals[i] = deviations[r, i]
        for j in range(r % 2):
            for i in range(n_rows):
                totals[i] += whiteners[k, r, j] * deviations[j, i]
        for j in range(r % 2, r, 2):  # in pairs, as sums are fetched and stored each time
            a, b = whiteners[k, r, j], whiteners[k, r, j + 1]
            for i in range(n_rows):
                totals[i] += a * deviations[j, i] + b * deviations[j + 1, i]
        precision = 1.0 / variances[k, r]
        for i in range(n_rows):
            distances[i] += precision * totals[i] * totals[i]


@uncounted
def _share(
    points: Array,
    means: Array,
    whiteners: Array,
    log_joint: Array,
    largest: Array,
    parts: Array,
    mean: Array,
    expected: Array,
) -> None:
    """Add up densities, relative to the largest, and what components expect by them."""
    count, n_rows = log_joint.shape
    for k in range(count):
        for i in range(n_rows):
            difference = log_joint[k, i] - largest[i]
            if difference > -LOG_NOTHING:
                share = math.exp(difference)
                parts[i] += share
                add_expected(points, i, k, share, means, whiteners, expected, mean)
