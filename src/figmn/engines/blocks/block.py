"""One block of rows, on its way through the components.

A block's rows are measured against all components at once; then a loop in
coefficients (:mod:`figmn.engines.blocks.block_kernel`) learns them one after the other,
stopping for components that are touched for the first time and for rows that
start one; at the end every touched component takes in its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.engines.blocks.block_kernel import (
    LARGEST_STEP,
    LEAST_BASE_SCALE,
    OUT_OF_REACH,
    UNPREPARED,
    Steps,
    learn_in_span,
    no_steps,
)
from figmn.engines.blocks.lowrank_kernel import advance, inner_products, measure, project, whiten
from figmn.kernels.compiler import LOG_NOTHING, LOG_ZERO
from figmn.kernels.evaluation import likely
from figmn.kernels.rule import Rule

if TYPE_CHECKING:
    from figmn.engines.blocks.lowrank_components import LowRankComponents

_FOLD: Final = 64  # pending rows that are worth a pass over a dense base
_FOLD_WIDE: Final = 192  # the same, where it does not fit into the cache
_WIDE: Final = 900  # variables


class Block:
    """Complete rows of positive weight, and what they do to the components.

    Parameters
    ----------
    components : LowRankComponents
    points : array of shape (B, D)
    weights : array of shape (B,)
    rule : Rule

    Attributes
    ----------
    done : int
        The first row not learnt.
    usable : int
        Number of rows before the first that is too extreme.
    distances : array of shape (K, B)
        At the start of the block.
    slots : int array of shape (K,)
        Where in ``steps`` a component is, or -1.
    wanted : bool array of shape (K,)
        Components that need a place there.
    steps : Steps
    """

    def __init__(
        self, components: LowRankComponents, points: Array, weights: Array, rule: Rule
    ) -> None:
        self._components, self._points, self._weights = components, points, weights
        self._rule = rule
        self.done = self._noted = 0
        self._whitened: dict[int, Array | None] = {}
        self._along: dict[int, Array] = {}
        self._first: dict[int, int] = {}
        self._touched: list[tuple[int, Array]] = []  # component, products at the start
        self._scratch = np.empty(points.shape)
        self.usable = len(points)
        count = components.n_components
        self.distances = np.empty((count, len(points)))
        self.slots = np.full(count, -1)
        if len(points) == 1 and count > 1:
            self.wanted = self._measure_the_likely(weights[0], rule)
        else:
            for k in range(count):
                self._measure(k, 0)
            # A single component is sure to gain.
            self.wanted = np.full(count, count == 1)
        self.steps = no_steps(max(int(self.wanted.sum()), 1), self.usable)
        if self.usable < len(points):
            self._points = points[: self.usable]
            self.distances = np.ascontiguousarray(self.distances[:, : self.usable])
            for k, along in self._along.items():
                self._along[k] = np.ascontiguousarray(along[:, : self.usable])
                whitened = self._whitened[k]
                self._whitened[k] = None if whitened is None else whitened[: self.usable]
        if self.usable > 0 and self.wanted.any():
            self.prepare()

    def __len__(self) -> int:
        return len(self._weights)

    def _measure_the_likely(self, weight: float, rule: Rule) -> AnyArray:
        """Measure a single row, exactly only against components that it may change.

        Nor does it start a component if it is near enough to one; the distances of
        the others are then bounds.

        Returns
        -------
        bool array of shape (K,)
            Which have been measured.
        """
        components, guess = self._components, np.empty(1, dtype=np.int64)
        likely(self._points, components.means, components.marginals, guess, self.distances)
        first, distances = int(guess[0]), self.distances[:, 0]
        self._measure(first, 0)
        log_joint = np.log(components.masses) - 0.5 * (components.log_dets + distances)
        margins = np.where(weight <= components.masses, LOG_NOTHING, LOG_ZERO)
        measured: AnyArray = log_joint > log_joint[first] - margins
        threshold = rule.thresholds[components.n_features]
        if not distances[first] < threshold:
            measured |= distances < threshold
        measured[first] = False
        for k in np.flatnonzero(measured):
            self._measure(int(k), 0)
        measured[first] = True
        return measured

    def _measure(self, k: int, first: int) -> None:
        """Distances of the rows to a component, and what is worth keeping of the way there.

        Rows before ``first`` do not matter to it, nor do rows that are too extreme.
        """
        components = self._components
        for _ in range(2):
            root, pending = components.roots[k], components.pending[k].rows
            points = self._points[first:]
            whitened = np.empty(points.shape) if len(root) else self._scratch[: len(points)]
            along = np.empty((len(pending), len(points)))
            usable, precise = measure(
                points,
                components.means[k],
                components.widths[k],
                root,
                pending,
                components.base_scales[k],
                whitened,
                along,
                self.distances[k, first:],
            )
            if precise:
                break
            components.fold(k, components.pending[k].restored())
        self.usable = min(self.usable, first + usable)
        self._first[k] = first
        self._along[k] = along
        self._whitened[k] = whitened if len(root) else None

    def add_component(self) -> None:
        """Take in a component that the row where the block stopped has started."""
        k = len(self.slots)
        self.done = self._noted = self.done + 1
        self.slots = np.append(self.slots, -1)
        self.wanted = np.append(self.wanted, False)
        self.distances = np.vstack([self.distances, np.empty((1, len(self._points)))])
        self._measure(k, self.done)

    def prepare(self) -> None:
        """Compute the inner products of the rows under the wanted components."""
        components = self._components
        for k in map(int, np.flatnonzero(self.wanted)):
            slot = self.slots[k] = len(self._touched)
            if slot == len(self.steps.counts):
                self.steps = _enlarged(self.steps)
            if len(self._points) == 1:  # its distance says it all
                products = self.distances[k : k + 1] * components.base_scales[k]
            else:
                products = np.empty((len(self._points), len(self._points)))
                inner_products(self._whiten(k), self._along[k], products)
            np.divide(products, components.base_scales[k], out=self.steps.products[slot])
            self.steps.base_scales[slot] = components.base_scales[k]
            self._touched.append((k, products))
        self.wanted[:] = False

    def _whiten(self, k: int) -> Array:
        """The rows' deviations from a component's mean at the start, whitened by its base."""
        whitened = self._whitened[k]
        if whitened is None:
            components = self._components
            deviations = self._points - components.means[k]
            # What does not matter must not overflow either.
            deviations[: self._first[k]] = deviations[self.usable :] = 0.0
            whitened = self._whitened[k] = np.empty(self._points.shape)
            whiten(deviations, components.widths[k], components.roots[k], whitened)
        return whitened

    def advance(self) -> int:
        """Learn rows; the event that has ended it."""
        components, event = self._components, OUT_OF_REACH
        while self.done < self.usable:
            self.done, event = learn_in_span(
                self._weights[: self.usable],
                components.n_features,
                self.done,
                self.distances,
                self.slots,
                self.wanted,
                self.steps,
                components.varying,
                self._rule,
                LARGEST_STEP,
                *np.empty((2, components.n_components)),
            )
            self._note()
            if event != UNPREPARED:
                break
            self.prepare()
        return event

    def _note(self) -> None:
        """Count the rows that were learnt."""
        new = slice(self._noted, self.done)
        self._components.note(self._points[new], self._weights[new], self._rule)
        self._noted = self.done

    def finish(self) -> None:
        """Let every touched component take in its rows."""
        for slot, (k, products) in enumerate(self._touched):
            count = int(self.steps.counts[slot])
            if count > 0:
                self._take_in(k, slot, count, products)

    def _take_in(self, k: int, slot: int, count: int, products: Array) -> None:
        components, steps = self._components, self.steps
        combined = steps.joining[slot, :count]
        pending, root, whitened = components.pending[k], components.roots[k], self._whiten(k)
        n_before, n_after = len(pending), len(pending) + count
        due = n_after >= _most_pending(components.n_features, len(root) > 0)
        due |= bool(components.base_scales[k] < LEAST_BASE_SCALE)
        joined = pending.restored(count) if due else np.empty((count, components.n_features))
        joining = joined[n_before:] if due else joined
        advance(
            self._points,
            steps.taken[slot, :count],
            steps.shares[slot, :count],
            combined,
            whitened,
            components.means[k],
            components.marginals[k],
            joining,
        )
        if due:
            components.fold(k, joined)
            return
        crossing, corner = np.empty((count, n_before)), np.empty((count, count))
        project(combined, products, self._along[k], pending.rows, joining, crossing, corner)
        pending.append(joining, crossing, corner)


def _most_pending(n_features: int, dense: bool) -> int:
    """Pending rows at which a base takes them in."""
    if not dense:  # from here on a matrix takes less time
        return max(n_features // 2, 1)
    return _FOLD_WIDE if n_features >= _WIDE else _FOLD


def _enlarged(steps: Steps) -> Steps:
    slots, size = steps.shifts.shape
    larger = no_steps(2 * slots, size)
    for before, after in zip(steps, larger, strict=True):
        after[:slots] = before
    return larger
