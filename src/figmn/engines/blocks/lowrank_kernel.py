r"""One component whose newest rows are still pending, in matrix products.

With a lower triangular root ``B`` of a base precision, the component's are

.. math::

    S = s \, B^{-1} (I + Y^\top Y) B^{-\top}, \qquad
    \Lambda = B^\top (I - F^\top F) B / s, \qquad
    I + Y Y^\top = L L^\top, \quad Y = L F

``Y`` holds, whitened by the base, the rows that were added to the covariance
since the base was made, and ``s`` is what is left of it. A young component's
base is diagonal, so that it takes no D x D matrix at all.

What only calls other kernels is not compiled itself: on matrices of this size a
call costs nothing, and compiling takes long.
"""

from __future__ import annotations

import math

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.blas import add_product, solve_lower
from figmn.kernels.compiler import LARGEST_DISTANCE, SMALLEST_VARIANCE, uncounted

# Variables at a time, in folding: small enough for panels to stay in the cache, and
# larger where the whole matrix does not.
_PANEL, _LARGE_PANEL = 48, 64
_LARGE = 900

# The same where a matrix is only read, in whitening and in adding up distances.
_WHITENED, _STRIP = 96, 132

# Fewer rows than this do not repay what a product of matrices takes to begin.
_FEW = 4

EXTREME = 1e150
"""Beyond this, products of two squared distances may not be numbers."""

# A distance of which rounding has left fewer digits than this is not used.
_PRECISE = 1e-7


def whiten(deviations: Array, widths: Array, root: Array, out: Array) -> None:
    """Write ``deviations B'`` to ``out``, both of shape (N, D).

    ``B`` is ``root``, of shape (D, D) and lower triangular, or, where that has
    shape (0, 0), the diagonal matrix of ``1 / widths``; ``out`` may then be
    ``deviations`` itself.
    """
    n_rows, n_features = deviations.shape
    if len(root) == 0:
        np.multiply(deviations, 1.0 / widths, out=out)
    elif n_rows < _FEW:
        _whiten_few(deviations, root, out)
    else:
        for start in range(0, n_features, _WHITENED):
            stop = min(start + _WHITENED, n_features)
            panel = root[start:stop, :stop]
            add_product(1.0, deviations[:, :stop], panel.T, 0.0, out[:, start:stop])


@uncounted
def _whiten_few(deviations: Array, root: Array, out: Array) -> None:
    """The same by a root, without products of matrices."""
    n_rows, n_features = deviations.shape
    for t in range(n_rows):
        for r in range(n_features):
            total = 0.0
            for j in range(r + 1):
                total += root[r, j] * deviations[t, j]
            out[t, r] = total


def measure(
    points: Array,
    mean: Array,
    widths: Array,
    root: Array,
    rows: Array,
    base_scale: float,
    whitened: Array,
    along: Array,
    distances: Array,
) -> tuple[int, bool]:
    """Squared distances of points to one component.

    Parameters
    ----------
    points : array of shape (N, D)
        Complete.
    mean, widths : arrays of shape (D,)
    root : array of shape (D, D) or (0, 0)
    rows : array of shape (R, D)
        ``F``.
    base_scale : float
    whitened : array of shape (N, D)
        Written: the points' deviations, whitened by the base.
    along : array of shape (R, N)
        Written: ``F whitened'``.
    distances : array of shape (N,)
        Written.

    Returns
    -------
    usable : int
        Points before the first that is too extreme for products.
    precise : bool
        Whether no distance is a small difference of large numbers.
    """
    deviations = np.subtract(points, mean, out=None if len(root) else whitened)
    whiten(deviations, widths, root, whitened)
    if len(rows) > 0:
        add_product(1.0, rows, whitened.T, 0.0, along)
    return _lengths(whitened, along, base_scale, distances)


@uncounted
def _lengths(whitened: Array, along: Array, base_scale: float, out: Array) -> tuple[int, bool]:
    """Write squared distances of points, and tell how far they are to be trusted."""
    n_points, n_features = whitened.shape
    for t in range(n_points):
        out[t] = 0.0
    for r in range(len(along)):
        for t in range(n_points):
            out[t] += along[r, t] * along[r, t]
    usable = n_points
    precise = True
    for t in range(n_points):
        total = 0.0
        for i in range(n_features):
            total += whitened[t, i] * whitened[t, i]
        left = total - out[t]
        if not total < EXTREME:
            usable = min(usable, t)
        precise &= not left < _PRECISE * total
        distance = max(left, 0.0) / base_scale
        out[t] = distance if distance <= LARGEST_DISTANCE else LARGEST_DISTANCE
    return usable, precise


def extend(
    points: Array,
    which: IntArray,
    mean: Array,
    root: Array,
    base_scale: float,
    start: int,
    stop: int,
    distances: Array,
) -> None:
    """Add what the variables from ``start`` to ``stop`` contribute to squared distances.

    Parameters
    ----------
    points : array of shape (N, D)
    which : int array of shape (M,)
        The points concerned.
    mean : array of shape (D,)
    root : array of shape (D, D)
    base_scale : float
    distances : array of shape (N,)
    """
    deviations = points[which, :stop] - mean[:stop]
    total = distances[which]
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(start, stop, _STRIP):
            end = min(first + _STRIP, stop)
            whitened = np.empty((len(which), end - first))
            add_product(1.0, deviations[:, :end], root[first:end, :end].T, 0.0, whitened)
            total += np.einsum("md,md->m", whitened, whitened) / base_scale
        distances[which] = np.where(total <= LARGEST_DISTANCE, total, LARGEST_DISTANCE)


def inner_products(whitened: Array, along: Array, out: Array) -> None:
    """Write the points' inner products under ``I - F' F`` to ``out``, of shape (N, N)."""
    add_product(1.0, whitened, whitened.T, 0.0, out)
    if len(along) > 0:
        add_product(-1.0, along.T, along, 1.0, out)


@uncounted
def cholesky(matrix: Array, least: float) -> None:
    """Replace the lower triangle of a symmetric matrix by its Cholesky factor.

    No pivot falls below ``least``; the upper triangle becomes zero.
    """
    n = len(matrix)
    for r in range(n):
        for c in range(r):
            total = matrix[r, c]
            for j in range(c):
                total -= matrix[r, j] * matrix[c, j]
            matrix[r, c] = total / matrix[c, c]
        total = matrix[r, r]
        for j in range(r):
            total -= matrix[r, j] * matrix[r, j]
        matrix[r, r] = math.sqrt(max(total, least))
        for c in range(r + 1, n):
            matrix[r, c] = 0.0


def advance(
    points: Array,
    taken: IntArray,
    shares: Array,
    steps: Array,
    whitened: Array,
    mean: Array,
    marginals: Array,
    joining: Array,
) -> None:
    """Move the mean and the marginals, and write the rows that join the covariance.

    Parameters
    ----------
    points : array of shape (N, D)
    taken : int array of shape (C,)
        The points towards which the component has moved, in order.
    shares : array of shape (C,)
        How far.
    steps : array of shape (C, N)
        The rows to join, as combinations of the points' deviations.
    whitened : array of shape (N, D)
        These deviations, whitened by the base.
    mean, marginals : arrays of shape (D,)
        Changed.
    joining : array of shape (C, D)
        Written: the rows, whitened by the base.
    """
    _move(points, taken, shares, mean, marginals)
    add_product(1.0, steps, whitened, 0.0, joining)


@uncounted
def _move(points: Array, taken: IntArray, shares: Array, mean: Array, marginals: Array) -> None:
    """Move the mean and the marginals towards points, one after the other."""
    for c in range(len(taken)):
        t, share = taken[c], shares[c]
        left = 1.0 - share
        for i in range(len(mean)):
            deviation = points[t, i] - mean[i]
            mean[i] += share * deviation
            marginal = left * (marginals[i] + share * deviation * deviation)
            marginals[i] = max(marginal, SMALLEST_VARIANCE)


def corner_of(steps: Array, products: Array, out: Array) -> None:
    """Write the Cholesky factor of ``I + H G H'`` to ``out``, of shape (C, C).

    ``H`` are steps, of shape (C, N), and ``G`` products, of shape (N, N).
    """
    n_steps, n_points = steps.shape
    combined = np.empty((n_steps, n_points))
    add_product(1.0, steps, products, 0.0, combined)
    add_product(1.0, combined, steps.T, 0.0, out)
    out[np.diag_indices(n_steps)] += 1.0
    cholesky(out, 1.0)


def project(
    steps: Array,
    products: Array,
    along: Array,
    rows: Array,
    joining: Array,
    crossing: Array,
    corner: Array,
) -> None:
    """Turn rows that join ``Y`` into the rows by which ``F`` and ``L`` grow.

    Parameters
    ----------
    steps : array of shape (C, N)
    products : array of shape (N, N)
        Of the points, under the component as it was.
    along : array of shape (R, N)
    rows : array of shape (R, D)
        ``F`` as it was.
    joining : array of shape (C, D)
        Rows of ``Y``; overwritten by rows of ``F``.
    crossing, corner : arrays of shape (C, R) and (C, C)
        Written: the new rows of ``L``.
    """
    corner_of(steps, products, corner)
    if len(rows) > 0:
        add_product(1.0, steps, along.T, 0.0, crossing)
        add_product(-1.0, crossing, rows, 1.0, joining)
    solve_lower(corner, joining)


def restore(factor: Array, rows: Array, out: Array) -> None:
    """Write ``Y = L F`` to ``out``, of shape (R, D)."""
    if len(rows) > 0:
        add_product(1.0, factor, rows, 0.0, out)


def fold(root: Array, joining: Array) -> None:
    r"""Make the covariance of a root ``B`` that of ``B^{-1} (I + Y' Y) B^{-T}``, in place.

    Panel by panel of variables, with :math:`M` the inverse of
    :math:`I + Y_{<} Y_{<}^\top` over the variables before a panel, and ``C``
    what they hand on to it:

    .. math::

        I + Y_p^\top M Y_p = K K^\top, \quad B_p' = K^{-1} (B_p - Y_p^\top C), \quad
        P = M Y_p K^{-\top}, \quad C' = C + P B_p', \quad M' = M - P P^\top

    Parameters
    ----------
    root : array of shape (D, D)
        Lower triangular, with zeros above the diagonal.
    joining : array of shape (R, D)
        ``Y``.
    """
    n_rows, n_features = joining.shape
    middle, carried = np.eye(n_rows), np.zeros((n_rows, n_features))
    size = _PANEL if n_features < _LARGE else _LARGE_PANEL
    for start in range(0, n_features, size):
        stop = min(start + size, n_features)
        width = stop - start
        panel, leading = joining[:, start:stop], root[start:stop, :stop]
        passed, block = np.empty((width, n_rows)), np.empty((width, width))
        add_product(1.0, panel.T, middle, 0.0, passed)
        add_product(1.0, passed, panel, 0.0, block)
        block[np.diag_indices(width)] += 1.0
        cholesky(block, 1.0)
        if start > 0:
            add_product(-1.0, panel.T, carried[:, :start], 1.0, root[start:stop, :start])
        solve_lower(block, leading)
        solve_lower(block, passed)
        add_product(1.0, passed.T, leading, 1.0, carried[:, :stop])
        add_product(-1.0, passed.T, passed, 1.0, middle)
