"""Learning rows one by one, or by strides where that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from figmn._typing import Array
from figmn.kernels.doubts import MOST_COMPONENTS
from figmn.kernels.learning import NOVEL, SPURIOUS, Settings, learn
from figmn.kernels.moments import absorb
from figmn.kernels.strides import Ahead, room_ahead, stride

if TYPE_CHECKING:
    from figmn.components.plain import PlainComponents

_LEAST_ROWS = 500  # in a smaller chunk they are learnt one by one
_SHORTEST, _LONGEST = 125, 4000  # rows of a stride; powers of two would share lines of the cache
_SHORTEST_REST, _LONGEST_REST = 64, 2048  # rows learnt one by one, where strides do not pay
_DOUBT = 4  # rows that could be learnt together while one is learnt that is in doubt
_MATURE = 100  # rows of a component that are likely to allow for strides


class Pace:
    """The way of components through a chunk of rows.

    Strides become longer while they last, and shorter where they end early, or where
    more rows are in doubt than need be. Where most of them rightly are, rows are learnt
    one by one for ever longer times. Nothing but rounding depends on it.

    Parameters
    ----------
    components : PlainComponents
    rows : array of shape (N, D)
    weights : array of shape (N,)
    settings : Settings
    """

    def __init__(
        self, components: PlainComponents, rows: Array, weights: Array, settings: Settings
    ) -> None:
        self.components = components
        self.rows, self.weights, self.settings = rows, weights, settings
        self.done = 0
        self._ahead: Ahead | None = None
        self._length, self._rest = 2 * _SHORTEST, _SHORTEST_REST

    def learn(self) -> None:
        """Learn the rows."""
        count, state, settings = len(self.rows), self.components.state, self.settings
        makes_strides = (
            count >= _LEAST_ROWS
            and not settings.printed_rule
            and settings.retention == 1.0
            and settings.faded == 0.0
        )
        if not makes_strides:
            self._learn_singly(count)
            return
        is_mature = state.size[1] >= _MATURE * max(int(state.size[0]), 1)
        singly = 0 if is_mature else 2 * _SHORTEST
        while self.done < count:
            self._learn_singly(min(max(singly, self.done), count))
            singly = self._make_strides()

    def _learn_singly(self, stop: int) -> None:
        """Learn one by one the rows before ``stop``."""
        components, settings = self.components, self.settings
        while self.done < stop:
            start = self.done
            self.done, reason = learn(
                self.rows,
                self.weights,
                self.done,
                stop,
                components.state,
                settings,
                components.scratch,
            )
            self._note_moments(start, self.done + (reason == NOVEL))
            if reason == NOVEL:
                components.create(self.rows[self.done], float(self.weights[self.done]), settings)
                self.done += 1
            elif reason == SPURIOUS:
                components.prune(settings)

    def _make_strides(self) -> int:
        """Learn by strides; the row up to which to go on one by one."""
        state = self.components.state
        n_components, n_features = int(state.size[0]), self.rows.shape[1]
        may_grow = n_components < self.settings.max_components
        threshold = float(self.settings.thresholds[-1]) if may_grow else np.inf
        # Each stride tells all pairs of components apart, and updates their matrices.
        shortest = max(_SHORTEST, n_components * (2 * n_components + n_features // 2))
        self._length = max(self._length, shortest)
        ahead = self._room_ahead(n_components)
        while 0 < n_components <= MOST_COMPONENTS and (length := self._possible()) >= shortest:
            start = self.done
            self.done, singly, needless = stride(
                self.rows,
                self.weights,
                start,
                start + length,
                threshold,
                state,
                self.components.scratch,
                ahead,
            )
            self._note_moments(start, self.done)
            together = self.done - start - singly
            if self.done - start < length or 4 * together < length:
                return self.done + self._slow_down(together, length, shortest)
            longer = _DOUBT * needless < shortest
            self._length = 5 * length // 4 if longer else max(4 * length // 5, shortest)
            self._rest = _SHORTEST_REST
        return self.done + 2 * _SHORTEST

    def _note_moments(self, start: int, stop: int) -> None:
        """Let the columns' moments know rows, where the scale of new components follows them."""
        if self.settings.adaptive:
            rows, weights = self.rows[start:stop], self.weights[start:stop]
            absorb(self.components.state.moments, rows, weights)

    def _room_ahead(self, n_components: int) -> Ahead:
        """Room for strides with so many components."""
        if self._ahead is None or len(self._ahead.last) != n_components:
            n_rows, n_features = self.rows.shape
            self._ahead = room_ahead(min(n_rows, _LONGEST), n_components, n_features)
        return self._ahead

    def _possible(self) -> int:
        """Length of the next stride: no component may become spurious within it."""
        length = min(self._length, len(self.rows) - self.done, _LONGEST)
        if self.settings.prune_mass > 0.0:
            ages = self.components.ages[self.components.masses < self.settings.prune_mass]
            if len(ages):
                length = min(length, self.settings.prune_age - int(ages.max()))
        return length

    def _slow_down(self, together: int, length: int, shortest: int) -> int:
        """How many rows to go on one by one after a stride that has not lived up to its length."""
        self._length = (length + together) // 3
        if 3 * together >= shortest:  # it has paid nevertheless
            self._rest = _SHORTEST_REST
            return 1
        rest = self._rest
        self._rest = min(2 * rest, _LONGEST_REST)
        return rest
