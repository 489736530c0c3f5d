"""Interpolation between scattered points in any number of dimensions."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from figmn._typing import Array


def distance_basis(queries: Array, points: Array) -> Array:
    """Negative distances of queries (Q, D) from points (N, D), and a column of ones: (Q, N + 1).

    Its product with a spline's coefficients is the spline's values at the queries.
    """
    basis = np.ones((len(queries), len(points) + 1))
    np.negative(cdist(queries, points), out=basis[:, :-1])
    return basis


class Spline:
    r"""The spline :math:`v(x) = c_0 - \sum_i c_i |x - x_i|` through values at points.

    In one dimension this is the broken line through the points. In any number it has
    no length scale to choose, does not swing between the points, and stays flat
    beyond them.

    Parameters
    ----------
    points : array of shape (N, D)
    smoothing : float
        Added to the diagonal, in units of the points' coordinates: how far a
        point may be thought displaced.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn.rl.spline import Spline, distance_basis
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> coefficients = Spline(points, smoothing=1e-9).coefficients(np.array([0.0, 2.0, 4.0]))
    >>> np.round(distance_basis(np.array([[0.5], [2.0]]), points) @ coefficients, 6)
    array([1., 3.])
    """

    def __init__(self, points: Array, smoothing: float) -> None:
        n = len(points)
        system = np.ones((n + 1, n + 1))
        system[:n] = distance_basis(points, points)
        system[:n, :n] += smoothing * np.eye(n)
        system[n, n] = 0.0
        self._inverse = np.linalg.inv(system)[:, :n]

    def coefficients(self, values: Array) -> Array:
        """Coefficients of shape (N + 1,) of the spline through values of shape (N,)."""
        coefficients: Array = self._inverse @ values
        return coefficients
