"""Components for few variables: whole factors, updated row by row."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index, IntArray
from figmn.components import state as states
from figmn.components.base import Components, Split
from figmn.components.density import WITHOUT_FILLING, are_few, evaluated, filled
from figmn.components.factors import inverses
from figmn.components.pace import Pace
from figmn.kernels import evaluation
from figmn.kernels.compiler import LARGEST
from figmn.kernels.factor import log_determinant
from figmn.kernels.learning import Scratch, Settings, State, room_for


class PlainComponents(Components):
    """Components in arrays, as the sequential loop takes them.

    Parameters
    ----------
    state : State
        Owned by these components from now on.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._scratch: Scratch | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scratch": None}

    @property
    def moments(self) -> Array:  # type: ignore[override]
        return self.state.moments

    @property
    def n_components(self) -> int:
        return int(self.state.size[0])

    @property
    def n_learnt(self) -> int:
        return int(self.state.size[1])

    @property
    def means(self) -> Array:
        return self.state.means[: self.n_components]

    @property
    def marginals(self) -> Array:
        return self.state.marginals[: self.n_components]

    @property
    def log_dets(self) -> Array:
        return self.state.log_dets[: self.n_components]

    @property
    def masses(self) -> Array:
        return self.state.masses[: self.n_components]

    @property
    def ages(self) -> IntArray:
        return self.state.ages[: self.n_components]

    @property
    def scratch(self) -> Scratch:
        """Room for what learning needs beside the state."""
        if self._scratch is None or len(self._scratch.priors) < self.n_components:
            self._scratch = room_for(len(self.state.masses), self.n_features)
        return self._scratch

    def learn(self, rows: Array, weights: Array, settings: Settings) -> None:
        Pace(self, rows, weights, settings).learn()

    def append(self, mean: Array, spread: Array, mass: float) -> None:
        new = self.n_components
        if new == len(self.state.masses):
            self.state = states.resized(self.state, max(1, 2 * new))
        state = self.state
        state.means[new] = mean
        state.variances[new] = state.marginals[new] = spread**2
        state.whiteners[new], state.remainders[new] = np.eye(self.n_features), 0.0
        state.log_dets[new] = log_determinant(state.variances, new)
        state.masses[new], state.ages[new] = mass, 1
        state.size[0] = new + 1

    def remove(self, k: int) -> None:
        states.remove(self.state, k)

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
            float(self.masses.sum()),
            distances,
            log_joint,
            log_density,
            *WITHOUT_FILLING[1:],
        )
        return log_density

    def filled(self, rows: Array, posteriors: Array) -> Array:
        return filled(rows, self.means, *self.factors(), posteriors)

    def marginal(self, variables: Index) -> PlainComponents:
        return type(self)(states.marginal(self, variables))

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
        states.merge(self.state, i, j)

    def widened(self, initial: Array) -> Self:
        return type(self)(states.widened(self.state, initial))

    def arrays(self) -> dict[str, AnyArray]:
        return dict(states.resized(self.state, self.n_components)._asdict())

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> Self:
        if set(arrays) != set(State._fields):
            raise ValueError("arrays are missing or unknown")
        state = State(**arrays)
        _check(state)
        return cls(state)


def _check(state: State) -> None:
    if state.means.ndim != 2 or state.size.shape != (2,) or state.size.dtype != np.int64:
        raise ValueError("the counts or the means have the wrong shape")
    capacity, n_features = state.means.shape
    if state.size[0] != capacity or state.size[1] < 0:
        raise ValueError("component and row counts are out of range")
    # Without components: those that a forged file names need not have matrices in it.
    model = states.empty(n_features, 0)
    for name in State._fields:
        found, wanted = getattr(state, name), getattr(model, name)
        shape = wanted.shape
        if name in states.COMPONENT_FIELDS:
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
