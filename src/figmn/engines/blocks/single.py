r"""The only component of a mixture, as a precision matrix while it learns.

A whole matrix learns a block of rows in two products as large as the machine likes
them, in half the time that a triangular root takes; but a distance alone takes it
twice as long. So it pays where a single component learns many rows between questions.

Its entries lose digits as variables follow from each other, and with rows far off,
where a root does not. The largest *variance inflation*, of a variable over what all
others leave unexplained of it, bounds what rounding can do to it; so it serves only
while that is small.

With ``Z`` the rows' deviations from the mean, and ``A`` the precision but for a factor,
a block needs

.. math::

    W = Z A, \qquad G = Z W^\top, \qquad A' = A - V^\top V, \qquad
    V = L^{-1} H W, \quad I + H G H^\top = L L^\top

where ``H`` are the combinations of deviations that join the covariance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.linalg import lapack

from figmn._typing import Array
from figmn.engines.blocks.block_kernel import (
    LEAST_BASE_SCALE,
    OUT_OF_REACH,
    Steps,
    learn_in_span,
    no_steps,
)
from figmn.engines.blocks.lowrank_kernel import EXTREME, advance, corner_of
from figmn.kernels.blas import add_product, multiply_symmetric, solve_lower, subtract_squares
from figmn.kernels.rule import Rule

if TYPE_CHECKING:
    from figmn.engines.blocks.lowrank_components import LowRankComponents

_LARGEST_INFLATION: Final = 1e4
_LARGEST_STEP: Final = 1e2  # likewise, of a single row
_LEAST_VARIANCE: Final = 1e-280  # below it, a root knows better what a number can hold
_LEAST_LEFT: Final = 1e-60  # of a variance, before it is to be held in other units


class SinglePrecision:
    """The precision of a component, but for its factor.

    Parameters
    ----------
    root : array of shape (D, D)
        Lower triangular root of it.
    variances : array of shape (D,)
        Marginal ones.

    Attributes
    ----------
    sound : bool
        Whether no more than a few digits are lost in it.
    """

    def __init__(self, root: Array, variances: Array) -> None:
        self._units = np.sqrt(variances)
        # LAPACK sees the transpose U of the root, and makes U U' of it.
        upper = np.multiply(root, self._units).T
        self._precision = lapack.dlauum(upper, lower=0, overwrite_c=1)[0].T
        self._scratch = np.empty((2, 0, len(root)))
        self.sound = True

    @staticmethod
    def suits(root: Array, base_scale: float, variances: Array) -> bool:
        """Whether a component may be held as a precision matrix."""
        if variances.min() < _LEAST_VARIANCE:
            return False
        scaled = root * (np.sqrt(variances) / np.sqrt(base_scale))
        return bool(np.einsum("ij,ij->j", scaled, scaled).max() < _LARGEST_INFLATION)

    def root(self) -> Array:
        """Lower triangular root ``B`` of the precision ``B' B``, of shape (D, D)."""
        # With variables in reverse, it is the root that LAPACK computes.
        reverse = self._precision[::-1, ::-1].copy()
        lower, failure = lapack.dpotrf(reverse.T, lower=1, clean=1, overwrite_a=1)
        if failure or not np.isfinite(lower).all():  # which the bounds are to prevent
            raise np.linalg.LinAlgError("a precision matrix has become indefinite")
        return np.ascontiguousarray(lower.T[::-1, ::-1]) / self._units

    def learn(
        self, components: LowRankComponents, points: Array, weights: Array, rule: Rule
    ) -> tuple[int, int]:
        """Learn a block of complete rows; the first row not learnt, and the event there."""
        state = components.state
        size, base_scale = len(points), state.base_scales[0]
        if size > self._scratch.shape[1]:
            self._scratch = np.empty((2, *points.shape))
        deviations, turned = self._scratch[:, :size]
        products, distances = np.empty((size, size)), np.empty(size)
        usable = self._measure(
            points, state.means[0], base_scale, deviations, turned, products, distances
        )
        if usable < size:
            products = np.ascontiguousarray(products[:usable, :usable])
        steps = no_steps(1, usable)
        np.divide(products, base_scale, out=steps.products[0])
        steps.base_scales[0] = base_scale
        stop, event = learn_in_span(
            weights[:usable],
            points.shape[1],
            0,
            distances[np.newaxis, :usable],
            np.zeros(1, dtype=np.int64),
            np.zeros(1, dtype=np.bool_),
            steps,
            components.varying,
            rule,
            _LARGEST_STEP,
            *np.empty((2, 1)),
        )
        if steps.counts[0]:
            self._take_in(components, points[:usable], products, steps)
        components.note(points[:stop], weights[:stop], rule)
        if event == OUT_OF_REACH or stop == usable < size:
            self.sound = False  # for a root, the next row may be within reach
        return stop, event

    def _measure(
        self,
        points: Array,
        mean: Array,
        base_scale: float,
        deviations: Array,
        turned: Array,
        products: Array,
        distances: Array,
    ) -> int:
        """Write ``Z``, ``W``, ``G`` and squared distances of points, of shape (N, D).

        Returns the number of points before the first that is too extreme for products.
        """
        np.subtract(points, mean, out=deviations)
        with np.errstate(over="ignore"):
            np.divide(deviations, self._units, out=deviations)
        multiply_symmetric(deviations, self._precision, turned)
        add_product(1.0, deviations, turned.T, 0.0, products)
        squares = np.diagonal(products)
        extreme = np.flatnonzero(~(squares < EXTREME))
        usable = int(extreme[0]) if len(extreme) else len(points)
        np.divide(squares[:usable], base_scale, out=distances[:usable])
        return usable

    def _take_in(
        self, components: LowRankComponents, points: Array, products: Array, steps: Steps
    ) -> None:
        state, count = components.state, int(steps.counts[0])
        combined = steps.joining[0, :count]
        joining, turned = self._scratch[0, :count], self._scratch[1, : len(points)]
        corner = np.empty((count, count))
        corner_of(combined, products, corner)
        solve_lower(corner, combined)
        advance(
            points,
            steps.taken[0, :count],
            steps.shares[0, :count],
            combined,
            turned,
            state.means[0],
            state.marginals[0],
            joining,
        )
        subtract_squares(joining, self._precision)
        left = state.marginals[0] / self._units**2
        inflation = np.diagonal(self._precision) * (left / state.base_scales[0])
        self.sound = bool(np.all((inflation > 0.0) & (inflation < _LARGEST_INFLATION)))
        self.sound &= left.min() > _LEAST_LEFT and state.marginals[0].min() > _LEAST_VARIANCE
        if state.base_scales[0] < LEAST_BASE_SCALE:
            self._precision /= state.base_scales[0]
            state.base_scales[0] = 1.0
