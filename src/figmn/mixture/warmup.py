"""Rows held back until they have shown the scale of their columns."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array


class HeldRows:
    """The first rows of a stream, and their weights.

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
    """

    def __init__(self, rows: Array, weights: Array) -> None:
        self.rows = rows
        self.weights = weights

    @classmethod
    def none(cls, n_features: int) -> HeldRows:
        """Hold nothing yet."""
        return cls(np.empty((0, n_features)), np.empty(0))

    def __len__(self) -> int:
        return len(self.rows)

    def with_more(self, rows: Array, weights: Array) -> HeldRows:
        """These and further rows, but for rows that say nothing."""
        useful = (weights > 0.0) & ~np.isnan(rows).all(axis=1)
        return HeldRows(
            np.vstack([self.rows, rows[useful]]),
            np.concatenate([self.weights, weights[useful]]),
        )

    def with_zeros(self, n_new: int) -> HeldRows:
        """The same rows with further columns of zeros."""
        return HeldRows(np.hstack([self.rows, np.zeros((len(self), n_new))]), self.weights)

    def split(self, count: int) -> tuple[HeldRows, HeldRows]:
        """The first rows, and the others."""
        return (
            HeldRows(self.rows[:count], self.weights[:count]),
            HeldRows(self.rows[count:], self.weights[count:]),
        )
