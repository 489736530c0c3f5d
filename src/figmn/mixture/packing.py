"""A mixture's state as named arrays for a file, and back, with every check."""

from __future__ import annotations

import numpy as np

from figmn._typing import AnyArray, Array
from figmn.kernels.compiler import LARGEST
from figmn.kernels.learning import State
from figmn.mixture import state as states
from figmn.mixture import validation
from figmn.mixture.warmup import HeldRows


def pack(state: State, scale: Array | None, held: HeldRows | None) -> dict[str, AnyArray]:
    """Named arrays that hold all that learning goes on from."""
    arrays = dict(states.resized(state, int(state.size[0]))._asdict())
    if scale is not None:
        arrays["scale"] = scale
    if held is not None:
        arrays["held_rows"], arrays["held_weights"] = held.rows, held.weights
    return arrays


def unpack(arrays: dict[str, AnyArray]) -> tuple[State, Array | None, HeldRows | None]:
    """Inverse of :func:`pack`.

    Raises
    ------
    ValueError
        On arrays that no learning could have produced, as in a forged file.
    """
    optional = {"scale", "held_rows", "held_weights"}
    if set(arrays) - optional != set(State._fields):
        raise ValueError("arrays are missing or unknown")
    state = State(**{name: arrays[name] for name in State._fields})
    _check(state)
    scale, rows, weights = (arrays.get(name) for name in ("scale", "held_rows", "held_weights"))
    if rows is None or weights is None:
        return state, scale, None
    rows = validation.as_rows(rows, state.means.shape[1])
    return state, scale, HeldRows(rows, validation.as_weights(weights, len(rows)))


def _check(state: State) -> None:
    if state.means.ndim != 2 or state.size.shape != (2,) or state.size.dtype != np.int64:
        raise ValueError("the counts or the means have the wrong shape")
    capacity, n_features = state.means.shape
    if state.size[0] != capacity or state.size[1] < 0:
        raise ValueError("component and row counts are out of range")
    model = states.empty(n_features, capacity)
    for name in State._fields:
        found, wanted = getattr(state, name), getattr(model, name)
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
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
