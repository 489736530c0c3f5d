"""Learning by blocks of rows.

A block's rows are measured against all components at once; then a walk in
coefficients (:mod:`figmn.kernels.blocks`) learns them one after the other,
stopping for components that are touched for the first time and for rows that
start one; at the end every touched component takes in its rows. What a block
cannot do, the plain loop does for the components concerned: incomplete rows, and
rows so far off that products would lose their digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.components import state as states
from figmn.components.density import normalised
from figmn.kernels.blocks import (
    ASTONISHING,
    LARGEST_STEP,
    LEAST_KEPT,
    STALE,
    UNPREPARED,
    WORN,
    Walked,
    unwalked,
    walk,
)
from figmn.kernels.compiler import LOG_NOTHING, LOG_ZERO
from figmn.kernels.evaluation import likely
from figmn.kernels.learning import NOVEL, SPURIOUS, Settings, fade, room_for
from figmn.kernels.learning import learn as learn_plainly
from figmn.kernels.lowrank import advance, inner_products, measure, project, whiten
from figmn.kernels.moments import absorb

if TYPE_CHECKING:
    from figmn.components.lazy import LazyComponents

_BLOCK: Final = 64  # rows learnt at a time
_NONE: Final = np.empty(0, dtype=np.int64)
_FOLD: Final = 64  # pending rows that are worth a pass over a dense base
_FOLD_WIDE: Final = 192  # the same, where it does not fit into the cache
_WIDE: Final = 900  # variables


def learn(
    components: LazyComponents, rows: Array, weights: Array, settings: Settings, many: bool
) -> int:
    """Learn rows in order; returns how many there were to learn.

    A single component may be held whole for it if they are ``many``.
    """
    unknown = np.isnan(rows)
    incomplete: Index = _NONE
    if unknown.any() or not weights.all():
        useful = (weights > 0.0) & ~unknown.all(axis=1)
        rows, weights, unknown = rows[useful], weights[useful], unknown[useful]
        incomplete = np.flatnonzero(unknown.any(axis=1))
        many = many and len(incomplete) == 0
    done, absorbed = 0, False
    while done < len(rows):
        ahead = incomplete[np.searchsorted(incomplete, done) :] if len(incomplete) else _NONE
        end = int(ahead[0]) if len(ahead) else len(rows)
        if done < end:
            block = slice(done, min(done + _BLOCK, end))
            whole = components.held_whole(done, block.stop - done) if many else None
            learn_block = _learn_block if whole is None else whole.learn
            learnt, beyond, absorbed = learn_block(
                components, rows[block], weights[block], settings, absorbed
            )
            done += learnt
            if not beyond:
                continue
        row = slice(done, done + 1)
        _learn_row(components, rows[row], weights[row], settings, absorbed)
        done, absorbed = done + 1, False
    return len(rows)


def _learn_block(
    components: LazyComponents,
    points: Array,
    weights: Array,
    settings: Settings,
    first_absorbed: bool,
) -> tuple[int, bool, bool]:
    """Learn complete rows of positive weight, as far as a block can.

    ``first_absorbed`` and what is returned in its place say whether the column moments
    know the next row already, and masses have faded for it.

    Returns
    -------
    learnt : int
    beyond : bool
        Whether the next row is beyond the reach of any block.
    absorbed : bool
    """
    block = _Block(components, points, weights, settings)
    done, absorbed, reason = 0, int(first_absorbed), ASTONISHING
    while done < block.usable:
        done, reason, begun = walk(
            points[: block.usable],
            weights[: block.usable],
            done,
            absorbed,
            block.distances,
            block.slots,
            block.wanted,
            block.walked,
            components.standing,
            settings,
            LARGEST_STEP,
            np.empty((2, components.n_components)),
        )
        if settings.adaptive:
            absorb(components.moments, points[absorbed:begun], weights[absorbed:begun])
        absorbed = max(absorbed, begun)
        if reason == UNPREPARED:
            block.prepare()
        elif reason == NOVEL:
            components.create(points[done], weights[done], settings)
            done += 1
            block.add_component(done)
        else:
            break
    block.finish()
    if reason == SPURIOUS:
        components.prune(settings)
    if reason in (SPURIOUS, WORN):
        return done, False, False
    return done, done < len(points) and reason != STALE, absorbed > done


class _Block:
    """Rows of a block, measured against the components, and what they do to them.

    Attributes
    ----------
    usable : int
        Number of rows before the first that is too extreme.
    distances : array of shape (K, B)
        At the start of the block.
    slots : int array of shape (K,)
        Where in ``walked`` a component is, or -1.
    wanted : bool array of shape (K,)
        Components that need a place there.
    walked : Walked
    """

    def __init__(
        self, components: LazyComponents, points: Array, weights: Array, settings: Settings
    ) -> None:
        self._components, self._points = components, points
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
            self.wanted = self._measure_the_likely(weights[0], settings)
        else:
            for k in range(count):
                self._measure(k, 0)
            # With one component there is nothing to find out by walking.
            self.wanted = np.full(count, count == 1)
        self.walked = unwalked(max(int(self.wanted.sum()), 1), self.usable)
        if self.usable < len(points):
            self._points = points[: self.usable]
            self.distances = np.ascontiguousarray(self.distances[:, : self.usable])
            for k, along in self._along.items():
                self._along[k] = np.ascontiguousarray(along[:, : self.usable])
                whitened = self._whitened[k]
                self._whitened[k] = None if whitened is None else whitened[: self.usable]
        if self.usable > 0 and self.wanted.any():
            self.prepare()

    def _measure_the_likely(self, weight: float, settings: Settings) -> AnyArray:
        """Measure a single row, exactly only against components that it may change.

        Nor does it start a component if it is near enough to one; the distances of
        the others are then bounds.

        Returns
        -------
        bool array of shape (K,)
            Which have been measured.
        """
        held, guess = self._components, np.empty(1, dtype=np.int64)
        likely(self._points, held.means, held.marginals, guess, self.distances)
        first, distances = int(guess[0]), self.distances[:, 0]
        self._measure(first, 0)
        log_joint = np.log(held.masses) - 0.5 * (held.log_dets + distances)
        margins = np.where(weight <= held.masses, LOG_NOTHING, LOG_ZERO)
        measured: AnyArray = log_joint > log_joint[first] - margins
        threshold = settings.thresholds[held.n_features]
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
        held = self._components
        for _ in range(2):
            root, pending = held.roots[k], held.pending[k].rows
            points = self._points[first:]
            whitened = np.empty(points.shape) if len(root) else self._scratch[: len(points)]
            along = np.empty((len(pending), len(points)))
            usable, precise = measure(
                points,
                held.means[k],
                held.spreads[k],
                root,
                pending,
                held.kept[k],
                whitened,
                along,
                self.distances[k, first:],
            )
            if precise:
                break
            held.fold(k, held.pending[k].restored())
        self.usable = min(self.usable, first + usable)
        self._first[k] = first
        self._along[k] = along
        self._whitened[k] = whitened if len(root) else None

    def add_component(self, first: int) -> None:
        """Take in a component that was just created; it sees rows from ``first`` on."""
        k = len(self.slots)
        self.slots = np.append(self.slots, -1)
        self.wanted = np.append(self.wanted, False)
        self.distances = np.vstack([self.distances, np.empty((1, len(self._points)))])
        self._measure(k, first)

    def prepare(self) -> None:
        """Compute the inner products of the rows under the wanted components."""
        held = self._components
        for k in map(int, np.flatnonzero(self.wanted)):
            slot = self.slots[k] = len(self._touched)
            if slot == len(self.walked.counts):
                self.walked = _enlarged(self.walked)
            if len(self._points) == 1:  # its distance says it all
                products = self.distances[k : k + 1] * held.kept[k]
            else:
                products = np.empty((len(self._points), len(self._points)))
                inner_products(self._whiten(k), self._along[k], products)
            np.divide(products, held.kept[k], out=self.walked.products[slot])
            self.walked.kept[slot] = held.kept[k]
            self._touched.append((k, products))
        self.wanted[:] = False

    def _whiten(self, k: int) -> Array:
        """The rows' deviations from a component's mean at the start, whitened by its base."""
        whitened = self._whitened[k]
        if whitened is None:
            held = self._components
            deviations = self._points - held.means[k]
            # What does not matter must not overflow either.
            deviations[: self._first[k]] = deviations[self.usable :] = 0.0
            whitened = self._whitened[k] = np.empty(self._points.shape)
            whiten(deviations, held.spreads[k], held.roots[k], whitened)
        return whitened

    def finish(self) -> None:
        """Let every touched component take in its rows."""
        for slot, (k, products) in enumerate(self._touched):
            count = int(self.walked.counts[slot])
            if count > 0:
                self._take_in(k, slot, count, products)

    def _take_in(self, k: int, slot: int, count: int, products: Array) -> None:
        held, walked = self._components, self.walked
        steps = walked.steps[slot, :count]
        pending, root, whitened = held.pending[k], held.roots[k], self._whiten(k)
        n_before, n_after = len(pending), len(pending) + len(steps)
        due = n_after >= _most_pending(held.n_features, len(root) > 0)
        due |= bool(held.kept[k] < LEAST_KEPT)
        joined = pending.restored(len(steps)) if due else np.empty((len(steps), held.n_features))
        joining = joined[n_before:] if due else joined
        advance(
            self._points,
            walked.taken[slot, :count],
            walked.shares[slot, :count],
            steps,
            whitened,
            held.means[k],
            held.marginals[k],
            joining,
        )
        if due:
            held.fold(k, joined)
            return
        crossing, corner = np.empty((len(steps), n_before)), np.empty((len(steps), len(steps)))
        project(steps, products, self._along[k], pending.rows, joining, crossing, corner)
        pending.append(joining, crossing, corner)


def _most_pending(n_features: int, dense: bool) -> int:
    """Pending rows at which a base takes them in."""
    if not dense:  # from here on a matrix takes less time
        return max(n_features // 2, 1)
    return _FOLD_WIDE if n_features >= _WIDE else _FOLD


def _enlarged(walked: Walked) -> Walked:
    slots, size = walked.shifts.shape
    larger = unwalked(2 * slots, size)
    for before, after in zip(walked, larger, strict=True):
        after[:slots] = before
    return larger


def _learn_row(
    components: LazyComponents, row: Array, weight: Array, settings: Settings, absorbed: bool
) -> None:
    """Learn one row of any kind by the plain loop, on the components that gain from it."""
    if settings.adaptive and not absorbed:
        absorb(components.moments, row, weight)
    if settings.retention < 1.0 and not absorbed:
        fade(components.masses, components.n_components, weight[0], settings)
    n_known = int(np.sum(~np.isnan(row)))
    may_grow = components.n_components < settings.max_components
    distances, log_joint = components.evaluated(row)
    if may_grow and not distances.min(initial=np.inf) < settings.thresholds[n_known]:
        components.create(row[0], weight[0], settings)
        return
    posteriors = normalised(log_joint)
    masses = components.masses
    gaining = np.flatnonzero(masses + weight * posteriors[0] != masses)
    others = np.setdiff1d(np.arange(components.n_components), gaining)
    components.ages[others] += 1
    part = states.selected(components, gaining)
    scratch = room_for(len(gaining), components.n_features)
    learn_plainly(row, weight, 0, 1, part, _only_updating(settings, len(gaining)), scratch)
    components.take(part, gaining)
    if settings.prune_mass > 0.0 or settings.faded > 0.0:
        components.prune(settings)


def _only_updating(settings: Settings, n_components: int) -> Settings:
    return settings._replace(
        thresholds=np.full_like(settings.thresholds, np.inf),
        adaptive=False,
        prune_mass=0.0,
        retention=1.0,
        faded=0.0,
        max_components=n_components,
    )
