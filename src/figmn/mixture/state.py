"""Making, growing, copying and checking the arrays of the state."""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.kernels.factor import log_determinant
from figmn.kernels.learning import State

# The fields with a leading axis of components.
COMPONENT_FIELDS = (
    "means",
    "whiteners",
    "variances",
    "marginals",
    "log_dets",
    "masses",
    "ages",
)


def empty(n_features: int, capacity: int) -> State:
    """State of a mixture without components, with room for ``capacity`` of them."""
    return State(
        size=np.zeros(2, dtype=np.int64),
        means=np.zeros((capacity, n_features)),
        whiteners=np.zeros((capacity, n_features, n_features)),
        variances=np.ones((capacity, n_features)),
        marginals=np.ones((capacity, n_features)),
        log_dets=np.zeros(capacity),
        masses=np.zeros(capacity),
        ages=np.zeros(capacity, dtype=np.int64),
        moments=np.zeros((3, n_features)),
    )


def resized(state: State, capacity: int) -> State:
    """Copy of a state, with room for ``capacity`` components."""
    n_components = int(state.size[0])
    larger = empty(state.means.shape[1], capacity)
    for name in COMPONENT_FIELDS:
        getattr(larger, name)[:n_components] = getattr(state, name)[:n_components]
    larger.size[:] = state.size
    larger.moments[:] = state.moments
    return larger


def from_factors(means: Array, whiteners: Array, variances: Array, masses: Array) -> State:
    """State of a mixture with given components."""
    from figmn.mixture.factors import covariances

    n_components, n_features = means.shape
    state = empty(n_features, n_components)
    state.size[0] = n_components
    state.means[:] = means
    state.whiteners[:] = whiteners
    state.variances[:] = variances
    state.marginals[:] = np.diagonal(covariances(whiteners, variances), axis1=1, axis2=2)
    state.log_dets[:] = [log_determinant(variances, k) for k in range(n_components)]
    state.masses[:] = masses
    state.ages[:] = 1
    return state


def check(state: State) -> None:
    """Reject arrays that no learning could have produced, as in a forged file."""
    n_components = int(state.size[0])
    capacity, n_features = state.means.shape
    if not 0 <= n_components <= capacity or state.size[1] < 0:
        raise ValueError("component and row counts are out of range")
    shapes = empty(n_features, capacity)
    for name in State._fields:
        found, wanted = getattr(state, name), getattr(shapes, name)
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise ValueError(f"array {name!r} has the wrong shape or type")
        if not np.all(np.isfinite(found)):
            raise ValueError(f"array {name!r} holds NaN or infinity")
    learnt = slice(0, n_components)
    positive = (state.variances[learnt], state.marginals[learnt], state.masses[learnt])
    if not all(np.all(values > 0.0) for values in positive) or np.any(state.moments[::2] < 0.0):
        raise ValueError("a variance or a mass is not positive")
    triangles = state.whiteners[learnt]
    if np.any(np.triu(triangles, 1) != 0.0) or np.any(
        np.diagonal(triangles, axis1=1, axis2=2) != 1.0
    ):
        raise ValueError("a precision factor is not unit lower triangular")
