"""The engine that learns one row after the other."""

from __future__ import annotations

from figmn._typing import Array
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.engines.rowwise.row_kernel import learn
from figmn.kernels.rule import Rule


class RowEngine:
    """Rows one by one, in a compiled loop.

    Parameters
    ----------
    components : DenseComponents
    rows : array of shape (N, D)
    weights : array of shape (N,)
    rule : Rule
    """

    __slots__ = ("components", "rows", "rule", "weights")

    def __init__(
        self, components: DenseComponents, rows: Array, weights: Array, rule: Rule
    ) -> None:
        self.components = components
        self.rows = rows
        self.weights = weights
        self.rule = rule

    def advance(self, start: int) -> tuple[int, int]:
        """Learn rows from ``start`` on."""
        return self.advance_to(start, len(self.rows))

    def advance_to(self, start: int, stop: int) -> tuple[int, int]:
        """Learn rows from ``start`` to before ``stop``."""
        components = self.components
        return learn(
            self.rows, self.weights, start, stop, components.state, self.rule, components.scratch()
        )
