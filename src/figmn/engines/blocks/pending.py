"""Rows that have joined a component's covariance, but not yet its base."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.engines.blocks.lowrank_kernel import cholesky, inner_products, restore
from figmn.kernels.blas import solve_lower


class Pending:
    """The matrices ``F`` and ``L`` of the low-rank kernel, with room to grow.

    Parameters
    ----------
    rows : array of shape (R, D)
        ``F``.
    factor : array of shape (R, R)
        ``L``.
    """

    __slots__ = ("_count", "_factor", "_rows")

    def __init__(self, rows: Array, factor: Array) -> None:
        self._rows, self._factor, self._count = rows, factor, len(rows)

    @classmethod
    def none(cls, n_features: int) -> Pending:
        """Nothing is pending."""
        return cls(np.empty((0, n_features)), np.empty((0, 0)))

    @classmethod
    def of(cls, joining: Array) -> Pending:
        """The form of rows ``Y``, of shape (R, D), which are overwritten."""
        products = np.empty((len(joining), len(joining)))
        inner_products(joining, joining[:, :0].T, products)
        products[np.diag_indices_from(products)] += 1.0
        cholesky(products, 1.0)
        solve_lower(products, joining)
        return cls(joining, products)

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Array:
        """``F``, of shape (R, D)."""
        return self._rows[: self._count]

    @property
    def factor(self) -> Array:
        """``L``, of shape (R, R)."""
        return self._factor[: self._count, : self._count]

    def append(self, rows: Array, crossing: Array, corner: Array) -> None:
        """Add C rows to ``F``, and to ``L`` the rows ``[crossing, corner]``."""
        before, after = self._count, self._count + len(rows)
        if after > len(self._rows):
            # A little room only: there may be a thousand of these.
            room = after + max(4, after // 4)
            larger, wider = np.empty((room, rows.shape[1])), np.zeros((room, room))
            larger[:before], wider[:before, :before] = self.rows, self.factor
            self._rows, self._factor = larger, wider
        self._rows[before:after] = rows
        self._factor[before:after, :before] = crossing
        self._factor[before:after, before:after] = corner
        self._count = after

    def restored(self, further: int = 0) -> Array:
        """``Y = L F``, with empty room for further rows after it."""
        joined = np.empty((self._count + further, self._rows.shape[1]))
        restore(np.ascontiguousarray(self.factor), self.rows, joined[: self._count])
        return joined
