"""Distances and joint log densities of rows under every component."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import LARGEST_DISTANCE, SURELY, compiled, inlined, uncounted
from figmn.kernels.factor import residuals
from figmn.kernels.missing import complete, find_missing

_BLOCK = 512  # rows at a time, to stay in the cache
_LOG_2PI = math.log(2.0 * math.pi)


@compiled
def evaluate(
    points: Array,
    count: int,
    means: Array,
    whiteners: Array,
    variances: Array,
    log_dets: Array,
    masses: Array,
    distances: Array,
    log_joint: Array,
    log_density: Array,
    posteriors: Array,
    filled: Array,
) -> None:
    r"""Squared distances and :math:`\log p(j) p(x_{known} \mid j)` of rows, and the sum.

    Parameters
    ----------
    points : array of shape (N, D)
        NaN marks an unknown entry, which is integrated out.
    count : int
        The first K of C components are evaluated.
    means, variances : arrays of shape (C, D)
    whiteners : array of shape (C, D, D)
    log_dets, masses : arrays of shape (C,)
    distances, log_joint : arrays of shape (N, K)
        Written.
    log_density : array of shape (N,) or (0,)
        Written, unless it is empty.
    posteriors : array of shape (N, K) or (0, 0)
    filled : array of shape (N, D) or (0, 0)
        Unless it is empty, what components expect where entries are missing is added
        to it, by these posteriors.
    """
    n_points, n_features = points.shape
    deviations = np.empty((count, n_features))
    residual = np.empty((count, n_features))
    missing = np.empty(n_features, np.int64)
    systems = np.empty((count, n_features, n_features + 2))
    log_weights, total = np.empty(count), 0.0
    for k in range(count):
        total += masses[k]
    for k in range(count):
        log_weights[k] = math.log(masses[k] / total)
    for t in range(n_points):
        n_missing = find_missing(points, t, missing)
        n_known = n_features - n_missing
        for k in range(count):
            for i in range(n_features):
                deviations[k, i] = points[t, i] - means[k, i]
            if n_missing == 0:
                distance = residuals(whiteners, variances, k, deviations, residual)
                log_det = 0.0
            else:
                distance, log_det = complete(
                    whiteners, variances, k, deviations, missing, n_missing, residual, systems
                )
            log_det += log_dets[k]
            if n_known == 0:  # nothing is known: exactly the prior, without rounding
                distance, log_det = 0.0, 0.0
            for m in range(n_missing if len(filled) > 0 else 0):
                i = missing[m]
                filled[t, i] += posteriors[t, k] * (means[k, i] + deviations[k, i])
            distances[t, k] = distance
            log_joint[t, k] = log_weights[k] - 0.5 * (n_known * _LOG_2PI + log_det + distance)
        if len(log_density) > 0:
            log_density[t] = _log_sum(log_joint, t)


@inlined
def _log_sum(values: Array, i: int) -> float:
    """Logarithm of the sum of exponentials in row ``i``."""
    _, count = values.shape
    largest = values[i, 0]
    for k in range(1, count):
        largest = max(largest, values[i, k])
    parts = 0.0
    for k in range(count):
        parts += math.exp(values[i, k] - largest)
    return float(largest + math.log(parts))


@compiled
def exponentials_of_few(values: Array) -> tuple[Array, Array]:
    """Exponentials by their sum along rows of shape (N, K), and its logarithm, (N, 1)."""
    n_rows, count = values.shape
    shares, log_sums = np.empty((n_rows, count)), np.empty((n_rows, 1))
    for i in range(n_rows):
        largest = values[i, 0]
        for k in range(1, count):
            largest = max(largest, values[i, k])
        total = 0.0
        for k in range(count):
            shares[i, k] = math.exp(values[i, k] - largest)
            total += shares[i, k]
        for k in range(count):
            shares[i, k] /= total
        log_sums[i, 0] = largest + math.log(total)
    return shares, log_sums


def likely(points: Array, means: Array, marginals: Array, which: IntArray, bounds: Array) -> None:
    """Find a likely component for each of N points, and rule out others at a glance.

    Parameters
    ----------
    points : array of shape (N, D)
        Complete.
    means, marginals : arrays of shape (K, D)
        Marginals are variances.
    which : int array of shape (N,)
        Written: the component that each point lies in if variables were independent.
    bounds : array of shape (K, N)
        Written: the largest squared distance in a single variable, which that in
        all of them is never smaller than.
    """
    log_volumes = np.log(marginals).sum(axis=1)
    _compare(points, means, 1.0 / marginals, log_volumes, which, bounds)


@uncounted
def _compare(
    points: Array,
    means: Array,
    precisions: Array,
    log_volumes: Array,
    which: IntArray,
    bounds: Array,
) -> None:
    """The same by precisions and log-determinants."""
    n_components, n_features = means.shape
    for t in range(len(points)):
        nearest = np.inf
        for k in range(n_components):
            distance, largest = log_volumes[k], 0.0
            for i in range(n_features):
                deviation = points[t, i] - means[k, i]
                part = precisions[k, i] * deviation * deviation
                distance += part
                largest = max(largest, part)
            bounds[k, t] = SURELY * min(largest, LARGEST_DISTANCE)
            if k == 0 or distance < nearest:
                which[t], nearest = k, distance


def regress(points: Array, means: Array, coefficients: Array, out: Array) -> None:
    """Write ``coefficients (point - mean)`` for every point and component.

    Parameters
    ----------
    points : array of shape (N, I)
    means : array of shape (K, I)
    coefficients : array of shape (K, M, I)
    out : array of shape (N, K, M)
    """
    for start in range(0, len(points), _BLOCK):
        block, here = points[start : start + _BLOCK], out[start : start + _BLOCK]
        for k, mean in enumerate(means):
            here[:, k] = (block - mean) @ coefficients[k].T
