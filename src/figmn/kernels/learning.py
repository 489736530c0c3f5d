"""The sequential learning loop of the incremental mixture."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import (
    LARGEST_DISTANCE,
    LOG_LOST,
    LOG_ZERO,
    SMALLEST_MASS,
    SMALLEST_VARIANCE,
    SURELY,
    UNEXPLAINED,
    compiled,
    inlined,
    internal,
)
from figmn.kernels.factor import log_determinant, residuals, settle, shrink_and_add
from figmn.kernels.missing import complete, find_missing, spread
from figmn.kernels.moments import absorb

DONE, NOVEL, SPURIOUS = 0, 1, 2
"""Why a loop over rows has stopped: no row is left; or the row where it stopped starts
a component; or the row before it has left a component to be removed."""


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
    """What learning needs to know of the user's choices."""

    thresholds: Array
    """Shape (D + 1,): squared distance at which a row is novel, by known entries."""
    scale: Array
    """Shape (D,): standard deviations for new components, unless adaptive."""
    adaptive: bool
    """Whether the scale follows the running column moments."""
    delta: float
    """Width of new components, in such standard deviations."""
    prune_age: int
    prune_mass: float
    max_components: int
    printed_rule: bool
    """Use the covariance update as printed in the paper."""
    retention: float
    """What a row of weight one leaves of the masses before it; 1 forgets nothing."""
    faded: float
    """A component with a smaller share of all mass is removed."""


# The loop takes its arrays apart once and hands them on one by one: a field of
# a tuple that is read inside a loop costs as much as the arithmetic on it.


@compiled
def fade(masses: Array, count: int, weight: float, settings: Settings) -> None:
    """Let the first masses fade as a row of some weight comes in."""
    left = settings.retention**weight
    for k in range(count):
        masses[k] = max(masses[k] * left, SMALLEST_MASS)


@compiled
def learn(
    points: Array, weights: Array, start: int, stop: int, state: State, settings: Settings
) -> tuple[int, int]:
    """Learn rows one by one, until components come or go.

    Parameters
    ----------
    points : array of shape (N, D)
        NaN marks a missing entry.
    weights : array of shape (N,)
        Rows of weight zero, and rows with nothing known, are passed over.
    start, stop : int
        The first row to learn, and the row after the last.

    Returns
    -------
    stop : int
        The first row not learnt. One that starts a component counts as learnt in all
        else: moments know it, and masses have faded for it.
    reason : int
        ``DONE``, ``NOVEL`` or ``SPURIOUS``.
    """
    n_components, n_features = state.size[0], state.means.shape[1]
    may_grow = n_components < settings.max_components
    size, means, whiteners, remainders = state.size, state.means, state.whiteners, state.remainders
    variances, marginals, log_dets = state.variances, state.marginals, state.log_dets
    masses, ages, moments = state.masses, state.ages, state.moments
    # Scratch: for each component the row's deviation from its mean, with
    # missing entries at their expectation; residuals; distance; posterior;
    # what of the log joint density does not depend on the row; and one over
    # the marginal variances.
    deviations = np.empty((n_components, n_features))
    residual = np.empty((n_components, n_features))
    distances = np.empty(n_components)
    posteriors = np.empty(n_components)
    priors = np.empty(n_components)
    narrowness = np.empty((n_components, n_features))
    for k in range(n_components):
        _note(k, masses, log_dets, marginals, priors, narrowness)
    scratch = np.empty(n_features)
    missing = np.empty(n_features, np.int64)
    systems = np.empty((n_components, n_features, n_features + 2))
    for t in range(start, stop):
        n_missing = find_missing(points, t, missing)
        if weights[t] == 0.0 or n_missing == n_features:
            continue
        if settings.adaptive:
            absorb(moments, points, t, weights[t])
        if settings.retention < 1.0:
            fade(masses, n_components, weights[t], settings)
            for k in range(n_components):
                priors[k] = math.log(masses[k]) - 0.5 * log_dets[k]
        if n_missing == 0:
            nearest = _expect(
                points,
                t,
                weights[t],
                n_components,
                means,
                whiteners,
                variances,
                narrowness,
                masses,
                priors,
                deviations,
                residual,
                distances,
                posteriors,
            )
        else:
            nearest = _expect_incomplete(
                points,
                t,
                state,
                deviations,
                missing,
                n_missing,
                residual,
                distances,
                posteriors,
                systems,
            )
        size[1] += 1
        novel = n_components == 0 or not nearest < settings.thresholds[n_features - n_missing]
        if novel and may_grow:
            return t, NOVEL
        for k in range(n_components):
            ages[k] += 1
            gained = weights[t] * posteriors[k]
            before = masses[k]
            after = before + gained
            if after == before:  # nothing would change in floating point
                continue
            masses[k] = after
            # Each of the three is rounded but once.
            share, kept, growth = gained / after, before / after, gained / before
            gain = share * kept
            if settings.printed_rule and n_missing == 0:
                gain = _printed_gain(share, kept, distances[k])
            for i in range(n_features):
                deviation = deviations[k, i]
                means[k, i] += share * deviation
                marginal = kept * marginals[k, i] + gain * deviation * deviation
                marginals[k, i] = max(marginal, SMALLEST_VARIANCE)
            lifted = shrink_and_add(
                whiteners, remainders, variances, marginals, k, residual, kept, gain, scratch
            )
            # Where a variance grows beyond the digits of a number, so do the
            # rounding errors of slopes on it, beyond what marginals tell.
            lifted |= gain * distances[k] > kept / UNEXPLAINED
            log_dets[k] += math.log1p(gain / kept * distances[k]) - n_features * math.log1p(growth)
            if n_missing > 0:
                lifted |= _add_uncertainty(
                    k, share, state, deviations, missing, n_missing, residual, systems, scratch
                )
            if lifted:
                settle(whiteners, variances, marginals, k)
            # A comparison: sums that may be regrouped make math.isfinite true of infinity.
            if lifted or n_missing > 0 or not abs(log_dets[k]) < np.inf:
                log_dets[k] = log_determinant(variances, k)
            if n_components > 1:  # a single one is always the likeliest
                _note(k, masses, log_dets, marginals, priors, narrowness)
        prunes = settings.prune_mass > 0.0 or settings.faded > 0.0
        if prunes and _any_spurious(n_components, masses, ages, settings):
            return t + 1, SPURIOUS
    return stop, DONE


@internal
def _note(
    k: int, masses: Array, log_dets: Array, marginals: Array, priors: Array, narrowness: Array
) -> None:
    """Note what rows will need to know of a component that has changed."""
    priors[k] = math.log(masses[k]) - 0.5 * log_dets[k]
    for i in range(marginals.shape[1]):
        narrowness[k, i] = 1.0 / marginals[k, i]


@inlined
def _expect(
    points: Array,
    t: int,
    weight: float,
    n_components: int,
    means: Array,
    whiteners: Array,
    variances: Array,
    narrowness: Array,
    masses: Array,
    priors: Array,
    deviations: Array,
    residual: Array,
    distances: Array,
    posteriors: Array,
) -> float:
    """Posteriors of the components given a complete row, and the smallest distance.

    The loop is that of ``residuals``, written out, and it stops where a
    component can no longer gain anything from the row: if a likely one comes
    first, most do so after a few variables, or before the first.
    """
    first = 0
    if n_components > 1:
        first = _likely(points, t, n_components, means, narrowness, distances)
    nearest = np.inf
    largest = -np.inf
    for turn in range(n_components):
        k = first if turn == 0 else (0 if turn == first else turn)
        margin = LOG_LOST if weight <= masses[k] else LOG_ZERO
        limit = max(nearest, 2.0 * (priors[k] - largest + margin))
        if turn > 0 and distances[k] > limit:
            posteriors[k] = -np.inf
            continue
        distance = 0.0
        for r in range(points.shape[1]):
            deviations[k, r] = points[t, r] - means[k, r]
            total = deviations[k, r]
            for j in range(r):
                total += whiteners[k, r, j] * deviations[k, j]
            residual[k, r] = total
            distance += total * total / variances[k, r]
            if distance > limit:
                break
        if distance > limit:
            posteriors[k] = -np.inf
            continue
        if not distance <= LARGEST_DISTANCE:
            distance = residuals(whiteners, variances, k, deviations, residual)
        distances[k] = distance
        posteriors[k] = priors[k] - 0.5 * distance
        nearest = min(nearest, distance)
        largest = max(largest, posteriors[k])
    _normalise(posteriors, n_components, largest)
    return nearest


@inlined
def _likely(
    points: Array, t: int, n_components: int, means: Array, narrowness: Array, bounds: Array
) -> int:
    """A component that is likely, as if variables were independent.

    Writes bounds on the squared distances, of shape (K,): none is smaller than
    that in any one variable, by its marginal.
    """
    best = 0
    nearest = np.inf
    for k in range(n_components):
        distance = 0.0
        largest = 0.0
        for i in range(means.shape[1]):
            deviation = points[t, i] - means[k, i]
            part = narrowness[k, i] * deviation * deviation
            distance += part
            largest = max(largest, part)
        bounds[k] = SURELY * largest
        if distance < nearest:
            best, nearest = k, distance
    return best


@inlined
def _expect_incomplete(
    points: Array,
    t: int,
    state: State,
    deviations: Array,
    missing: IntArray,
    n_missing: int,
    residual: Array,
    distances: Array,
    posteriors: Array,
    systems: Array,
) -> float:
    """The same for a row with missing entries, whose deviations are completed."""
    nearest = np.inf
    largest = -np.inf
    for k in range(state.size[0]):
        for i in range(points.shape[1]):
            deviations[k, i] = points[t, i] - state.means[k, i]
        distances[k], log_det = complete(
            state.whiteners,
            state.variances,
            k,
            deviations,
            missing,
            n_missing,
            residual,
            systems,
        )
        log_det += state.log_dets[k]
        posteriors[k] = math.log(state.masses[k]) - 0.5 * (log_det + distances[k])
        nearest = min(nearest, distances[k])
        largest = max(largest, posteriors[k])
    _normalise(posteriors, state.size[0], largest)
    return nearest


@inlined
def _normalise(posteriors: Array, count: int, largest: float) -> None:
    """Turn log joint densities into posteriors."""
    total = 0.0
    for k in range(count):
        difference = posteriors[k] - largest
        posteriors[k] = math.exp(difference) if difference > -LOG_ZERO else 0.0
        total += posteriors[k]
    for k in range(count):
        posteriors[k] /= total


@inlined
def _printed_gain(share: float, kept: float, distance: float) -> float:
    """Factor of ``e e'`` in the covariance update as printed in the paper.

    Where that would lose positive definiteness, or nearly, the exact one
    takes its place.
    """
    printed = share * (1.0 - 3.0 * share + share * share)
    definite = kept + printed * distance > 1e-6 * kept
    return printed if definite else share * kept


@inlined
def _add_uncertainty(
    k: int,
    share: float,
    state: State,
    deviations: Array,
    missing: IntArray,
    n_missing: int,
    residual: Array,
    systems: Array,
    scratch: Array,
) -> bool:
    """Add ``share`` of the missing entries' conditional covariance to the covariance.

    The deviation is done with by now, so its row serves as scratch. Returns
    whether a variance had to be lifted to its floor.
    """
    lifted = False
    for m in range(n_missing):
        spread(systems, k, missing, m, deviations)
        for i in range(scratch.shape[0]):
            state.marginals[k, i] += share * deviations[k, i] ** 2
        residuals(state.whiteners, state.variances, k, deviations, residual)
        lifted |= shrink_and_add(
            state.whiteners,
            state.remainders,
            state.variances,
            state.marginals,
            k,
            residual,
            1.0,
            share,
            scratch,
        )
    return lifted


@inlined
def _any_spurious(n_components: int, masses: Array, ages: IntArray, settings: Settings) -> bool:
    """Whether there are old components of little mass or faded ones, but for the heaviest."""
    heaviest, total = 0, 0.0
    for k in range(n_components):
        total += masses[k]
        if masses[k] > masses[heaviest]:
            heaviest = k
    least = settings.faded * total
    spurious = False
    for k in range(n_components):
        old = ages[k] > settings.prune_age and masses[k] < settings.prune_mass
        spurious |= (old or masses[k] < least) and k != heaviest
    return spurious
