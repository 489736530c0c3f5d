"""Compiled loops of the agents, on arrays alone."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array, Index
from figmn.kernels.compiler import compiled


@compiled
def regress(
    rows: Array,
    centers: Array,
    whiteners: Array,
    log_heights: Array,
    offsets: Array,
    coefficients: Array,
    variances: Array,
    mean: Array,
    variance: Array,
    log_density: Array,
) -> None:
    """Moments of wanted variables given known rows, into the last three arrays.

    Parameters
    ----------
    rows : array of shape (N, I)
    centers : array of shape (K, I)
    whiteners : array of shape (K, I, I)
        Lower triangular: inverses of the Cholesky factors of the known covariances.
    log_heights : array of shape (K,)
        Log of weight times density at the center.
    offsets, coefficients, variances : arrays of shape (K, M), (K, M, I), (K, M)
        Of each component's regression.
    mean, variance, log_density : arrays of shape (N, M), (N, M), (N,)
        What is computed.
    """
    n_rows, n_known = rows.shape
    n_components, n_wanted = offsets.shape
    shares = np.empty(n_components)
    for n in range(n_rows):
        highest = -np.inf
        for k in range(n_components):
            distance = 0.0
            for i in range(n_known):
                white = 0.0
                for j in range(i + 1):
                    white += whiteners[k, i, j] * (rows[n, j] - centers[k, j])
                distance += white * white
            shares[k] = log_heights[k] - 0.5 * distance
            highest = max(highest, shares[k])
        total = 0.0
        for k in range(n_components):
            shares[k] = np.exp(shares[k] - highest)
            total += shares[k]
        log_density[n] = highest + np.log(total)
        for m in range(n_wanted):
            mean[n, m] = 0.0
            variance[n, m] = 0.0
        for k in range(n_components):
            share = shares[k] / total
            if share < 1e-9:  # nothing to add, and most components are far away
                continue
            for m in range(n_wanted):
                predicted = offsets[k, m]
                for i in range(n_known):
                    predicted += coefficients[k, m, i] * (rows[n, i] - centers[k, i])
                mean[n, m] += share * predicted
                variance[n, m] += share * (variances[k, m] + predicted * predicted)
        for m in range(n_wanted):
            variance[n, m] = max(variance[n, m] - mean[n, m] * mean[n, m], 0.0)


@compiled
def spread_out(points: Array, n_first: int, separation: float, most: int) -> Index:
    """Positions of points that keep a distance from all earlier ones kept.

    Parameters
    ----------
    points : array of shape (N, D)
    n_first : int
        So many are kept whatever their distance.
    separation : float
    most : int
        Stop when so many are kept.

    Returns
    -------
    int array, ascending
    """
    n_points, n_variables = points.shape
    kept = np.empty(min(n_points, most), dtype=np.intp)
    count = 0
    for n in range(n_points):
        if count == most:
            break
        apart = True
        if n >= n_first:
            for k in range(count):
                distance = 0.0
                for d in range(n_variables):
                    distance += (points[n, d] - points[kept[k], d]) ** 2
                if distance < separation * separation:
                    apart = False
                    break
        if apart:
            kept[count] = n
            count += 1
    return kept[:count]
