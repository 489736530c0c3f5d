"""Components in arrays: whole factors, as compiled loops take them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines.factors import inverses
from figmn.engines.interface import Components, Split
from figmn.engines.responsibilities import WITHOUT_FILLING, are_few, evaluated, filled
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.dense_state import DenseState
from figmn.engines.rowwise.row_kernel import Scratch, drop, room_for
from figmn.kernels import evaluation
from figmn.kernels.compiler import LARGEST
from figmn.kernels.factor import log_determinant
from figmn.kernels.moments import absorb
from figmn.kernels.rule import Rule, fade


class DenseComponents(Components):
    """Components in arrays, as the sequential loop takes them.

    Parameters
    ----------
    state : DenseState
        Owned by these components from now on.
    """

    state: DenseState

    def __init__(self, state: DenseState) -> None:
        self.state = state
        self._scratch: Scratch | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scratch": None}

    def scratch(self) -> Scratch:
        """Room for what learning needs beside the state, made when it is first needed."""
        if self._scratch is None or len(self._scratch.priors) < self.n_components:
            self._scratch = room_for(len(self.state.masses), self.n_features)
        return self._scratch

    def start_component(
        self, mean: Array, deviations: Array, row: Array, weight: float, rule: Rule
    ) -> None:
        new, state = self.n_components, self.state
        if new == len(state.masses):
            state = dense_state.resized(state, max(1, 2 * new))
        # Behind the others, where it does not count before all of it is there.
        state.means[new] = mean
        state.variances[new] = state.marginals[new] = deviations**2
        state.whiteners[new], state.remainders[new] = np.eye(self.n_features), 0.0
        state.log_dets[new] = log_determinant(state.variances, new)
        state.masses[new], state.ages[new] = weight, 1
        masses, moments = state.masses, state.moments
        if rule.retention < 1.0:
            masses = masses.copy()
            fade(masses, new, weight, rule)
        if rule.adaptive:
            moments = moments.copy()
            absorb(moments, row[np.newaxis], np.array([weight]), 0, 1)
        size = np.array([new + 1, self.n_learnt + 1])
        self.state = state._replace(size=size, masses=masses, moments=moments)

    def remove(self, k: int) -> None:
        drop(self.state, k)

    def factor(self, k: int) -> tuple[Array, Array]:
        return self.state.whiteners[k], self.state.variances[k]

    def factors(self) -> tuple[Array, Array]:
        count = self.n_components
        return self.state.whiteners[:count], self.state.variances[:count]

    def evaluated(self, rows: Array) -> tuple[Array, Array]:
        return evaluated(rows, self.means, *self.factors(), self.log_dets, self.weights)

    def log_density(self, rows: Array) -> Array:
        if not are_few(rows):
            return super().log_density(rows)
        # One call for all of it: each costs more than the arithmetic on a single row.
        state, count = self.state, self.n_components
        distances, log_joint = np.empty((2, len(rows), count))
        log_density = np.empty(len(rows))
        evaluation.evaluate(
            rows,
            count,
            state.means,
            state.whiteners,
            state.variances,
            state.log_dets,
            state.masses,
            distances,
            log_joint,
            log_density,
            *WITHOUT_FILLING[1:],
        )
        return log_density

    def filled(self, rows: Array, responsibilities: Array) -> Array:
        return filled(rows, self.means, *self.factors(), responsibilities)

    def marginal(self, variables: Index) -> DenseComponents:
        return type(self)(dense_state.marginal(self.state, variables))

    def split(self, known: Index, wanted: Index) -> Split:
        # With the variables ordered known first, everything is a block of the factor.
        count = len(known)
        both = self.marginal(np.concatenate([known, wanted]))
        whiteners, variances = both.factors()
        given = np.ascontiguousarray(whiteners[:, count:, count:])
        with np.errstate(over="ignore", invalid="ignore"):
            coefficients = -inverses(given) @ whiteners[:, count:, :count]
        return Split(
            both.marginal(np.arange(count)),
            np.nan_to_num(coefficients),
            given,
            np.ascontiguousarray(variances[:, count:]),
        )

    def merge(self, i: int, j: int) -> None:
        dense_state.merge(self.state, i, j)
        self.remove(j)

    def widened(self, initial: Array) -> Self:
        return type(self)(dense_state.widened(self.state, initial))


def pack(components: DenseComponents) -> dict[str, AnyArray]:
    """Named arrays that hold everything."""
    return dict(dense_state.resized(components.state, components.n_components)._asdict())


def unpack(arrays: dict[str, AnyArray]) -> DenseComponents:
    """Inverse of :func:`pack`; raises ValueError on what learning cannot have made."""
    if set(arrays) != set(DenseState._fields):
        raise ValueError("arrays are missing or unknown")
    state = DenseState(**arrays)
    _check(state)
    return DenseComponents(state)


def _check(state: DenseState) -> None:
    if state.means.ndim != 2 or state.size.shape != (2,) or state.size.dtype != np.int64:
        raise ValueError("the counts or the means have the wrong shape")
    capacity, n_features = state.means.shape
    if state.size[0] != capacity or state.size[1] < 0:
        raise ValueError("component and row counts are out of range")
    # Without components: those that a forged file names need not have matrices in it.
    model = dense_state.empty(n_features, 0)
    for name in DenseState._fields:
        found, wanted = getattr(state, name), getattr(model, name)
        shape = wanted.shape
        if name in dense_state.COMPONENT_FIELDS:
            shape = (capacity, *shape[1:])
        if found.shape != shape or found.dtype != wanted.dtype:
            raise ValueError(f"array {name!r} has the wrong shape or type")
        if not np.all(np.isfinite(found)):
            raise ValueError(f"array {name!r} holds NaN or infinity")
    if np.any(np.abs(state.means) > LARGEST):
        raise ValueError("a mean is out of range")
    positive = (state.variances, state.marginals, state.masses)
    if not all(np.all(values > 0.0) for values in positive) or np.any(state.moments[::2] < 0.0):
        raise ValueError("a variance or a mass is not positive")
    diagonals = np.diagonal(state.whiteners, axis1=1, axis2=2)
    if np.any(np.triu(state.whiteners, 1) != 0.0) or np.any(diagonals != 1.0):
        raise ValueError("a precision factor is not unit lower triangular")
