"""The engine that learns rows block by block, in matrix products."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array, Index
from figmn.engines.blocks import lowrank_questions as questions
from figmn.engines.blocks.block import Block
from figmn.engines.blocks.block_kernel import INACCURATE, STALE
from figmn.engines.blocks.lowrank_components import LowRankComponents
from figmn.engines.responsibilities import normalised
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.row_kernel import learn, room_for
from figmn.kernels.compiler import interpreted
from figmn.kernels.rule import (
    NOTHING,
    NOVEL,
    SPURIOUS,
    Rule,
    any_spurious,
    fade,
    is_novel,
    only_updating,
    prunes,
)

_BLOCK: Final = 64  # rows learnt at a time


class BlockEngine:
    """Blocks of complete rows, and one by one those that no block can learn.

    These are rows with missing entries, and rows so far off that products would lose their
    digits: the compiled loop over rows learns them, for the components concerned.

    Parameters
    ----------
    components : LowRankComponents
    rows : array of shape (N, D)
    weights : array of shape (N,)
    rule : Rule
    """

    def __init__(
        self, components: LowRankComponents, rows: Array, weights: Array, rule: Rule
    ) -> None:
        self.components, self.rule = components, rule
        self._n_rows = len(rows)
        self._positions: Index | None = None  # of the rows that count, if some do not
        self._incomplete: Index = np.empty(0, dtype=np.intp)
        unknown = np.isnan(rows)
        if unknown.any() or not weights.all():
            useful = (weights > 0.0) & ~unknown.all(axis=1)
            self._positions = np.append(np.flatnonzero(useful), self._n_rows)
            rows, weights, unknown = rows[useful], weights[useful], unknown[useful]
            self._incomplete = np.flatnonzero(unknown.any(axis=1))
        self.rows, self.weights = rows, weights
        self._may_be_single = components.expect(self._n_rows) and len(self._incomplete) == 0
        self._block: Block | None = None
        self._first = 0  # its first row
        self._out_of_reach = False  # whether the next row is beyond any block

    def advance(self, start: int) -> tuple[int, int]:
        """Learn a block of rows from ``start`` on, or a single one."""
        done = start if self._positions is None else int(np.searchsorted(self._positions, start))
        if done == len(self.rows):
            return self._n_rows, NOTHING
        if self._block is not None:
            self._block.add_component()
            stop, event = self._advance_block(self._block)
        else:
            later = self._incomplete[np.searchsorted(self._incomplete, done) :]
            end = int(later[0]) if len(later) else len(self.rows)
            if self._out_of_reach or end == done:
                self._out_of_reach = False
                stop, event = self._advance_row(done)
            else:
                stop, event = self._begin_block(done, min(done + _BLOCK, end))
        return stop if self._positions is None else int(self._positions[stop]), event

    def _begin_block(self, start: int, stop: int) -> tuple[int, int]:
        """Learn a block of complete rows, as far as that goes."""
        rows, weights = self.rows[start:stop], self.weights[start:stop]
        if self._may_be_single:
            single = self.components.begin_single(len(rows))
            if single is not None:
                learnt, event = single.learn(self.components, rows, weights, self.rule)
                return start + learnt, event if event in (NOVEL, SPURIOUS) else NOTHING
        self.components.end_single()
        self._first = start
        return self._advance_block(Block(self.components, rows, weights, self.rule))

    def _advance_block(self, block: Block) -> tuple[int, int]:
        """Go on with a block, which stays open if a row starts a component."""
        event = block.advance()
        stop, after = self._first + block.done, block.done + (event == NOVEL)
        if event == NOVEL and after < block.usable:
            self._block = block
            return stop, NOVEL
        block.finish()
        self._block = None
        if event == SPURIOUS:
            return stop, SPURIOUS
        self._out_of_reach = after < len(block) and event not in (STALE, INACCURATE)
        return stop, NOVEL if event == NOVEL else NOTHING

    def _advance_row(self, t: int) -> tuple[int, int]:
        """Learn one row of any kind by the loop over rows, on components that gain from it."""
        components, rule = self.components, self.rule
        row, weight = self.rows[t : t + 1], self.weights[t : t + 1]
        components.end_single()
        distances, log_joint = questions.evaluated(components, row)
        n_known, count = int(np.sum(~np.isnan(row))), components.n_components
        if interpreted(is_novel)(count, distances.min(initial=np.inf), n_known, rule):
            return t, NOVEL
        if rule.retention < 1.0:
            fade(components.masses, count, weight[0], rule)
        masses = components.masses
        gaining = np.flatnonzero(masses + weight * normalised(log_joint)[0] != masses)
        components.ages[np.setdiff1d(np.arange(count), gaining)] += 1
        part = dense_state.selected(components, gaining)
        part.moments[:] = components.moments
        updating = only_updating(rule, len(gaining))
        learn(row, weight, 0, 1, part, updating, room_for(len(gaining), components.n_features))
        components.take(part, gaining)
        components.note(row, weight, rule)
        may_prune = interpreted(prunes)(rule)
        if may_prune and any_spurious(count, components.masses, components.ages, rule):
            return t + 1, SPURIOUS
        return t + 1, NOTHING
