r"""What wanted variables are, given known ones, straight from the factors.

With the known variables first, row ``r`` of a whitener ``T`` regresses variable ``r`` on
those before it. So the leading rows measure the known entries of a row, and the
following ones give the conditional means one after the other,

.. math:: z_r = e_r + \sum_{j<r} T_{rj} e_j, \qquad
    d^2 = \sum_{r \in \text{known}} z_r^2 / v_r, \qquad
    e_r = -\sum_{j<r} T_{rj} e_j \quad (r \in \text{wanted})

No covariance is formed, and nothing needs to be prepared for a state of the mixture.
"""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import (
    LARGEST,
    LARGEST_DISTANCE,
    LOG_NOTHING,
    LOG_ZERO,
    inlined,
    uncounted,
)

_LOG_2PI = math.log(2.0 * math.pi)
_SMALL, _LARGE = 1e-150, 1e150  # between which two numbers may be multiplied


@inlined
def _log_product(values: Array, k: int, count: int) -> float:
    """Logarithm of the product of the first values in row ``k``, by few logarithms."""
    total, product = 0.0, 1.0
    for r in range(count):
        if not (_SMALL < product < _LARGE and _SMALL < values[k, r] < _LARGE):
            total += math.log(product)
            product = 1.0
        product *= values[k, r]
    return total + math.log(product)


@inlined
def leading_distance(
    points: Array, t: int, k: int, limit: float, means: Array, whiteners: Array, variances: Array
) -> float:
    """Squared distance of known leading entries, exact unless beyond a limit."""
    _, n_known = points.shape
    distance = 0.0
    for r in range(n_known):
        total = points[t, r] - means[k, r]
        for j in range(r):
            total += whiteners[k, r, j] * (points[t, j] - means[k, j])
        distance += total * total / variances[k, r]
        if distance > limit:
            break
    return distance if distance <= LARGEST_DISTANCE else LARGEST_DISTANCE


@inlined
def _likeliest(points: Array, t: int, count: int, means: Array, marginals: Array) -> int:
    """The component that is likeliest if variables were independent and as wide in all."""
    _, n_known = points.shape
    best, nearest = 0, np.inf
    for k in range(count):
        distance = 0.0
        for i in range(n_known):
            deviation = points[t, i] - means[k, i]
            distance += deviation * deviation / marginals[k, i]
            if distance >= nearest:
                break
        if distance < nearest:
            best, nearest = k, distance
    return best


@inlined
def add_expected(
    points: Array,
    t: int,
    k: int,
    share: float,
    means: Array,
    whiteners: Array,
    deviations: Array,
    mean: Array,
) -> None:
    """Add a share of what a component expects of the wanted variables.

    ``deviations``, of shape (I + M,), holds those from its mean afterwards.
    """
    _, n_known = points.shape
    _, n_wanted = mean.shape
    for i in range(n_known):
        deviations[i] = points[t, i] - means[k, i]
    for m in range(n_wanted):
        r, value = n_known + m, 0.0
        for j in range(r):
            value -= whiteners[k, r, j] * deviations[j]
        if not abs(value) <= LARGEST:
            value = -LARGEST if value < 0.0 else LARGEST
        deviations[r] = value
        mean[t, m] += share * (means[k, r] + value)


@uncounted
def given_leading(
    points: Array,
    count: int,
    means: Array,
    whiteners: Array,
    variances: Array,
    marginals: Array,
    masses: Array,
    responsibilities: Array,
    component_means: Array,
    mean: Array,
    log_density: Array,
    log_priors: Array,
    deviations: Array,
) -> None:
    """Responsibilities and conditional means for rows whose leading variables are known.

    Where only the mixture's mean is wanted, a component whose density cannot matter, beside
    that of the likeliest, has no share, and is left after a few variables.

    Parameters
    ----------
    points : array of shape (N, I)
        Complete: the first I variables.
    count : int
        The first K of C components are evaluated.
    means, variances, marginals : arrays of shape (C, D)
    whiteners : array of shape (C, D, D)
    masses : array of shape (C,)
    responsibilities : array of shape (N, K)
        Written.
    component_means : array of shape (N, K, M) or (0, 0, 0)
        Written, unless it is empty: conditional means of the next M variables.
    mean : array of shape (N, M)
        Written: those of the mixture.
    log_density : array of shape (N,)
        Written: of the known entries.
    log_priors, deviations : arrays of shape (K,) and (I + M,)
        Scratch.
    """
    n_points, n_known = points.shape
    _, n_wanted = mean.shape
    every = len(component_means) > 0
    margin = LOG_ZERO if every else LOG_NOTHING
    total = 0.0
    for k in range(count):
        total += masses[k]
    for k in range(count):
        log_priors[k] = math.log(masses[k] / total) - 0.5 * _log_product(variances, k, n_known)
    for t in range(n_points):
        first = _likeliest(points, t, count, means, marginals) if count > 1 else 0
        largest = -np.inf
        for turn in range(count):
            k = first if turn == 0 else (0 if turn == first else turn)
            limit = np.inf if every else 2.0 * (log_priors[k] - largest + margin)
            distance = leading_distance(points, t, k, limit, means, whiteners, variances)
            log_joint = log_priors[k] - 0.5 * distance if distance <= limit else -np.inf
            responsibilities[t, k] = log_joint
            largest = max(largest, log_joint)
        parts = 0.0
        for k in range(count):
            difference = responsibilities[t, k] - largest
            responsibilities[t, k] = math.exp(difference) if difference > -margin else 0.0
            parts += responsibilities[t, k]
        log_density[t] = largest + math.log(parts) - 0.5 * n_known * _LOG_2PI
        for m in range(n_wanted):
            mean[t, m] = 0.0
        for k in range(count):
            share = responsibilities[t, k] / parts
            responsibilities[t, k] = share
            if not every and share == 0.0:
                continue
            add_expected(points, t, k, share, means, whiteners, deviations, mean)
            for m in range(n_wanted if every else 0):
                r = n_known + m
                component_means[t, k, m] = means[k, r] + deviations[r]
