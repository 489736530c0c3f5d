"""Distances and joint log densities of rows, and responsibilities from them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.kernels import evaluation
from figmn.kernels.compiler import LARGEST_DISTANCE

# From here on matrix products are faster than the compiled loop (measured with
# ten components); a product takes a few calls that single rows do not repay.
_LEAST_FEATURES: Final = 16
_LEAST_ROWS: Final = 32
_FEW_VALUES: Final = 512  # up to here a compiled loop is faster than NumPy's
_BLOCK: Final = 512  # rows at a time, to stay in the cache
NONE: Final = np.empty(0)
_NOTHING: Final = np.empty((0, 0))
WITHOUT_FILLING: Final = (NONE, _NOTHING, _NOTHING)
"""What evaluation writes distances and joint densities alone for."""


def are_few(rows: Array) -> bool:
    """Whether the compiled loop is faster than matrix products for these rows."""
    return rows.shape[1] < _LEAST_FEATURES or len(rows) < _LEAST_ROWS


def evaluated(
    rows: Array,
    means: Array,
    whiteners: Array,
    variances: Array,
    log_dets: Array,
    weights: Array,
) -> tuple[Array, Array]:
    r"""Squared distances and :math:`\log p(j) p(x_{known} \mid j)`, each of shape (N, K).

    Parameters
    ----------
    rows : array of shape (N, D)
        NaN marks the unknown.
    means, variances : arrays of shape (K, D)
    whiteners : array of shape (K, D, D)
    log_dets, weights : arrays of shape (K,)
    """
    distances = np.empty((len(rows), len(means)))
    log_joint = np.empty_like(distances)
    components = (len(means), means, whiteners, variances, log_dets, weights)
    if are_few(rows):
        evaluation.evaluate(rows, *components, distances, log_joint, *WITHOUT_FILLING)
        return distances, log_joint
    complete: AnyArray = np.asarray(~np.isnan(rows).any(axis=1))
    if complete.any():
        distances[complete] = _distances(rows[complete], means, whiteners, variances)
        constants = np.log(weights) - 0.5 * (rows.shape[1] * math.log(2.0 * math.pi) + log_dets)
        log_joint[complete] = constants - 0.5 * distances[complete]
    rest = ~complete
    if rest.any():
        parts = np.empty((2, int(rest.sum()), len(means)))
        evaluation.evaluate(rows[rest], *components, parts[0], parts[1], *WITHOUT_FILLING)
        distances[rest], log_joint[rest] = parts
    return distances, log_joint


def filled(
    rows: Array, means: Array, whiteners: Array, variances: Array, responsibilities: Array
) -> Array:
    """Rows with NaN replaced by their conditional means, by responsibilities of shape (N, K)."""
    filled = np.where(np.isnan(rows), 0.0, rows)
    ones, parts = np.ones(len(means)), np.empty((2, len(rows), len(means)))
    evaluation.evaluate(
        rows,
        len(means),
        means,
        whiteners,
        variances,
        ones,
        ones,
        parts[0],
        parts[1],
        NONE,
        np.ascontiguousarray(responsibilities),
        filled,
    )
    return filled


def _distances(rows: Array, means: Array, whiteners: Array, variances: Array) -> Array:
    """Squared distances of complete rows, as matrix products."""
    distances = np.empty((len(rows), len(means)))
    roots = whiteners / np.sqrt(variances)[:, :, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            for k, (mean, root) in enumerate(zip(means, roots, strict=True)):
                residuals = (block - mean) @ root.T
                distances[start : start + _BLOCK, k] = np.einsum("nd,nd->n", residuals, residuals)
        # Also where opposite overflows have met in NaN.
        return np.where(distances <= LARGEST_DISTANCE, distances, LARGEST_DISTANCE)


def log_sum(values: Array) -> Array:
    """Logarithm of the sum of exponentials along rows, of shape (N, 1), for finite values.

    SciPy's does more, and takes ten times as long on few rows.
    """
    if values.size <= _FEW_VALUES:
        return evaluation.exponentials_of_few(values)[1]
    largest = values.max(axis=1, keepdims=True)
    total: Array = largest + np.log(np.exp(values - largest).sum(axis=1, keepdims=True))
    return total


def normalised(log_joint: Array) -> Array:
    """Posteriors from joint log densities of shape (N, K)."""
    if log_joint.size <= _FEW_VALUES:
        return evaluation.exponentials_of_few(log_joint)[0]
    responsibilities: Array = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    return responsibilities
