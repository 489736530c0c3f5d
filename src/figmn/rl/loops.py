"""Compiled loops of the agents, on arrays alone."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array, Index
from figmn.kernels.compiler import compiled, inlined


@inlined
def weigh(
    rows: Array, n: int, centers: Array, whiteners: Array, log_heights: Array, shares: Array
) -> float:
    """Log density of row ``n``; posteriors of the components are written to ``shares``."""
    highest = -np.inf
    for k in range(centers.shape[0]):
        distance = 0.0
        for i in range(centers.shape[1]):
            white = 0.0
            for j in range(i + 1):
                white += whiteners[k, i, j] * (rows[n, j] - centers[k, j])
            distance += white * white
        shares[k] = log_heights[k] - 0.5 * distance
        highest = max(highest, shares[k])
    total = 0.0
    for k in range(centers.shape[0]):
        shares[k] = np.exp(shares[k] - highest)
        total += shares[k]
    for k in range(centers.shape[0]):
        shares[k] /= total
    return highest + math.log(total)


@compiled
def largest_shares(
    rows: Array,
    centers: Array,
    whiteners: Array,
    log_heights: Array,
    least: float,
    log_density: Array,
) -> tuple[Index, Index, Array]:
    """Posteriors of components given rows, without the smallest ones.

    Parameters
    ----------
    rows : array of shape (N, I)
    centers : array of shape (K, I)
    whiteners : array of shape (K, I, I)
        Lower triangular roots of the precisions of the known variables.
    log_heights : array of shape (K,)
        Log of weight times density at the center.
    least : float
        Shares below are left out, and the others scaled up to a sum of one.
    log_density : array of shape (N,)
        What is computed on the way.

    Returns
    -------
    starts, components, shares : arrays
        Rows of a sparse matrix of shape (N, K), one after the other.
    """
    n_rows, n_components = len(rows), len(centers)
    all_shares = np.empty(n_components)
    starts = np.zeros(n_rows + 1, dtype=np.int64)
    components = np.empty(8 * n_rows + n_components, dtype=np.int64)
    shares = np.empty(len(components))
    count = 0
    for n in range(n_rows):
        log_density[n] = weigh(rows, n, centers, whiteners, log_heights, all_shares)
        if count + n_components > len(shares):
            components = np.append(components, np.empty_like(components))
            shares = np.append(shares, np.empty_like(shares))
        first, kept = count, 0.0
        for k in range(n_components):
            if all_shares[k] >= least:
                components[count], shares[count] = k, all_shares[k]
                kept += all_shares[k]
                count += 1
        shares[first:count] /= kept
        starts[n + 1] = count
    return starts, components[:count], shares[:count]


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
