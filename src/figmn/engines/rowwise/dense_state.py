"""The arrays of dense components: what they hold, and how to make and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from figmn._typing import Array, Index, IntArray
from figmn.engines.factors import covariances, merged, reorder
from figmn.kernels.factor import log_determinant, settle

if TYPE_CHECKING:
    from figmn.engines.interface import Components


class DenseState(NamedTuple):
    """Everything learnt, as arrays with room for C >= K components."""

    size: IntArray
    """Shape (2,): the number of components K, and of rows learnt."""
    means: Array
    """Shape (C, D)."""
    whiteners: Array
    """Shape (C, D, D): unit lower triangular ``T`` of each precision."""
    remainders: Array
    """Shape (C, D, D): what rounding has taken from the whiteners."""
    variances: Array
    """Shape (C, D): residual variances ``v`` of each precision."""
    marginals: Array
    """Shape (C, D): diagonals of the covariances."""
    log_dets: Array
    """Shape (C,): log-determinants of the covariances."""
    masses: Array
    """Shape (C,): accumulated responsibilities, ``sp`` in the paper."""
    ages: IntArray
    """Shape (C,): updates lived through, ``v`` in the paper."""
    moments: Array
    """Shape (3, D): weight, mean and variance of each column so far."""


# The fields with a leading axis of components.
COMPONENT_FIELDS = (
    "means",
    "whiteners",
    "remainders",
    "variances",
    "marginals",
    "log_dets",
    "masses",
    "ages",
)


def empty(n_features: int, capacity: int) -> DenseState:
    """State of a mixture without components, with room for ``capacity`` of them."""
    return DenseState(
        size=np.zeros(2, dtype=np.int64),
        means=np.zeros((capacity, n_features)),
        whiteners=np.zeros((capacity, n_features, n_features)),
        remainders=np.zeros((capacity, n_features, n_features)),
        variances=np.ones((capacity, n_features)),
        marginals=np.ones((capacity, n_features)),
        log_dets=np.zeros(capacity),
        masses=np.zeros(capacity),
        ages=np.zeros(capacity, dtype=np.int64),
        moments=np.zeros((3, n_features)),
    )


def resized(state: DenseState, capacity: int) -> DenseState:
    """Copy of a state, with room for ``capacity`` components."""
    n_components = int(state.size[0])
    larger = empty(state.means.shape[1], capacity)
    for name in COMPONENT_FIELDS:
        getattr(larger, name)[:n_components] = getattr(state, name)[:n_components]
    larger.size[:] = state.size
    larger.moments[:] = state.moments
    return larger


def from_factors(means: Array, whiteners: Array, variances: Array, masses: Array) -> DenseState:
    """State of a mixture with given components."""
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


def selected(components: Components, which: Index) -> DenseState:
    """State of some of the components."""
    state = empty(components.n_features, len(which))
    state.size[:] = len(which), components.n_learnt
    for number, k in enumerate(which):
        state.whiteners[number], state.variances[number] = components.factor(int(k))
    for name in ("means", "marginals", "log_dets", "masses", "ages"):
        getattr(state, name)[:] = getattr(components, name)[which]
    state.moments[:] = components.moments
    return state


def marginal(state: DenseState, variables: Index) -> DenseState:
    """State of the components over some of the variables, in that order."""
    count = int(state.size[0])
    part = empty(len(variables), count)
    part.size[:] = state.size
    part.whiteners[:], part.variances[:] = reorder(
        state.whiteners[:count], state.variances[:count], variables
    )
    part.log_dets[:] = [log_determinant(part.variances, k) for k in range(count)]
    part.means[:] = state.means[:count, variables]
    part.marginals[:] = state.marginals[:count, variables]
    part.masses[:], part.ages[:] = state.masses[:count], state.ages[:count]
    part.moments[:] = state.moments[:, variables]
    return part


def merge(state: DenseState, i: int, j: int) -> None:
    """Moment-match component ``j`` into ``i``."""
    # Each share is rounded but once, however small: it is never one less the other.
    kept, share = state.masses[[i, j]] / (state.masses[i] + state.masses[j])
    shift = state.means[j] - state.means[i]
    near, way = (i, share) if share < kept else (j, -kept)
    mean = state.means[near] + way * shift
    state.marginals[i] = (
        kept * state.marginals[i] + share * state.marginals[j] + kept * share * shift**2
    )
    pair = [i, j]
    state.whiteners[i], state.variances[i] = merged(
        state.whiteners[pair], state.variances[pair], np.array([kept, share]), shift
    )
    state.means[i], state.remainders[i] = mean, 0.0
    one = slice(i, i + 1)
    whiteners, variances, marginals = (
        field[one] for field in (state.whiteners, state.variances, state.marginals)
    )
    state.log_dets[i] = settle(whiteners, variances, marginals, 0, np.empty_like(whiteners))
    state.masses[i] += state.masses[j]
    state.ages[i] = max(state.ages[i], state.ages[j])


def widened(state: DenseState, initial: Array) -> DenseState:
    """State with further variables that have been zero in every row so far.

    ``initial`` holds their variances in a new component, of shape (M,). In an
    old one they have shrunk with its mass, as every initial variance does.
    """
    n_old, n_new = state.means.shape[1], len(initial)
    wider = empty(n_old + n_new, len(state.masses))
    for name in ("size", "log_dets", "masses", "ages"):
        getattr(wider, name)[:] = getattr(state, name)
    wider.means[:, :n_old] = state.means
    wider.whiteners[:] = np.eye(n_old + n_new)
    wider.whiteners[:, :n_old, :n_old] = state.whiteners
    wider.remainders[:, :n_old, :n_old] = state.remainders
    for name in ("variances", "marginals"):
        grown = getattr(wider, name)
        grown[:, :n_old] = getattr(state, name)
        grown[:, n_old:] = initial / np.maximum(state.masses, 1.0)[:, np.newaxis]
    for k in range(int(state.size[0])):
        wider.log_dets[k] = log_determinant(wider.variances, k)
    wider.moments[:, :n_old] = state.moments
    wider.moments[0, n_old:] = state.moments[0].max()
    return wider
