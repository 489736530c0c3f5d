"""Learning rows one by one, or by strides where that pays."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.kernels.learning import Settings, State, learn
from figmn.kernels.moments import absorb_all
from figmn.kernels.strides import stride

_LEAST_ROWS = 256  # fewer are learnt one by one
_SHORTEST, _LONGEST = 250, 2000  # rows of a stride: powers of two would share lines of the cache
_LONGEST_REST = 2048  # rows learnt one by one where strides do not pay
_MOST_COMPONENTS = 64  # of more, too many pairs would have to be told apart


class Pace:
    """The way through a chunk of rows.

    Strides become longer while they last, and shorter where rows are in doubt.
    Where most of them are, rows are learnt one by one for ever longer times.
    Nothing but rounding depends on it.

    Parameters
    ----------
    rows : array of shape (N, D)
    weights : array of shape (N,)
    settings : Settings
    """

    def __init__(self, rows: Array, weights: Array, settings: Settings) -> None:
        self.rows, self.weights, self.settings = rows, weights, settings
        self.done = 0
        self.makes_strides = (
            len(rows) >= _LEAST_ROWS
            and not settings.printed_rule
            and settings.retention == 1.0
            and settings.faded == 0.0
        )
        self._length = self._rest = self._pause = _SHORTEST

    def learn(self, state: State) -> bool:
        """Learn the rows; whether all are learnt, or the state must have more room first."""
        count = len(self.rows)
        if not self.makes_strides:
            self.done = learn(self.rows, self.weights, self.done, count, state, self.settings)
            return self.done == count
        while self.done < count:
            stop = min(self.done + self._pause, count)
            self.done = learn(self.rows, self.weights, self.done, stop, state, self.settings)
            if self.done < stop:
                return False
            self._pause = self._rest
            self._make_strides(state)
        return True

    def _make_strides(self, state: State) -> None:
        """Learn by strides until a row that is in doubt."""
        n_components = int(state.size[0])
        may_grow = n_components < self.settings.max_components
        if n_components > _MOST_COMPONENTS or (may_grow and n_components == len(state.masses)):
            return
        threshold = float(self.settings.thresholds[-1]) if may_grow else np.inf
        length = self._possible(state)
        while length >= _SHORTEST:
            start = self.done
            self.done = stride(self.rows, self.weights, start, start + length, state, threshold)
            if self.settings.adaptive:
                done = slice(start, self.done)
                absorb_all(state.moments, self.rows[done], self.weights[done])
            if self.done - start < length:
                self._slow_down(self.done - start, length)
                return
            self._rest = _SHORTEST
            self._length = min(2 * length, _LONGEST)
            length = self._possible(state)

    def _possible(self, state: State) -> int:
        """Length of the next stride: no component may become spurious within it."""
        length = min(self._length, len(self.rows) - self.done)
        if self.settings.prune_mass > 0.0:
            count = int(state.size[0])
            ages = state.ages[:count][state.masses[:count] < self.settings.prune_mass]
            if len(ages):
                length = min(length, self.settings.prune_age - int(ages.max()))
        return length

    def _slow_down(self, ran: int, length: int) -> None:
        """Take account of a stride that ended early."""
        if 3 * ran >= length:
            self._pause = 1
            self._rest = _SHORTEST
            self._length = max(ran, _SHORTEST)
        else:
            self._pause = self._rest
            self._rest = min(2 * self._rest, _LONGEST_REST)
            self._length = max(length // 2, _SHORTEST)
