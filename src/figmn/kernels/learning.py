"""The sequential learning loop of the incremental mixture."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import LARGEST, SMALLEST_VARIANCE, compiled, inlined
from figmn.kernels.evaluation import distance_of
from figmn.kernels.factor import log_determinant, residuals, shrink_and_add
from figmn.kernels.missing import find_missing, spread
from figmn.kernels.moments import absorb, scale_of

_LOG_ZERO = 746.0  # exp(-746) is zero


class State(NamedTuple):
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
    """Shape (C,): accumulated posteriors ``sp``."""
    ages: IntArray
    """Shape (C,): updates lived through, ``v`` in the paper."""
    moments: Array
    """Shape (3, D): weight, mean and variance of each column so far."""


class Settings(NamedTuple):
    """What the loop needs to know of the user's choices."""

    thresholds: Array
    """Shape (D + 1,): squared distance at which a row is novel, by known entries."""
    scale: Array
    """Shape (D,): standard deviations for new components, unless adaptive."""
    adaptive: bool
    """Whether the scale follows the running column moments."""
    delta: float
    prune_age: int
    prune_mass: float
    max_components: int
    printed_rule: bool
    """Use the covariance update as printed in the paper."""


class _Workspace(NamedTuple):
    """Scratch for one call."""

    deviations: Array
    """Shape (C, D): row minus mean, its missing entries at their expectation."""
    residuals: Array
    """Shape (C, D): whitened deviations."""
    distances: Array
    """Shape (C,): squared distances of the known entries."""
    posteriors: Array
    """Shape (C,)."""
    vector: Array
    """Shape (D,)."""
    missing: IntArray
    """Shape (D,): positions of missing entries."""
    systems: Array
    """Shape (C, D, D + 1): the least-squares problems of the missing entries."""


@compiled
def learn(points: Array, weights: Array, start: int, state: State, settings: Settings) -> int:
    """Learn rows in order until done or until the arrays are full.

    Parameters
    ----------
    points : array of shape (N, D)
        NaN marks a missing entry.
    weights : array of shape (N,)
        Rows of weight zero, and rows with nothing known, are passed over.
    start : int
        The first row to learn.

    Returns
    -------
    int
        The first row not learnt: N, or where the caller must make room.
    """
    n_points: int = points.shape[0]
    n_features: int = points.shape[1]
    capacity = state.means.shape[0]
    work = _Workspace(
        np.empty((capacity, n_features)),
        np.empty((capacity, n_features)),
        np.empty(capacity),
        np.empty(capacity),
        np.empty(n_features),
        np.empty(n_features, np.int64),
        np.empty((capacity, n_features, n_features + 1)),
    )
    for t in range(start, n_points):
        n_missing = find_missing(points, t, work.missing)
        if weights[t] == 0.0 or n_missing == n_features:
            continue
        n_components = state.size[0]
        may_grow = n_components < settings.max_components
        if may_grow and n_components == capacity:
            return t
        if settings.adaptive:
            absorb(state.moments, points, t, weights[t])
        nearest = _expect(points, t, n_missing, state, work)
        state.size[1] += 1
        novel = n_components == 0 or not nearest < settings.thresholds[n_features - n_missing]
        if novel and may_grow:
            _create(points, t, weights[t], n_missing, state, settings, work)
        else:
            _update(weights[t], n_missing, state, settings, work)
            if settings.prune_mass > 0.0:
                _prune(state, settings)
    return n_points


@inlined
def _expect(points: Array, t: int, n_missing: int, state: State, work: _Workspace) -> float:
    """Deviations, residuals, distances and posteriors of all components.

    Returns the smallest squared distance.
    """
    n_components = state.size[0]
    nearest = np.inf
    largest = -np.inf
    for k in range(n_components):
        prior = math.log(state.masses[k]) - 0.5 * state.log_dets[k]
        # Beyond this distance the posterior is exactly zero, and the component
        # is not the nearest: how far beyond does not matter.
        limit = max(nearest, 2.0 * (prior - largest + _LOG_ZERO))
        distance, log_det = distance_of(
            points,
            t,
            state.means,
            state.whiteners,
            state.variances,
            k,
            work.deviations,
            work.missing,
            n_missing,
            limit,
            work.residuals,
            work.systems,
        )
        log_joint = prior - 0.5 * (log_det + distance)
        work.distances[k] = distance
        work.posteriors[k] = log_joint
        nearest = min(nearest, distance)
        largest = max(largest, log_joint)
    total = 0.0
    for k in range(n_components):
        difference = work.posteriors[k] - largest
        likelihood = math.exp(difference) if difference > -_LOG_ZERO else 0.0
        work.posteriors[k] = likelihood
        total += likelihood
    for k in range(n_components):
        work.posteriors[k] /= total
    return nearest


@compiled
def _create(
    points: Array,
    t: int,
    weight: float,
    n_missing: int,
    state: State,
    settings: Settings,
    work: _Workspace,
) -> None:
    """Append a component at a novel row; its missing entries are expected values."""
    n_features = points.shape[1]
    new = state.size[0]
    for i in range(n_features):
        state.means[new, i] = points[t, i]
        work.vector[i] = settings.scale[i]
    for m in range(n_missing):
        i = work.missing[m]
        expected = 0.0 if new > 0 else state.moments[1, i]
        for k in range(new):
            expected += work.posteriors[k] * (state.means[k, i] + work.deviations[k, i])
        state.means[new, i] = expected
    if settings.adaptive:
        scale_of(state.moments, work.vector)
    for i in range(n_features):
        deviation = min(settings.delta * work.vector[i], LARGEST)
        # A row of weight w > 1 counts as that row seen w times, which leaves
        # the initial covariance a share of 1 / w.
        variance = max(deviation * deviation / max(weight, 1.0), SMALLEST_VARIANCE)
        state.variances[new, i] = variance
        state.marginals[new, i] = variance
        for j in range(n_features):
            state.whiteners[new, i, j] = 1.0 if i == j else 0.0
            state.remainders[new, i, j] = 0.0
    state.log_dets[new] = log_determinant(state.variances, new)
    state.masses[new] = weight
    state.ages[new] = 1
    state.size[0] = new + 1


@inlined
def _update(
    weight: float, n_missing: int, state: State, settings: Settings, work: _Workspace
) -> None:
    """Move every component towards the row by its share of it."""
    for k in range(state.size[0]):
        state.ages[k] += 1
        gained = weight * work.posteriors[k]
        before = state.masses[k]
        after = before + gained
        if after == before:  # nothing would change in floating point
            continue
        state.masses[k] = after
        # Each of the three is rounded but once.
        share, kept, growth = gained / after, before / after, gained / before
        gain = _gain(share, kept, work.distances[k], settings.printed_rule and n_missing == 0)
        lifted = _move(k, share, kept, gain, state, work)
        n_features = state.means.shape[1]
        state.log_dets[k] += math.log1p(gain / kept * work.distances[k])
        state.log_dets[k] -= n_features * math.log1p(growth)
        if n_missing > 0:
            _add_uncertainty(k, share, n_missing, state, work)
        if lifted or n_missing > 0 or not math.isfinite(state.log_dets[k]):
            state.log_dets[k] = log_determinant(state.variances, k)


@inlined
def _gain(share: float, kept: float, distance: float, printed_rule: bool) -> float:
    """Factor of ``e e'`` in the covariance update.

    Where the printed rule would lose positive definiteness, or nearly, the
    exact one takes its place.
    """
    printed = share * (1.0 - 3.0 * share + share * share)
    if printed_rule and kept + printed * distance > 1e-6 * kept:
        return printed
    return share * kept


@inlined
def _move(k: int, share: float, kept: float, gain: float, state: State, work: _Workspace) -> bool:
    """Move the mean by ``share * e`` and make the covariance ``kept S + gain e e'``."""
    for i in range(state.means.shape[1]):
        deviation = work.deviations[k, i]
        state.means[k, i] += share * deviation
        marginal = kept * state.marginals[k, i] + gain * deviation * deviation
        state.marginals[k, i] = max(marginal, SMALLEST_VARIANCE)
    return shrink_and_add(
        state.whiteners,
        state.remainders,
        state.variances,
        state.marginals,
        k,
        work.residuals,
        kept,
        gain,
        work.vector,
    )


@compiled
def _add_uncertainty(k: int, share: float, n_missing: int, state: State, work: _Workspace) -> None:
    """Add ``share`` of the missing entries' conditional covariance to the covariance.

    The deviation is done with by now, so its row serves as scratch.
    """
    for m in range(n_missing):
        spread(work.systems, k, work.missing, m, work.deviations)
        for i in range(state.means.shape[1]):
            state.marginals[k, i] += share * work.deviations[k, i] ** 2
        residuals(state.whiteners, state.variances, k, work.deviations, np.inf, work.residuals)
        shrink_and_add(
            state.whiteners,
            state.remainders,
            state.variances,
            state.marginals,
            k,
            work.residuals,
            1.0,
            share,
            work.vector,
        )


@compiled
def _prune(state: State, settings: Settings) -> None:
    """Remove old components of little mass, but never the last one."""
    k = 0
    while k < state.size[0]:
        spurious = state.ages[k] > settings.prune_age and state.masses[k] < settings.prune_mass
        if spurious and state.size[0] > 1:
            remove(k, state)
        else:
            k += 1


@compiled
def remove(k: int, state: State) -> None:
    """Close the gap that component ``k`` leaves; the others keep their order."""
    n_features = state.means.shape[1]
    for j in range(k, state.size[0] - 1):
        for i in range(n_features):
            state.means[j, i] = state.means[j + 1, i]
            state.variances[j, i] = state.variances[j + 1, i]
            state.marginals[j, i] = state.marginals[j + 1, i]
            for h in range(n_features):
                state.whiteners[j, i, h] = state.whiteners[j + 1, i, h]
                state.remainders[j, i, h] = state.remainders[j + 1, i, h]
        state.log_dets[j] = state.log_dets[j + 1]
        state.masses[j] = state.masses[j + 1]
        state.ages[j] = state.ages[j + 1]
    state.size[0] -= 1
