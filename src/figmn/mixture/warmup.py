"""Rows held back until they have shown the scale of their columns, or their components."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array

_REFITS: Final = 1.2  # rows against those at the last fit, when it is time for the next


class HeldRows:
    """The first rows of a stream, and their weights.

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
    together : int
        So many of them, at least, are to be fitted together.
    """

    def __init__(self, rows: Array, weights: Array, together: int = 0) -> None:
        self.rows = rows
        self.weights = weights
        self.together = together

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
            self.together,
        )

    def with_zeros(self, n_new: int) -> HeldRows:
        """The same rows with further columns of zeros."""
        wider = np.hstack([self.rows, np.zeros((len(self), n_new))])
        return HeldRows(wider, self.weights, self.together)

    def fitted_together(self, least: int) -> int:
        """How many of the first rows are fitted together, while the rest are learnt in order.

        It grows in steps of a fifth, so that a stream that is asked for answers
        after every row is fitted anew some thirty times, and not a thousand.
        """
        return max(last_refit(len(self), least), self.together)

    def split(self, count: int) -> tuple[HeldRows, HeldRows]:
        """The first rows, and the others."""
        return (
            HeldRows(self.rows[:count], self.weights[:count]),
            HeldRows(self.rows[count:], self.weights[count:]),
        )


def weight_after(weights: Array) -> Array:
    """The weight of all rows after each, of shape (N,); never negative by rounding."""
    return np.append(np.cumsum(weights[:0:-1])[::-1], 0.0)


def last_refit(count: int, least: int) -> int:
    """The largest step up to ``count`` on the way from ``least``, in steps of a fifth."""
    reached = least
    while (following := int(np.ceil(_REFITS * reached))) <= count:
        reached = following
    return reached
