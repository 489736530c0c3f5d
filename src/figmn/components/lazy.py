"""Components for many variables: low rank while young, updated in matrix products."""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Self

import numpy as np
from scipy.linalg import block_diag

from figmn._typing import AnyArray, Array, Index, IntArray
from figmn.components import blocks, factors
from figmn.components import state as states
from figmn.components.base import Components, Split
from figmn.components.density import WITHOUT_FILLING, filled
from figmn.components.layout import SCALARS, VECTORS, check
from figmn.components.pending import Pending
from figmn.components.whole import Whole
from figmn.kernels import evaluation
from figmn.kernels.blas import product, solve_lower
from figmn.kernels.blocks import LEAST_KEPT, Standing
from figmn.kernels.compiler import (
    LARGEST_DISTANCE,
    LOG_NOTHING,
    SMALLEST_VARIANCE,
    UNEXPLAINED,
)
from figmn.kernels.factor import settle
from figmn.kernels.learning import Settings, State
from figmn.kernels.lowrank import extend, fold, measure

_QUERY: Final = 2**21  # numbers evaluated at a time
_LOG_2PI: Final = float(np.log(2.0 * np.pi))
_NO_ROOT: Final = np.empty((0, 0))
_LEAST_ROWS: Final = 16  # at a time, to hold a component whole: fewer are left pending
_LEAST_UNASKED: Final = 2  # rows a variable, likewise: a root is made anew for a question
_STAGES: Final = 10  # in which distances are taken further


class LazyComponents(Components):
    r"""Components that put off work in D x D numbers until it can be done in bulk.

    Each has a base and pending rows, as :mod:`figmn.kernels.lowrank` explains.
    The base of a young component is diagonal, ``spreads``; once about D / 2 rows
    are pending it becomes a dense lower triangular root of a precision matrix,
    in ``roots`` (``spreads`` then means nothing any more), and from then on takes
    in pending rows by the hundred. ``kept`` is a factor of either base's covariance.
    """

    def __init__(self, n_features: int) -> None:
        self.moments = np.zeros((3, n_features))
        self._roots: list[Array] = []
        self._whole: Whole | None = None
        self._n_unasked = 0  # rows learnt since anything but learning needed a root
        self.pending: list[Pending] = []
        self._n_learnt = 0
        self._stored = _room(n_features, 1)

    # -- What is held --------------------------------------------------------

    @property
    def n_components(self) -> int:
        return len(self._roots)

    @property
    def n_learnt(self) -> int:
        return self._n_learnt

    @property
    def roots(self) -> list[Array]:
        """Triangular roots of dense bases, and empty ones of diagonal bases."""
        whole = self._whole
        if whole is not None:
            # In this order, for threads that ask at the same time.
            self._roots[0] = whole.root()
            self._whole = None
        self._n_unasked = 0
        return self._roots

    @property
    def means(self) -> Array:
        return self._stored["means"][: self.n_components]

    @property
    def spreads(self) -> Array:
        """Standard deviations of diagonal bases, of shape (K, D)."""
        return self._stored["spreads"][: self.n_components]

    @property
    def marginals(self) -> Array:
        return self._stored["marginals"][: self.n_components]

    @property
    def log_dets(self) -> Array:
        return self._stored["log_dets"][: self.n_components]

    @property
    def masses(self) -> Array:
        return self._stored["masses"][: self.n_components]

    @property
    def ages(self) -> IntArray:
        ages: IntArray = self._stored["ages"][: self.n_components]
        return ages

    @property
    def kept(self) -> Array:
        """What is left of each base covariance, of shape (K,)."""
        return self._stored["kept"][: self.n_components]

    @property
    def standing(self) -> Standing:
        """The part of the state that every row changes."""
        count, stored = self.n_components, self._stored
        parts = (stored[name][:count] for name in Standing._fields)
        return Standing(*parts)

    def append(self, mean: Array, spread: Array, mass: float) -> None:
        k = self.n_components
        if k == len(self._stored["masses"]):
            larger = _room(self.n_features, k + max(8, k // 4))
            for name, values in self._stored.items():
                larger[name][:k] = values
            self._stored = larger
        self.roots.append(_NO_ROOT)
        self.pending.append(Pending.none(self.n_features))
        self.means[k], self.spreads[k], self.marginals[k] = mean, spread, spread**2
        self.log_dets[k], self.kept[k] = 2.0 * np.log(spread).sum(), 1.0
        self.masses[k], self.ages[k] = mass, 1

    def remove(self, k: int) -> None:
        for values in self._stored.values():
            values[k : self.n_components - 1] = values[k + 1 : self.n_components]
        del self.roots[k], self.pending[k]

    def put(self, k: int, whitener: Array, variances: Array) -> None:
        """Give a component a dense base, with nothing pending."""
        self.roots[k] = whitener / np.sqrt(variances)[:, np.newaxis]
        self.pending[k] = Pending.none(self.n_features)
        self.kept[k] = 1.0
        self.log_dets[k] = np.log(variances).sum()

    # -- Learning ------------------------------------------------------------

    def learn(self, rows: Array, weights: Array, settings: Settings) -> None:
        unasked = self._n_unasked + len(rows)
        many = len(rows) >= _LEAST_ROWS and unasked >= _LEAST_UNASKED * self.n_features
        self._n_learnt += blocks.learn(self, rows, weights, settings, many)
        self._n_unasked = unasked

    def held_whole(self, n_done: int, n_next: int) -> Whole | None:
        """The component as a whole matrix, if it is the only one and that does it no harm.

        Of the rows that are learnt at present, some are done and some come next. To
        change over takes as much time as some rows, so it is tried once in D of them.
        """
        if self.n_components != 1:
            return None
        turn = (self._n_learnt + n_done) // self.n_features
        due = (self._n_learnt + n_done + n_next) // self.n_features > turn
        if self._whole is None and due:
            self._hold_whole()
        return self._whole if self._whole is not None and self._whole.sound else None

    def _hold_whole(self) -> None:
        # What is pending makes it only sounder.
        root = self.roots[0]
        if len(root) and Whole.suits(root, self.kept[0], self.marginals[0]):
            if len(self.pending[0]):
                self.fold(0, self.pending[0].restored())
            self._whole = Whole(self.roots[0], self.marginals[0])
            self._roots[0] = _NO_ROOT

    def fold(self, k: int, joining: Array) -> None:
        """Make the base of a component a dense one that has taken in whitened rows."""
        if len(self.roots[k]) == 0:
            self.roots[k] = np.diag(1.0 / self.spreads[k])
        root = self.roots[k]
        fold(root, joining)
        self.pending[k] = Pending.none(self.n_features)
        if self.kept[k] < LEAST_KEPT:
            root /= np.sqrt(self.kept[k])
            self.kept[k] = 1.0
        variances = (np.sqrt(self.kept[k]) / np.diagonal(root)) ** 2
        if np.all(variances >= np.maximum(UNEXPLAINED * self.marginals[k], SMALLEST_VARIANCE)):
            self.log_dets[k] = np.log(variances).sum()
            return
        whiteners, residual = (part[np.newaxis] for part in _factor_of(root, self.kept[k]))
        settle(whiteners, residual, self.marginals[k : k + 1], 0, np.empty_like(whiteners))
        self.put(k, whiteners[0], residual[0])

    # -- Questions -----------------------------------------------------------

    def factor(self, k: int) -> tuple[Array, Array]:
        return _factor_of(self._whole_root(k), self.kept[k])

    def _whole_root(self, k: int) -> Array:
        """Root of a component's precision, but for ``kept``; a copy."""
        root = self.roots[k].copy() if len(self.roots[k]) else np.diag(1.0 / self.spreads[k])
        if len(self.pending[k]):
            fold(root, self.pending[k].restored())
        return root

    def evaluated(self, rows: Array) -> tuple[Array, Array]:
        known = np.sum(~np.isnan(rows), axis=1)
        complete = known == self.n_features
        distances = np.empty((len(rows), self.n_components))
        log_joint = np.empty_like(distances)
        self._measure_all(rows, np.flatnonzero(complete), distances)
        constants = np.log(self.weights) - 0.5 * (self.n_features * _LOG_2PI + self.log_dets)
        log_joint[complete] = constants - 0.5 * distances[complete]
        rest = np.flatnonzero(~complete)
        for k in range(self.n_components if len(rest) else 0):
            if len(self.roots[k]) == 0:
                for t in rest:
                    distance, log_det, _ = self._completed(k, rows[t])
                    constant = np.log(self.weights[k]) - 0.5 * known[t] * _LOG_2PI
                    distances[t, k], log_joint[t, k] = distance, constant - 0.5 * log_det
                    log_joint[t, k] -= 0.5 * distance
            else:
                parts = np.empty((2, len(rest), 1))
                component = self._one(k)
                evaluation.evaluate(
                    rows[rest], 1, *component, 1.0, parts[0], parts[1], *WITHOUT_FILLING
                )
                distances[rest, k], log_joint[rest, k] = parts[:, :, 0]
        return distances, log_joint

    def _completed(self, k: int, row: Array) -> tuple[float, float, Array]:
        """What a young component makes of an incomplete row, without a matrix of its own.

        Returns
        -------
        distance, log_det : float
            Of the known entries, under their marginal.
        filled : array of shape (D,)
            The row with its missing entries at their conditional means.
        """
        known, missing = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        pending, log_det = self._young_marginal(k, known)
        spread, kept = self.spreads[k], self.kept[k]
        with np.errstate(over="ignore", invalid="ignore"):
            whitened = (row[known] - self.means[k, known]) / spread[known]
            along = pending.rows @ whitened
            total = whitened @ whitened
            given = self.pending[k].restored()[:, missing].copy()
            solve_lower(np.ascontiguousarray(pending.factor), given)
            filled = row.copy()
            filled[missing] = self.means[k, missing] + spread[missing] * (along @ given)
            distance = max(float(total - along @ along), 0.0) / kept
        if not distance <= LARGEST_DISTANCE:
            distance = LARGEST_DISTANCE
        return distance, log_det, factors.within_range(filled)

    def _measure_all(self, rows: Array, which: Index, distances: Array) -> None:
        """Write the distances of some rows, all of them complete."""
        size = max(_QUERY // max(self.n_features, 1), 1)
        for start in range(0, len(which), size):
            here = which[start : start + size]
            points = rows[here]
            for k in range(self.n_components):
                distances[here, k] = self._distances(k, points)

    def _one(self, k: int) -> tuple[Array, Array, Array, Array, Array]:
        """One component as the plain kernels take it."""
        whitener, variances = self.factor(k)
        return (
            self.means[k : k + 1],
            whitener[np.newaxis],
            variances[np.newaxis],
            self.log_dets[k : k + 1],
            self.weights[k : k + 1],
        )

    def filled(self, rows: Array, posteriors: Array) -> Array:
        completed = np.where(np.isnan(rows), 0.0, rows)
        incomplete = np.flatnonzero(np.isnan(rows).any(axis=1))
        missing = np.isnan(rows[incomplete])
        for k in range(self.n_components if len(incomplete) else 0):
            share = posteriors[incomplete, k : k + 1]
            if len(self.roots[k]) == 0:
                part = share * np.array([self._completed(k, rows[t])[2] for t in incomplete])
            else:
                part = filled(rows[incomplete], *self._one(k)[:3], share)
            completed[incomplete] += np.where(missing, part, 0.0)
        return completed

    def log_joint(self, rows: Array) -> Array:
        if self.n_components < 2 or np.isnan(rows).any():
            return self.evaluated(rows)[1]
        constants = np.log(self.weights) - 0.5 * (self.n_features * _LOG_2PI + self.log_dets)
        log_joint = np.empty((len(rows), self.n_components))
        size = max(_QUERY // max(self.n_features, 1), 1)
        for start in range(0, len(rows), size):
            here = slice(start, start + size)
            log_joint[here] = self._staged(rows[here], constants[:, np.newaxis]).T
        return log_joint

    def _staged(self, points: Array, constants: Array) -> Array:
        """Log joint densities of complete rows, exact only where they can matter.

        A distance in some variables bounds that in all of them, at a fraction of the
        cost. So distances are known at first in any single variable, then, stage by
        stage, in more and more of them, but only while a component may still come
        near a likely one, which is evaluated before the others.

        Parameters
        ----------
        points : array of shape (N, D)
        constants : array of shape (K, 1)
            What of the densities does not depend on points.

        Returns
        -------
        array of shape (K, N)
        """
        guess = np.empty(len(points), dtype=np.int64)
        distances = np.empty((self.n_components, len(points)))
        evaluation.likely(points, self.means, self.marginals, guess, distances)
        likely = np.arange(self.n_components)[:, np.newaxis] == guess
        self._go_on(points, likely, 0, self.n_features, distances)
        log_joint = constants - 0.5 * distances
        enough = log_joint[guess, np.arange(len(points))] - LOG_NOTHING
        active = ~likely
        ends = {self.n_features * stage // _STAGES for stage in range(_STAGES + 1)}
        for start, stop in pairwise(sorted(ends)):
            active &= log_joint > enough
            self._go_on(points, active, start, stop, distances)
            log_joint = constants - 0.5 * distances
        return log_joint

    def _go_on(
        self, points: Array, chosen: AnyArray, start: int, stop: int, distances: Array
    ) -> None:
        """Take the chosen distances, of shape (K, N), from some variables to further ones.

        Only a dense base with nothing pending goes variable by variable; others go
        all the way at once.
        """
        roots = self.roots
        for k in np.flatnonzero(chosen.any(axis=1)):
            which = np.flatnonzero(chosen[k])
            if start == 0:
                distances[k, which] = 0.0
            if len(roots[k]) and not len(self.pending[k]):
                extend(
                    points, which, self.means[k], roots[k], self.kept[k], start, stop, distances[k]
                )
            elif start == 0:
                distances[k, which] = self._distances(int(k), points[which])

    def _distances(self, k: int, points: Array) -> Array:
        """Squared distances of complete rows to one component."""
        distances = np.empty(len(points))
        root, pending = self.roots[k], self.pending[k].rows
        for _ in range(2):
            _, precise = measure(
                points,
                self.means[k],
                self.spreads[k],
                root,
                pending,
                self.kept[k],
                np.empty(points.shape),
                np.empty((len(pending), len(points))),
                distances,
            )
            if precise:
                break
            root, pending = self._whole_root(k), pending[:0]
        return distances

    def marginal(self, variables: Index) -> LazyComponents:
        marginal = LazyComponents(len(variables))
        marginal._n_learnt = self._n_learnt
        marginal.moments[:] = self.moments[:, variables]
        for k in range(self.n_components):
            marginal.append(self.means[k, variables], self.spreads[k, variables], self.masses[k])
            if len(self.roots[k]):
                marginal.roots[k] = factors.reorder_root(self._whole_root(k), variables)
                pivots = np.diagonal(marginal.roots[k])
                marginal.log_dets[k] = 2.0 * np.log(np.sqrt(self.kept[k]) / pivots).sum()
            else:
                marginal.pending[k], marginal.log_dets[k] = self._young_marginal(k, variables)
        marginal.marginals[:] = self.marginals[:, variables]
        marginal.kept[:], marginal.ages[:] = self.kept, self.ages
        return marginal

    def _young_marginal(self, k: int, variables: Index) -> tuple[Pending, float]:
        """What some of the variables of a young component have pending, and ``log|S|``."""
        joining = self.pending[k].restored()[:, variables]
        pending = Pending.of(np.ascontiguousarray(joining))
        log_det = 2.0 * np.log(self.spreads[k, variables]).sum()
        log_det += 2.0 * np.log(np.diagonal(pending.factor)).sum()
        return pending, float(log_det + len(variables) * np.log(self.kept[k]))

    def split(self, known: Index, wanted: Index) -> Split:
        both = self.marginal(np.concatenate([known, wanted]))
        marginal = both.marginal(np.arange(len(known)))
        shape = (self.n_components, len(wanted))
        coefficients = np.empty((*shape, len(known)))
        whiteners, variances = np.empty((*shape, len(wanted))), np.empty(shape)
        for k in range(self.n_components):
            if len(self.roots[k]):
                root = both.roots[k][len(known) :]
                given, variances[k] = _factor_of(root[:, len(known) :], self.kept[k])
                whiteners[k] = given
                slopes = root[:, : len(known)] / np.diagonal(root[:, len(known) :])[:, np.newaxis]
                coefficients[k] = product(-factors.inverses(given[np.newaxis])[0], slopes)
            else:
                coefficients[k], covariance = self._young_split(k, known, wanted, marginal)
                parts = factors.factor(covariance[np.newaxis])
                whiteners[k], variances[k] = parts[0][0], parts[1][0]
        return Split(marginal, np.nan_to_num(coefficients), whiteners, variances)

    def _young_split(
        self, k: int, known: Index, wanted: Index, marginal: LazyComponents
    ) -> tuple[Array, Array]:
        """Coefficients and conditional covariance of wanted variables, with a diagonal base.

        With ``L L' = I + Y_k Y_k'``, ``F_k = L^-1 Y_k`` and ``H = L^-1 Y_w`` they
        are ``H' F_k`` and ``I + H' H``, but for the variables' scales.
        """
        given = self.pending[k].restored()[:, wanted].copy()
        solve_lower(np.ascontiguousarray(marginal.pending[k].factor), given)
        spread, unit = self.spreads[k, wanted][:, np.newaxis], self.spreads[k, known]
        coefficients = spread * product(given.T, marginal.pending[k].rows) / unit
        covariance = np.eye(len(wanted)) + product(given.T, given)
        covariance *= self.kept[k] * spread * spread.T
        return coefficients, covariance

    # -- Changing ------------------------------------------------------------

    def merge(self, i: int, j: int) -> None:
        pair = states.selected(self, np.array([i, j]))
        states.merge(pair, 0, 1)
        self.take(pair, np.array([i]))
        self.remove(j)

    def take(self, state: State, which: Index) -> None:
        """Replace components by those of a state."""
        for number, k in enumerate(which):
            self.put(k, state.whiteners[number], state.variances[number])
            for name in ("means", "marginals", "log_dets", "masses", "ages"):
                self._stored[name][k] = getattr(state, name)[number]

    def widened(self, initial: Array) -> Self:
        n_new = len(initial)
        wider = type(self)(self.n_features + n_new)
        wider._n_learnt = self._n_learnt
        wider.moments[:, :-n_new] = self.moments
        wider.moments[0, -n_new:] = self.moments[0].max()
        zeros = np.zeros(n_new)
        for k in range(self.n_components):
            # As every initial variance, it has shrunk with the mass.
            variances = initial / max(self.masses[k], 1.0)
            spread = np.sqrt(variances / self.kept[k])
            mean = np.append(self.means[k], zeros)
            wider.append(mean, np.append(self.spreads[k], spread), self.masses[k])
            if len(self.roots[k]):
                wider.roots[k] = block_diag(self.roots[k], np.diag(1.0 / spread))
            pending = self.pending[k]
            rows = np.hstack([pending.rows, np.zeros((len(pending), n_new))])
            wider.pending[k] = Pending(rows, pending.factor.copy())
            wider.marginals[k] = np.append(self.marginals[k], variances)
            wider.log_dets[k] = self.log_dets[k] + np.log(variances).sum()
        wider.kept[:], wider.ages[:] = self.kept, self.ages
        return wider

    def assume(self, state: State) -> None:
        """Become what a state of plain components is."""
        self.moments[:] = state.moments
        self._n_learnt = int(state.size[1])
        for k in range(int(state.size[0])):
            self.append(state.means[k], np.sqrt(state.variances[k]), state.masses[k])
        self.take(state, np.arange(self.n_components))

    # -- Keeping -------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        dense = [k for k, root in enumerate(self.roots) if len(root)]
        shape = (self.n_features, self.n_features)
        arrays: dict[str, AnyArray] = {
            name: values[: self.n_components].copy() for name, values in self._stored.items()
        }
        arrays["moments"] = self.moments
        arrays["learnt"] = np.array([self._n_learnt])
        arrays["dense"] = np.array(dense, dtype=np.int64)
        arrays["roots"] = np.array([self.roots[k] for k in dense]).reshape(-1, *shape)
        arrays["pending"] = np.array([len(p) for p in self.pending], dtype=np.int64)
        arrays["rows"] = np.vstack(
            [np.empty((0, self.n_features))] + [p.rows for p in self.pending]
        )
        arrays["row_factors"] = np.concatenate(
            [np.empty(0)] + [p.factor.ravel() for p in self.pending]
        )
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> Self:
        check(arrays)
        held = cls(arrays["moments"].shape[1])
        held.moments[:] = arrays["moments"]
        held._n_learnt = int(arrays["learnt"][0])
        held._stored = {name: arrays[name].copy() for name in (*VECTORS, *SCALARS)}
        held._roots = [_NO_ROOT] * len(arrays["masses"])
        for k, root in zip(arrays["dense"], arrays["roots"], strict=True):
            held.roots[k] = root.copy()
        first_row = first_entry = 0
        for count in arrays["pending"]:
            rows = arrays["rows"][first_row : first_row + count].copy()
            entries = arrays["row_factors"][first_entry : first_entry + count**2]
            factor = entries.reshape(count, count).copy()
            if np.any(np.triu(factor, 1) != 0.0) or np.any(np.diagonal(factor) < 1.0):
                raise ValueError("a factor of pending rows is not what it should be")
            held.pending.append(Pending(rows, factor))
            first_row, first_entry = first_row + count, first_entry + count**2
        return held


def _room(n_features: int, capacity: int) -> dict[str, AnyArray]:
    room: dict[str, AnyArray] = {name: np.zeros((capacity, n_features)) for name in VECTORS}
    room |= {name: np.zeros(capacity) for name in SCALARS}
    room["ages"] = np.zeros(capacity, dtype=np.int64)
    return room


def _factor_of(root: Array, kept: float) -> tuple[Array, Array]:
    """Whitener and variances of a root."""
    diagonal = np.diagonal(root)
    return root / diagonal[:, np.newaxis], (np.sqrt(kept) / diagonal) ** 2
