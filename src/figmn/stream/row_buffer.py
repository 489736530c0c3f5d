"""Rows that are held back, with room to grow."""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import cache
from typing import Final, Self

import numpy as np

from figmn._typing import AnyArray, Array

_GROWTH: Final = 1.2  # of rows, from step to step
_MOST_ROWS: Final = 2**62


class RowBuffer:
    """The first rows of a stream, and what comes with each.

    A buffer never changes: with more rows it is another one, which has its arrays in common
    with the first where there is room behind that.

    Parameters
    ----------
    rows : array of shape (N, D)
    *others : arrays of shape (N,)
        One or more; the last are weights.
    """

    def __init__(self, rows: Array, *others: AnyArray) -> None:
        self._room = (rows, *others)
        self._count = len(rows)

    @classmethod
    def none(cls, n_features: int, *kinds: type) -> Self:
        """Hold nothing yet, with other columns of these kinds before the weights."""
        others: list[AnyArray] = [np.empty(0, dtype=kind) for kind in kinds]
        return cls(np.empty((0, n_features)), *others, np.empty(0))

    def __len__(self) -> int:
        return self._count

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """Rows, others, weights."""
        return tuple(values[: self._count] for values in self._room)

    @property
    def rows(self) -> Array:
        """Shape (N, D)."""
        return self._room[0][: self._count]

    @property
    def weights(self) -> Array:
        """Shape (N,)."""
        return self._room[-1][: self._count]

    @property
    def n_features(self) -> int:
        """D."""
        return int(self._room[0].shape[1])

    def with_more(self, *arrays: AnyArray) -> Self:
        """These and further rows, but for rows that say nothing."""
        rows, weights = arrays[0], arrays[-1]
        useful = (weights > 0.0) & ~np.isnan(rows).all(axis=1)
        if not useful.all():
            arrays = tuple(values[useful] for values in arrays)
        count = self._count + len(arrays[0])
        room = self._room
        if count > len(room[0]):
            room = tuple(_enlarged(values, self._count, count) for values in room)
        for values, new in zip(room, arrays, strict=True):
            values[self._count : count] = new
        longer = type(self)(*room)
        longer._count = count
        return longer

    def with_zeros(self, n_new: int) -> Self:
        """The same rows with further columns of zeros."""
        wider = np.hstack([self.rows, np.zeros((len(self), n_new))])
        return type(self)(wider, *self.arrays[1:])

    def split(self, count: int) -> tuple[Self, Self]:
        """The first rows, and the others."""
        kind = type(self)
        return (
            kind(*(values[:count] for values in self.arrays)),
            kind(*(values[count:] for values in self.arrays)),
        )


def _enlarged(values: AnyArray, used: int, needed: int) -> AnyArray:
    larger = np.empty((max(needed, 2 * used), *values.shape[1:]), dtype=values.dtype)
    larger[:used] = values[:used]
    return larger


def weight_after(weights: Array) -> Array:
    """The weight of all rows after each, of shape (N,); never negative by rounding."""
    return np.append(np.cumsum(weights[:0:-1])[::-1], 0.0)


def last_step(count: int, least: int) -> int:
    """The largest step up to ``count`` on the way from ``least``, in steps of a fifth."""
    steps = _steps(least, _GROWTH)
    return steps[max(bisect_right(steps, count) - 1, 0)]


def next_step(count: int, least: int, growth: float) -> int:
    """The smallest step beyond ``count``, where each is so many times the one before."""
    steps = _steps(least, growth)
    return steps[bisect_right(steps, count)]


@cache
def _steps(least: int, growth: float) -> list[int]:
    steps = [least]
    while steps[-1] < _MOST_ROWS:
        steps.append(math.ceil(growth * steps[-1]))
    return steps
