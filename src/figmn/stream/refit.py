"""A fit that is made while rows come in: some of the work is done with each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from figmn._typing import Array
from figmn.batch.slices import Slices, cost, finished
from figmn.stream.row_buffer import RowBuffer

if TYPE_CHECKING:
    from figmn.stream.streaming import Streaming

BUDGET: Final = 6000.0
"""Microseconds of work that are done with each row of up to a hundred variables."""

_FEW_VARIABLES: Final = 100  # with more of them, as many times more work

_PIECE: Final = 8  # rows that a fit learns at a time, of those that came while it was made


class Refit(ABC):
    """What a stream is to go on with, fitted to rows up to now while further ones come.

    How much of the work is done depends on how many rows have come, and on nothing else.
    So the same rows lead to the same fit, in whatever chunks they come, and a copy or a
    file needs to hold but what the work began with, and the rows since.

    Parameters
    ----------
    n_features : int
    """

    def __init__(self, n_features: int) -> None:
        self.later = RowBuffer.none(n_features)  # rows since
        self.arrived = 0  # how many of them count for the work
        self.result: Streaming | None = None
        self._slices: Slices[Streaming] | None = None
        self._spent = 0.0
        self._budget = BUDGET * max(1.0, n_features / _FEW_VARIABLES)

    @abstractmethod
    def fit(self) -> Slices[Streaming]:
        """Fit what is to take the place of the stream; it has learnt none of the later rows."""

    def pass_rows(self, rows: Array, weights: Array) -> int:
        """Let rows come in.

        Parameters
        ----------
        rows : array of shape (N, D)
        weights : array of shape (N,)

        Returns
        -------
        int
            After how many of them the work was finished, or N. The result has learnt these.
        """
        before = self.later, self.arrived
        self.later = self.later.with_more(rows, weights)
        try:
            for position in np.flatnonzero((weights > 0.0) & ~np.isnan(rows).all(axis=1)).tolist():
                self.arrived += 1
                if self._go_on():
                    return int(position) + 1
        except BaseException:  # such as an interrupt: what it has broken off is done again
            self._slices, (self.later, self.arrived) = None, before
            raise
        return len(rows)

    def finish(self) -> Streaming:
        """Do the rest of the work at once."""
        if self.result is None:
            self._begin()
            assert self._slices is not None
            self.result = finished(self._slices)
        return self.result

    def _begin(self) -> None:
        if self._slices is None:  # for the first time, or in a copy
            self._slices, self._spent = self._work(), 0.0

    def _go_on(self) -> bool:
        """Do what is due by now; whether all is done."""
        self._begin()
        assert self._slices is not None
        try:
            while self._spent < self._budget * self.arrived:
                self._spent += next(self._slices)
        except StopIteration as stop:
            self.result, self._slices = stop.value, None
            return True
        return False

    def _work(self) -> Slices[Streaming]:
        """Fit, and then learn the rows that have come in the meantime."""
        streaming = yield from self.fit()
        learnt, n_features = 0, self.later.n_features
        while learnt < self.arrived:
            part = slice(learnt, min(learnt + _PIECE, self.arrived))
            streaming = streaming.learn(self.later.rows[part], self.later.weights[part])
            learnt = part.stop
            yield cost(4.0 * _PIECE * streaming.components.n_components * n_features**2)
        return streaming

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_slices": None}
