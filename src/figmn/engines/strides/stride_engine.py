"""The engine that learns rows by strides where that pays, and else one by one."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.engines.rowwise.row_engine import RowEngine
from figmn.engines.strides.certainty import MOST_COMPONENTS
from figmn.engines.strides.stride_kernel import StridePlan, room_for_stride, stride
from figmn.kernels.rule import NOTHING, Rule

_LEAST_ROWS = 500  # in a smaller chunk they are learnt one by one
_SHORTEST, _LONGEST = 125, 4000  # rows of a stride; powers of two would share lines of the cache
_SHORTEST_REST, _LONGEST_REST = 64, 2048  # rows learnt one by one, where strides do not pay
_UNCERTAIN = 4  # an uncertain row costs as much as this many certain ones
_MATURE = 100  # rows of a component that are likely to allow for strides


class StrideEngine(RowEngine):
    """Strides, and stretches of rows one by one between them.

    Strides become longer while they last, and shorter where they end early, or where
    more rows are uncertain than need be. Where most rows are uncertain, longer and longer
    stretches are learnt one by one. Nothing but rounding depends on it.

    Parameters
    ----------
    components : DenseComponents
    rows : array of shape (N, D)
    weights : array of shape (N,)
    rule : Rule
    """

    __slots__ = ("_length", "_plan", "_rest", "_singly_until")

    def __init__(
        self, components: DenseComponents, rows: Array, weights: Array, rule: Rule
    ) -> None:
        super().__init__(components, rows, weights, rule)
        self._plan: StridePlan | None = None
        self._length, self._rest = 2 * _SHORTEST, _SHORTEST_REST
        is_mature = components.n_learnt >= _MATURE * max(components.n_components, 1)
        self._singly_until = 0 if is_mature else 2 * _SHORTEST

    @staticmethod
    def suits(n_rows: int, rule: Rule) -> bool:
        """Whether a chunk of rows may be learnt by strides."""
        return (
            n_rows >= _LEAST_ROWS
            and not rule.printed_rule
            and rule.retention == 1.0
            and rule.faded == 0.0
        )

    def advance(self, start: int) -> tuple[int, int]:
        """Learn rows from ``start`` on, one by one or by strides."""
        if start < self._singly_until:
            return self.advance_to(start, min(self._singly_until, len(self.rows)))
        return self._stride(start), NOTHING

    def _stride(self, start: int) -> int:
        """Make strides as long as they pay, and say how long to go on one by one then."""
        n_components, n_features = self.components.n_components, self.rows.shape[1]
        may_grow = n_components < self.rule.max_components
        threshold = float(self.rule.thresholds[-1]) if may_grow else np.inf
        # Each stride tells all pairs of components apart, and updates their matrices.
        shortest = max(_SHORTEST, n_components * (2 * n_components + n_features // 2))
        self._length = max(self._length, shortest)
        while (
            0 < n_components <= MOST_COMPONENTS and (length := self._possible(start)) >= shortest
        ):
            stop, singly, needless = stride(
                self.rows,
                self.weights,
                start,
                start + length,
                threshold,
                self.rule.adaptive,
                self.components.state,
                self.components.scratch(),
                self._room(n_components),
            )
            pooled, complete = stop - start - singly, stop - start == length
            start = stop
            if not complete or 4 * pooled < length:
                self._singly_until = start + self._slow_down(pooled, length, shortest)
                return start
            longer = _UNCERTAIN * needless < shortest
            self._length = 5 * length // 4 if longer else max(4 * length // 5, shortest)
            self._rest = _SHORTEST_REST
        self._singly_until = start + 2 * _SHORTEST
        return start

    def _room(self, n_components: int) -> StridePlan:
        """Room for strides with so many components."""
        if self._plan is None or len(self._plan.last) != n_components:
            n_rows, n_features = self.rows.shape
            self._plan = room_for_stride(min(n_rows, _LONGEST), n_components, n_features)
        return self._plan

    def _possible(self, start: int) -> int:
        """Length of the next stride: no component may become spurious within it."""
        length = min(self._length, len(self.rows) - start, _LONGEST)
        if self.rule.prune_mass > 0.0:
            ages = self.components.ages[self.components.masses < self.rule.prune_mass]
            if len(ages):
                length = min(length, self.rule.prune_age - int(ages.max()))
        return length

    def _slow_down(self, pooled: int, length: int, shortest: int) -> int:
        """How many rows to go on one by one after a stride that has not lived up to its length."""
        self._length = (length + pooled) // 3
        if 3 * pooled >= shortest:  # it has paid nevertheless
            self._rest = _SHORTEST_REST
            return 1
        rest = self._rest
        self._rest = min(2 * rest, _LONGEST_REST)
        return rest
