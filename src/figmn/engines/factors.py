"""Whole matrices from the factors of precisions, and factors in another order.

A factor is a pair: ``whiteners`` of shape (K, D, D), unit lower triangular,
and ``variances`` of shape (K, D), with ``precision = T' diag(1 / v) T``. Its
leading block is the factor of the marginal of the leading variables, so a
marginal is a slice once the kept variables come first.
"""

from __future__ import annotations

import numpy as np

from figmn._typing import Array, Index
from figmn.kernels.compiler import LARGEST
from figmn.kernels.factor import invert

_TINY = 1e-200


def covariance_roots(whiteners: Array, variances: Array) -> Array:
    """Lower triangular square roots of the covariances, of shape (K, D, D)."""
    with np.errstate(over="ignore", invalid="ignore"):
        roots = inverses(whiteners) * np.sqrt(variances)[:, np.newaxis, :]
    return within_range(roots)


def within_range(values: Array) -> Array:
    """Values cut off at the largest magnitude, which only absurd extrapolation exceeds."""
    return np.clip(np.nan_to_num(values), -LARGEST, LARGEST)


def within_scale(values: Array) -> Array:
    """Standard deviations cut off at the smallest and the largest that can be."""
    return np.clip(values, 1.0 / LARGEST, LARGEST)


def inverses(whiteners: Array) -> Array:
    """Inverses of the whiteners, unit lower triangular too."""
    inverse = np.empty(whiteners.shape)
    invert(np.ascontiguousarray(whiteners), inverse)
    return inverse


def covariances(whiteners: Array, variances: Array) -> Array:
    """Covariance matrices of shape (K, D, D), exactly symmetric and positive definite."""
    matrices = _outer(covariance_roots(whiteners, variances))
    if not _all_definite(matrices):
        for matrix in matrices:
            _make_definite(matrix)
    return matrices


def _all_definite(matrices: Array) -> bool:
    scale = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    try:
        np.linalg.cholesky(matrices / scale[:, np.newaxis, :] / scale[:, :, np.newaxis])
    except np.linalg.LinAlgError:
        return False
    return True


def _make_definite(matrix: Array) -> None:
    """Add rounding errors' worth to the diagonal, if rounding has left it indefinite.

    The factors always stand for a positive definite matrix, but with several
    variables that nearly follow from others, its entries may not.
    """
    scale = np.sqrt(np.diagonal(matrix))
    try:
        np.linalg.cholesky(matrix / scale / scale[:, np.newaxis])
    except np.linalg.LinAlgError:
        lift = 8.0 * len(matrix) * np.finfo(np.float64).eps
        matrix[np.diag_indices_from(matrix)] += lift * scale**2


def precisions(whiteners: Array, variances: Array) -> Array:
    """Precision matrices of shape (K, D, D), exactly symmetric."""
    roots = whiteners / np.sqrt(variances)[:, :, np.newaxis]
    return _outer(roots.transpose(0, 2, 1))


def _outer(roots: Array) -> Array:
    # A nearly collinear column of scale 1e-150 has a precision beyond the range
    # of numbers: the largest number stands in for it.
    with np.errstate(over="ignore", invalid="ignore"):
        products = roots @ roots.transpose(0, 2, 1)
        # The product of a matrix and its transpose may differ from its
        # transpose in the last bit, depending on the BLAS.
        symmetric = 0.5 * products + 0.5 * products.transpose(0, 2, 1)
    return np.nan_to_num(symmetric)


def factor(covariance_matrices: Array) -> tuple[Array, Array]:
    """Factor covariance matrices of shape (K, D, D).

    Raises
    ------
    numpy.linalg.LinAlgError
        If one of them is not positive definite.
    """
    roots = np.linalg.cholesky(covariance_matrices)
    diagonals = np.diagonal(roots, axis1=1, axis2=2)
    return inverses(roots / diagonals[:, np.newaxis, :]), diagonals**2


def merged(whiteners: Array, variances: Array, shares: Array, shift: Array) -> tuple[Array, Array]:
    r"""Factor of the covariance with the moments of two components.

    .. math:: S = w_1 S_1 + w_2 S_2 + w_1 w_2 \Delta \Delta^\top

    by a QR factorisation of roots of the three terms, so that no condition number
    is squared.

    Parameters
    ----------
    whiteners, variances : arrays of shape (2, D, D) and (2, D)
    shares : array of shape (2,)
        ``w``, which add up to one.
    shift : array of shape (D,)
        The second mean minus the first.

    Returns
    -------
    whitener : array of shape (D, D)
    variances : array of shape (D,)
        Without floors.
    """
    weights = np.sqrt(shares)
    first, second = covariance_roots(whiteners, variances).transpose(0, 2, 1)
    rows = np.vstack([weights[0] * first, weights[1] * second, weights.prod() * shift])
    # On their own scales, the squares of a column's entries need not be numbers.
    units = np.abs(rows).max(axis=0)
    lower = np.asarray(np.linalg.qr(rows / units, mode="r")).T
    diagonal = np.diagonal(lower)
    diagonal = np.where(np.abs(diagonal) > _TINY, diagonal, _TINY)
    unit_lower = np.tril(lower / diagonal, -1) + np.eye(len(units))
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = inverses(unit_lower[np.newaxis])[0] * (units[:, np.newaxis] / units)
    widths = within_scale(np.abs(diagonal) * units)
    return np.nan_to_num(slopes), widths**2


def reorder(whiteners: Array, variances: Array, order: Index) -> tuple[Array, Array]:
    """Factors of the marginal of the variables ``order``, in that order.

    Parameters
    ----------
    whiteners : array of shape (K, D, D)
    variances : array of shape (K, D)
    order : int array of shape (M,)
        Distinct variables; those left out are integrated out.

    Returns
    -------
    whiteners : array of shape (K, M, M)
    variances : array of shape (K, M)
    """
    kept = len(order)
    if np.array_equal(order, np.arange(kept)):
        return whiteners[:, :kept, :kept].copy(), variances[:, :kept].copy()
    everything = np.concatenate([order, np.setdiff1d(np.arange(variances.shape[1]), order)])
    # Re-triangularise the permuted root of the precision: a QL factorisation,
    # which is a QR factorisation of the columns in reverse. On their own scales,
    # the squares of a column's entries need not be numbers.
    roots = (whiteners / np.sqrt(variances)[:, :, np.newaxis])[:, :, everything]
    units = np.abs(roots).max(axis=1)
    upper = np.asarray(np.linalg.qr((roots / units[:, np.newaxis, :])[:, :, ::-1], mode="r"))
    lower = upper[:, ::-1, ::-1][:, :kept, :kept]
    units = units[:, :kept]
    diagonals = np.diagonal(lower, axis1=1, axis2=2)
    # Zero where precisions differ by more than the range of numbers.
    diagonals = np.where(np.abs(diagonals) > _TINY, diagonals, _TINY)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = lower / diagonals[:, :, np.newaxis]
        slopes *= units[:, np.newaxis, :] / units[:, :, np.newaxis]
        widths = np.clip(np.abs(diagonals * units), 1.0 / LARGEST, LARGEST)
    whitened = np.tril(np.nan_to_num(slopes), -1) + np.eye(kept)
    return np.ascontiguousarray(whitened), np.ascontiguousarray(widths**-2.0)
