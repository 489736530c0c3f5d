r"""One component whose precision is held whole, learning a block of rows.

With ``Z`` the rows' deviations from its mean, and ``A`` its precision but for a
factor, the block needs

.. math::

    W = Z A, \qquad G = Z W^\top, \qquad A' = A - V^\top V, \qquad
    V = L^{-1} H W, \quad I + H G H^\top = L L^\top

where ``H`` are the combinations of deviations that join the covariance. These are
two large products, against the many small ones that a triangular root takes: see
:func:`figmn.kernels.lowrank.fold`.
"""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.kernels.blas import add_product, multiply_symmetric, solve_lower, subtract_squares
from figmn.kernels.lowrank import EXTREME, corner_of


def measure(
    points: Array,
    mean: Array,
    units: Array,
    precision: Array,
    kept: float,
    deviations: Array,
    turned: Array,
    products: Array,
    distances: Array,
) -> int:
    """Inner products and squared distances of points.

    Parameters
    ----------
    points : array of shape (N, D)
        Complete.
    mean, units : arrays of shape (D,)
    precision : array of shape (D, D)
        Of deviations in units; only the lower triangle is read.
    kept : float
        The factor of the covariance.
    deviations, turned : arrays of shape (N, D)
        Written: ``Z`` and ``W``.
    products : array of shape (N, N)
        Written: ``G``.
    distances : array of shape (N,)
        Written.

    Returns
    -------
    usable : int
        Points before the first that is too extreme for products.
    """
    np.subtract(points, mean, out=deviations)
    with np.errstate(over="ignore"):
        np.divide(deviations, units, out=deviations)
    multiply_symmetric(deviations, precision, turned)
    add_product(1.0, deviations, turned.T, 0.0, products)
    squares = np.diagonal(products)
    extreme = np.flatnonzero(~(squares < EXTREME))
    usable = int(extreme[0]) if len(extreme) else len(points)
    np.divide(squares[:usable], kept, out=distances[:usable])
    return usable


def combine(steps: Array, products: Array) -> None:
    """Replace ``H``, of shape (C, N), by ``L^{-1} H``."""
    corner = np.empty((len(steps), len(steps)))
    corner_of(steps, products, corner)
    solve_lower(corner, steps)


def join(rows: Array, precision: Array, scales: Array, limit: float) -> bool:
    """Take rows ``V``, of shape (C, D), into ``A``.

    Returns
    -------
    sound : bool
        Whether the diagonal of ``A``, times ``scales``, of shape (D,), is positive
        and below a limit.
    """
    subtract_squares(rows, precision)
    inflation = np.diagonal(precision) * scales
    return bool(np.all((inflation > 0.0) & (inflation < limit)))
