"""Components for many variables: low rank while young, matrix products when old."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from scipy.linalg import block_diag

from figmn._typing import Array, Index, IntArray
from figmn.engines.blocks import lowrank_questions as questions
from figmn.engines.blocks.block_kernel import LEAST_BASE_SCALE, Varying
from figmn.engines.blocks.lowrank_kernel import fold
from figmn.engines.blocks.pending import Pending
from figmn.engines.blocks.single import SinglePrecision
from figmn.engines.interface import Components, Split
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.dense_state import DenseState
from figmn.kernels.compiler import SMALLEST_VARIANCE, UNEXPLAINED
from figmn.kernels.factor import settle
from figmn.kernels.moments import absorb
from figmn.kernels.rule import Rule, fade

_NO_ROOT: Final = np.empty((0, 0))
_LEAST_ROWS: Final = 16  # at a time, to hold a single component as a matrix
_LEAST_UNASKED: Final = 2  # rows a variable, likewise: a root is made anew for a question


class LowRankState(NamedTuple):
    """What is held of each component beside its base and pending rows, with room for C >= K."""

    size: IntArray
    """Shape (2,): the number of components K, and of rows learnt."""
    means: Array
    """Shape (C, D)."""
    widths: Array
    """Shape (C, D): standard deviations of a diagonal base; means nothing for a dense one."""
    marginals: Array
    """Shape (C, D): diagonals of the covariances."""
    log_dets: Array
    """Shape (C,): log-determinants of the covariances."""
    masses: Array
    """Shape (C,): accumulated responsibilities."""
    ages: IntArray
    """Shape (C,): updates lived through."""
    base_scales: Array
    """Shape (C,): factors of the bases' covariances."""
    moments: Array
    """Shape (3, D): weight, mean and variance of each column so far."""


BY_COMPONENT: Final = ("means", "widths", "marginals", "log_dets", "masses", "ages", "base_scales")


class LowRankComponents(Components):
    r"""Components that put off work in D x D numbers until it can be done in bulk.

    Each has a base and pending rows, as :mod:`figmn.engines.blocks.lowrank_kernel` explains.
    The base of a young component is diagonal; once about D / 2 rows are pending it becomes
    a dense lower triangular root of a precision matrix, in ``roots``, and from then on
    takes in pending rows by the hundred.

    Attributes
    ----------
    state : LowRankState
    roots : list of K arrays
        Triangular roots of dense bases, and empty ones of diagonal bases.
    pending : list of K Pending
    single : SinglePrecision or None
        In place of the root of the only component, while it learns: see :meth:`end_single`.
    """

    state: LowRankState

    def __init__(self, n_features: int) -> None:
        self.state = _empty(n_features, 1)
        self.roots: list[Array] = []
        self.pending: list[Pending] = []
        self.single: SinglePrecision | None = None
        self._n_unasked = 0  # rows learnt since a question needed a root

    @classmethod
    def of(cls, state: DenseState) -> Self:
        """What a state of dense components is."""
        components = cls(state.means.shape[1])
        components.moments[:] = state.moments
        for k in range(int(state.size[0])):
            components.append(state.means[k], np.sqrt(state.variances[k]), state.masses[k])
        components.take(state, np.arange(components.n_components))
        components.state.size[1] = state.size[1]
        return components

    @property
    def widths(self) -> Array:
        """Standard deviations of diagonal bases, of shape (K, D)."""
        return self.state.widths[: self.n_components]

    @property
    def base_scales(self) -> Array:
        """What is left of each base covariance, of shape (K,)."""
        return self.state.base_scales[: self.n_components]

    @property
    def varying(self) -> Varying:
        """The part of the state that every row changes."""
        return Varying(self.masses, self.log_dets, self.ages, self.base_scales)

    # -- Learning ------------------------------------------------------------

    def append(self, mean: Array, widths: Array, mass: float) -> None:
        """Add a component with a diagonal base and nothing pending."""
        self.end_single()
        k, state = self.n_components, self.state
        if k == len(state.masses):
            larger = _empty(self.n_features, k + max(8, k // 4))
            for before, after in zip(state, larger, strict=True):
                after[: len(before)] = before
            self.state = state = larger
        state.means[k], state.widths[k], state.marginals[k] = mean, widths, widths**2
        state.log_dets[k], state.base_scales[k] = 2.0 * np.log(widths).sum(), 1.0
        state.masses[k], state.ages[k] = mass, 1
        self.roots.append(_NO_ROOT)
        self.pending.append(Pending.none(self.n_features))
        state.size[0] = k + 1

    def start_component(
        self, mean: Array, deviations: Array, row: Array, weight: float, rule: Rule
    ) -> None:
        if rule.retention < 1.0:
            fade(self.masses, self.n_components, weight, rule)
        self.append(mean, deviations, weight)
        self.note(row[np.newaxis], np.array([weight]), rule)

    def note(self, rows: Array, weights: Array, rule: Rule) -> None:
        """Count rows of shape (N, D) that were learnt, in the columns' moments as well."""
        if rule.adaptive:
            absorb(self.moments, rows, weights, 0, len(rows))
        self.state.size[1] += len(rows)

    def remove(self, k: int) -> None:
        self.end_single()
        count = self.n_components
        for name in BY_COMPONENT:
            values = getattr(self.state, name)
            values[k : count - 1] = values[k + 1 : count]
        del self.roots[k], self.pending[k]
        self.state.size[0] -= 1

    def put(self, k: int, whitener: Array, variances: Array) -> None:
        """Give a component a dense base, with nothing pending."""
        self.roots[k] = whitener / np.sqrt(variances)[:, np.newaxis]
        self.pending[k] = Pending.none(self.n_features)
        self.base_scales[k] = 1.0
        self.log_dets[k] = np.log(variances).sum()

    def expect(self, n_rows: int) -> bool:
        """Note that a chunk of rows comes; whether a single component may be a matrix for it."""
        self._n_unasked += n_rows
        return n_rows >= _LEAST_ROWS and self._n_unasked >= _LEAST_UNASKED * self.n_features

    def begin_single(self, n_rows: int) -> SinglePrecision | None:
        """Hold a component that is alone as a matrix, for a block of rows, where that is sound.

        To change over takes as much time as some rows, so it is tried once in D of them.
        """
        if self.n_components != 1:
            return None
        turn = self.n_learnt // self.n_features
        due = (self.n_learnt + n_rows) // self.n_features > turn
        if self.single is None and due:
            root = self.roots[0]
            # What is pending makes it only sounder.
            if len(root) and SinglePrecision.suits(root, self.base_scales[0], self.marginals[0]):
                if len(self.pending[0]):
                    self.fold(0, self.pending[0].restored())
                self.single = SinglePrecision(self.roots[0], self.marginals[0])
                self.roots[0] = _NO_ROOT
        return self.single if self.single is not None and self.single.sound else None

    def end_single(self) -> None:
        """Go back to the root of a component that was held as a matrix."""
        single = self.single
        if single is not None:
            # In this order, for threads that ask at the same time.
            self.roots[0] = single.root()
            self.single = None

    def fold(self, k: int, joining: Array) -> None:
        """Make the base of a component a dense one that has taken in whitened rows."""
        if len(self.roots[k]) == 0:
            self.roots[k] = np.diag(1.0 / self.widths[k])
        root = self.roots[k]
        fold(root, joining)
        self.pending[k] = Pending.none(self.n_features)
        if self.base_scales[k] < LEAST_BASE_SCALE:
            root /= np.sqrt(self.base_scales[k])
            self.base_scales[k] = 1.0
        variances = (np.sqrt(self.base_scales[k]) / np.diagonal(root)) ** 2
        if np.all(variances >= np.maximum(UNEXPLAINED * self.marginals[k], SMALLEST_VARIANCE)):
            self.log_dets[k] = np.log(variances).sum()
            return
        whiteners, residual = (
            part[np.newaxis] for part in questions.factor_of(root, self.base_scales[k])
        )
        settle(whiteners, residual, self.marginals[k : k + 1], 0, np.empty_like(whiteners))
        self.put(k, whiteners[0], residual[0])

    # -- Questions -----------------------------------------------------------

    def asked(self) -> Self:
        """Itself, ready for a question: every component has a base and pending rows."""
        self.end_single()
        self._n_unasked = 0
        return self

    def factor(self, k: int) -> tuple[Array, Array]:
        return questions.factor(self.asked(), k)

    def evaluated(self, rows: Array) -> tuple[Array, Array]:
        return questions.evaluated(self.asked(), rows)

    def log_joint(self, rows: Array) -> Array:
        return questions.log_joint(self.asked(), rows)

    def filled(self, rows: Array, responsibilities: Array) -> Array:
        return questions.filled(self.asked(), rows, responsibilities)

    def marginal(self, variables: Index) -> LowRankComponents:
        return questions.marginal(self.asked(), variables)

    def split(self, known: Index, wanted: Index) -> Split:
        return questions.split(self.asked(), known, wanted)

    # -- Changing ------------------------------------------------------------

    def merge(self, i: int, j: int) -> None:
        pair = dense_state.selected(self, np.array([i, j]))
        dense_state.merge(pair, 0, 1)
        self.take(pair, np.array([i]))
        self.remove(j)

    def take(self, state: DenseState, which: Index) -> None:
        """Replace components by those of a state."""
        for number, k in enumerate(which):
            self.put(k, state.whiteners[number], state.variances[number])
            for name in ("means", "marginals", "log_dets", "masses", "ages"):
                getattr(self.state, name)[k] = getattr(state, name)[number]

    def widened(self, initial: Array) -> Self:
        n_new = len(initial)
        self.end_single()
        wider = type(self)(self.n_features + n_new)
        wider.moments[:, :-n_new] = self.moments
        wider.moments[0, -n_new:] = self.moments[0].max()
        zeros = np.zeros(n_new)
        for k in range(self.n_components):
            # As every initial variance, it has shrunk with the mass.
            variances = initial / max(self.masses[k], 1.0)
            width = np.sqrt(variances / self.base_scales[k])
            mean = np.append(self.means[k], zeros)
            wider.append(mean, np.append(self.widths[k], width), self.masses[k])
            if len(self.roots[k]):
                wider.roots[k] = block_diag(self.roots[k], np.diag(1.0 / width))
            pending = self.pending[k]
            rows = np.hstack([pending.rows, np.zeros((len(pending), n_new))])
            wider.pending[k] = Pending(rows, pending.factor.copy())
            wider.marginals[k] = np.append(self.marginals[k], variances)
            wider.log_dets[k] = self.log_dets[k] + np.log(variances).sum()
        wider.base_scales[:], wider.ages[:] = self.base_scales, self.ages
        wider.state.size[1] = self.n_learnt
        return wider


def _empty(n_features: int, capacity: int) -> LowRankState:
    return LowRankState(
        size=np.zeros(2, dtype=np.int64),
        means=np.zeros((capacity, n_features)),
        widths=np.zeros((capacity, n_features)),
        marginals=np.zeros((capacity, n_features)),
        log_dets=np.zeros(capacity),
        masses=np.zeros(capacity),
        ages=np.zeros(capacity, dtype=np.int64),
        base_scales=np.zeros(capacity),
        moments=np.zeros((3, n_features)),
    )
