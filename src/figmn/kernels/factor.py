"""Arithmetic on one component's precision factor, in O(D^2)."""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array
from figmn.kernels.compiler import (
    LARGEST,
    LARGEST_DISTANCE,
    SMALLEST_VARIANCE,
    UNEXPLAINED,
    compensated,
    internal,
    uncounted,
)


@internal
def residuals(whiteners: Array, variances: Array, k: int, deviations: Array, out: Array) -> float:
    """Write ``z = T e`` of component ``k`` to ``out`` and return ``sum(z**2 / v)``.

    Rows are addressed by ``k`` throughout, since a view of a row costs more
    than the arithmetic on it in few dimensions.

    Parameters
    ----------
    whiteners : array of shape (K, D, D)
    variances : array of shape (K, D)
    k : int
    deviations, out : arrays of shape (K, D)
        Row ``k``: the point minus the component's mean, and its residuals.

    Returns
    -------
    float
        At most ``LARGEST_DISTANCE``; the residuals are then finite too.
    """
    _, n_features = deviations.shape
    distance = 0.0
    for r in range(n_features):
        total = deviations[k, r]
        for j in range(r):
            total += whiteners[k, r, j] * deviations[k, j]
        out[k, r] = total
    for r in range(n_features):
        distance += out[k, r] * out[k, r] / variances[k, r]
    if not distance <= LARGEST_DISTANCE:  # also true of NaN: opposite overflows
        for r in range(n_features):
            if not abs(out[k, r]) <= LARGEST:
                out[k, r] = -LARGEST if out[k, r] < 0.0 else LARGEST
        distance = LARGEST_DISTANCE
    return distance


@compensated
def shrink_and_add(
    whiteners: Array,
    remainders: Array,
    variances: Array,
    marginals: Array,
    k: int,
    residual: Array,
    shrinkage: float,
    gain: float,
    scratch: Array,
) -> bool:
    r"""Replace the covariance ``S`` of component ``k`` by ``shrinkage S + gain e e'``.

    With the residuals :math:`z = T e` the new factor follows row by row, in
    the manner of Bierman's measurement update of a U-D filter:

    .. math::

        v_r' = v_r + \alpha_r z_r^2, \quad \beta_r = \alpha_r z_r / v_r', \quad
        \alpha_r = g / \Bigl(1 + g \sum_{j<r} z_j^2 / v_j\Bigr), \quad
        t_r' = t_r - z_r \sum_{j<r} \beta_j t_j'

    What rounding takes from an entry of ``T`` is carried along and given back
    in the next update, so that errors do not add up over a long stream.

    Parameters
    ----------
    whiteners, remainders : arrays of shape (K, D, D)
    variances, marginals, residual : arrays of shape (K, D)
        ``marginals`` holds the diagonals of the new covariances; no residual
        variance may fall below the share ``UNEXPLAINED`` of it.
    k : int
    shrinkage, gain : float
        A negative gain must leave the covariance positive definite.
    scratch : array of shape (D,)

    Returns
    -------
    bool
        Whether a variance had to be lifted to its floor.
    """
    lifted = False
    growth = 1.0
    for r in range(len(scratch)):
        z = residual[k, r]
        alpha = gain / growth
        before = shrinkage * variances[k, r]
        if not before >= SMALLEST_VARIANCE:
            before = SMALLEST_VARIANCE
            lifted = True
        after = before + alpha * z * z
        floor = max(UNEXPLAINED * marginals[k, r], SMALLEST_VARIANCE)
        if not after >= floor:
            after = floor
            lifted = True
        beta = alpha * z / after
        growth += gain * z * z / before
        variances[k, r] = after
        scratch[r] = beta
        for j in range(r):
            before_update = whiteners[k, r, j]
            change = remainders[k, r, j] - z * scratch[j]
            entry = before_update + change
            whiteners[k, r, j] = entry
            remainders[k, r, j] = change - (entry - before_update)
            scratch[j] += beta * entry
    return lifted


@uncounted
def log_determinant(variances: Array, k: int) -> float:
    """Log-determinant of the covariance of component ``k``, ``sum(log(v))``."""
    total = 0.0
    _, n_features = variances.shape
    for r in range(n_features):
        total += math.log(variances[k, r])
    return total


@uncounted
def invert(triangles: Array, out: Array) -> None:
    """Write the inverses of unit lower triangular matrices, of shape (K, D, D).

    Small triangular solves by BLAS may take a hundred times as long, when its
    threads wait for a busy core.
    """
    n_matrices, n_features, _ = triangles.shape
    for k in range(n_matrices):
        for r in range(n_features):
            for c in range(n_features):
                out[k, r, c] = 1.0 if r == c else 0.0
            for j in range(r):
                factor = triangles[k, r, j]
                if factor != 0.0:
                    for c in range(j + 1):
                        out[k, r, c] -= factor * out[k, j, c]


@uncounted
def settle(whiteners: Array, variances: Array, marginals: Array, k: int, inverses: Array) -> float:
    """Make a factor agree with the variables' variances, where rounding has parted them.

    The marginals are sums of positive terms, so they are right; slopes are
    not, where a variance was lifted to its floor or has grown beyond the digits
    of a number. With the rows of ``B = T^-1`` the variance of a variable is
    ``sum(B[r]**2 * v)``: slopes that explain more of it than there is are cut
    back, and what is left unexplained gets its least share.

    Parameters
    ----------
    whiteners : array of shape (K, D, D)
    variances, marginals : arrays of shape (K, D)
    k : int
    inverses : array of shape (K, D, D) or larger
        Scratch.

    Returns
    -------
    float
        The log-determinant of the covariance.
    """
    _, n_features = variances.shape
    for r in range(n_features):
        for c in range(r):
            inverses[k, r, c] = 0.0
        for j in range(r):
            for c in range(j + 1):
                inverses[k, r, c] -= whiteners[k, r, j] * inverses[k, j, c]
        explained = 0.0
        for c in range(r):
            root = min(abs(inverses[k, r, c]) * math.sqrt(variances[k, c]), LARGEST)
            explained += root * root
        possible = marginals[k, r] * (1.0 - UNEXPLAINED)
        if not explained <= possible:
            cut = math.sqrt(possible / explained) if explained < np.inf else 0.0
            for j in range(r):
                whiteners[k, r, j] *= cut
                inverses[k, r, j] *= cut
        inverses[k, r, r] = 1.0
        variances[k, r] = max(
            variances[k, r], max(UNEXPLAINED * marginals[k, r], SMALLEST_VARIANCE)
        )
    return log_determinant(variances, k)
