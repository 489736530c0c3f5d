"""The only component of a mixture, its precision held whole while it learns.

A whole matrix learns a block of rows in two products as large as the machine likes
them, in half the time that a triangular root takes; but a distance alone takes it
twice as long. So it pays where a single component learns many rows between questions.

Its entries lose digits as variables follow from each other, and with rows far off,
where a root does not. The largest *variance inflation*, of a variable over what all
others leave unexplained of it, bounds what rounding can do to it; so it serves only
while that is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.linalg import lapack

from figmn._typing import Array
from figmn.kernels.blocks import ASTONISHING, LEAST_KEPT, STALE, Walked, unwalked, walk
from figmn.kernels.learning import NOVEL, Settings
from figmn.kernels.lowrank import advance
from figmn.kernels.moments import absorb
from figmn.kernels.whole import combine, join, measure

if TYPE_CHECKING:
    from figmn.components.lazy import LazyComponents

_LARGEST_INFLATION: Final = 1e4
_LARGEST_STEP: Final = 1e2  # likewise, of a single row
_LEAST_VARIANCE: Final = 1e-280  # below it, a root knows better what a number can hold
_LEAST_LEFT: Final = 1e-60  # of a variance, before it is to be held in other units


class Whole:
    """The precision of a component, but for its factor ``kept``.

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
    def suits(root: Array, kept: float, variances: Array) -> bool:
        """Whether a component may be held whole."""
        if variances.min() < _LEAST_VARIANCE:
            return False
        scaled = root * (np.sqrt(variances) / np.sqrt(kept))
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
        self,
        held: LazyComponents,
        points: Array,
        weights: Array,
        settings: Settings,
        first_absorbed: bool,
    ) -> tuple[int, bool, bool]:
        """Learn a block of complete rows, as :mod:`figmn.components.blocks` does on roots."""
        size, kept = len(points), held.kept[0]
        if size > self._scratch.shape[1]:
            self._scratch = np.empty((2, *points.shape))
        deviations, turned = self._scratch[:, :size]
        products, distances = np.empty((size, size)), np.empty(size)
        usable = measure(
            points,
            held.means[0],
            self._units,
            self._precision,
            kept,
            deviations,
            turned,
            products,
            distances,
        )
        if usable < size:
            points, weights = points[:usable], weights[:usable]
            products = np.ascontiguousarray(products[:usable, :usable])
        walked = unwalked(1, usable)
        np.divide(products, kept, out=walked.products[0])
        walked.kept[0] = kept
        done, reason, begun = walk(
            points,
            weights,
            0,
            int(first_absorbed),
            distances[np.newaxis, :usable],
            np.zeros(1, dtype=np.int64),
            np.zeros(1, dtype=np.bool_),
            walked,
            held.standing,
            settings,
            _LARGEST_STEP,
            np.empty((2, 1)),
        )
        if settings.adaptive:
            new = slice(int(first_absorbed), begun)
            absorb(held.moments, points[new], weights[new])
        if walked.counts[0]:
            self._take_in(held, points, products, walked)
        if reason == NOVEL:
            held.create(points[done], weights[done], settings)
            return done + 1, False, False
        if reason == ASTONISHING or done == usable < size:
            self.sound = False  # for a root, the next row may be within reach
        return done, False, reason in (ASTONISHING, STALE) or (first_absorbed and done == 0)

    def _take_in(
        self, held: LazyComponents, points: Array, products: Array, walked: Walked
    ) -> None:
        count = int(walked.counts[0])
        steps = walked.steps[0, :count]
        joining, turned = self._scratch[0, :count], self._scratch[1, : len(points)]
        combine(steps, products)
        advance(
            points,
            walked.taken[0, :count],
            walked.shares[0, :count],
            steps,
            turned,
            held.means[0],
            held.marginals[0],
            joining,
        )
        left = held.marginals[0] / self._units**2
        self.sound = join(joining, self._precision, left / held.kept[0], _LARGEST_INFLATION)
        self.sound &= left.min() > _LEAST_LEFT and held.marginals[0].min() > _LEAST_VARIANCE
        if held.kept[0] < LEAST_KEPT:
            self._precision /= held.kept[0]
            held.kept[0] = 1.0
