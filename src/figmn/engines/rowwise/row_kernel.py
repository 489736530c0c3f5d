"""The sequential learning loop: one row after the other, every component in each.

The O(D^2) arithmetic of a component is that of :mod:`figmn.kernels.factor`; what is
decided from row to row is :mod:`figmn.kernels.rule`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import (
    LARGEST_DISTANCE,
    LOG_LOST,
    LOG_ZERO,
    SMALLEST_VARIANCE,
    SURELY,
    UNEXPLAINED,
    inlined,
    uncounted,
)
from figmn.kernels.factor import log_determinant, residuals, settle, shrink_and_add
from figmn.kernels.missing import complete, find_missing, root_column
from figmn.kernels.moments import absorb
from figmn.kernels.rule import (
    NOTHING,
    NOVEL,
    SPURIOUS,
    Rule,
    any_spurious,
    fade,
    is_novel,
    normalise,
    prunes,
)

if TYPE_CHECKING:
    from figmn.engines.rowwise.dense_state import DenseState


class Scratch(NamedTuple):
    """What a row needs beside the state, with room for C components."""

    deviations: Array
    """Shape (C, D): the row minus the means; missing entries at their expectation."""
    residuals: Array
    """Shape (C, D): what whitening leaves of them."""
    distances: Array
    """Shape (C,): squared distances, or bounds on them."""
    responsibilities: Array
    """Shape (C,), or log joint densities."""
    priors: Array
    """Shape (C,): what of the log joint density does not depend on the row."""
    narrowness: Array
    """Shape (C, D): one over the marginal variances."""
    vector: Array
    """Shape (D,)."""
    missing: IntArray
    """Shape (D,): where entries are missing."""
    systems: Array
    """Shape (C, D, D + 2): see :func:`figmn.kernels.missing.complete`."""


def room_for(capacity: int, n_features: int) -> Scratch:
    """Scratch for that many components."""
    return Scratch(
        deviations=np.empty((capacity, n_features)),
        residuals=np.empty((capacity, n_features)),
        distances=np.empty(capacity),
        responsibilities=np.empty(capacity),
        priors=np.empty(capacity),
        narrowness=np.empty((capacity, n_features)),
        vector=np.empty(n_features),
        missing=np.empty(n_features, np.int64),
        systems=np.empty((capacity, n_features, n_features + 2)),
    )


@uncounted
def learn(
    points: Array,
    weights: Array,
    start: int,
    stop: int,
    state: DenseState,
    rule: Rule,
    scratch: Scratch,
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
    state : DenseState
    rule : Rule
    scratch : Scratch

    Returns
    -------
    stop : int
        The first row not learnt. One that starts a component has changed nothing yet.
    event : int
        ``NOTHING``, ``NOVEL`` or ``SPURIOUS``.
    """
    n_components, n_features = state.size[0], len(scratch.vector)
    masses, log_dets = state.masses, state.log_dets
    priors, narrowness = scratch.priors, scratch.narrowness
    responsibilities = scratch.responsibilities
    event, may_prune = NOTHING, prunes(rule)
    for k in range(n_components):
        _note(k, masses, log_dets, state.marginals, priors, narrowness)
    for t in range(start, stop):
        n_missing = find_missing(points, t, scratch.missing)
        if weights[t] == 0.0 or n_missing == n_features:
            continue
        if n_missing == 0:
            nearest, largest = _expect(points, t, weights[t], state, scratch)
        else:
            nearest, largest = _expect_incomplete(points, t, n_missing, state, scratch)
        if is_novel(n_components, nearest, n_features - n_missing, rule):
            stop, event = t, NOVEL
            break
        if rule.retention < 1.0:  # all masses by the same factor: responsibilities stay
            fade(masses, n_components, weights[t], rule)
            for k in range(n_components):
                priors[k] = math.log(masses[k]) - 0.5 * log_dets[k]
        state.size[1] += 1
        normalise(responsibilities, n_components, largest)
        for k in range(n_components):
            state.ages[k] += 1
            gained = weights[t] * responsibilities[k]
            if masses[k] + gained == masses[k]:
                continue  # nothing would change in floating point
            printed = rule.printed_rule and n_missing == 0
            lifted = update(k, gained, printed, state, scratch)
            if n_missing > 0:
                share = gained / masses[k]
                lifted |= _add_uncertainty(k, share, n_missing, state, scratch)
                log_dets[k] = log_determinant(state.variances, k)
            if lifted:
                log_dets[k] = settle(
                    state.whiteners, state.variances, state.marginals, k, scratch.systems
                )
            if n_components > 1:  # a single one is always the likeliest
                _note(k, masses, log_dets, state.marginals, priors, narrowness)
        if may_prune and any_spurious(n_components, masses, state.ages, rule):
            stop, event = t + 1, SPURIOUS
            break
    if rule.adaptive:
        absorb(state.moments, points, weights, start, stop)
    return stop, event


@uncounted
def drop(state: DenseState, k: int) -> None:
    """Close the gap that component ``k`` leaves; the others keep their order."""
    _, n_features = state.means.shape
    for to in range(k, state.size[0] - 1):
        after = to + 1
        for i in range(n_features):
            state.means[to, i] = state.means[after, i]
            state.variances[to, i] = state.variances[after, i]
            state.marginals[to, i] = state.marginals[after, i]
            for j in range(n_features):
                state.whiteners[to, i, j] = state.whiteners[after, i, j]
                state.remainders[to, i, j] = state.remainders[after, i, j]
        state.log_dets[to], state.masses[to] = state.log_dets[after], state.masses[after]
        state.ages[to] = state.ages[after]
    state.size[0] -= 1


@inlined
def measure(
    points: Array, t: int, k: int, limit: float, state: DenseState, scratch: Scratch
) -> float:
    """Squared distance of a complete row; its deviation and residuals are kept.

    The loop is that of ``residuals``, written out, and it stops beyond ``limit``.
    """
    deviations, variances = scratch.deviations, state.variances
    distance = 0.0
    for r in range(len(scratch.vector)):
        deviations[k, r] = points[t, r] - state.means[k, r]
        total = deviations[k, r]
        for j in range(r):
            total += state.whiteners[k, r, j] * deviations[k, j]
        scratch.residuals[k, r] = total
        distance += total * total / variances[k, r]
        if distance > limit:
            break
    return distance


@inlined
def update(k: int, gained: float, printed_rule: bool, state: DenseState, scratch: Scratch) -> bool:
    r"""Let a component learn a row of which it has gained some weight.

    With :math:`w` the share of that in its mass from now on, and :math:`e` the deviation,

    .. math:: \mu' = \mu + w e, \qquad S' = (1 - w) S + w (1 - w) e e^\top

    Deviation, residuals and distance are read from ``scratch``. Returns whether
    numbers have come to their limits, and the factor must settle.
    """
    means, marginals, log_dets = state.means, state.marginals, state.log_dets
    before, distance = state.masses[k], scratch.distances[k]
    after = before + gained
    state.masses[k] = after
    # Each of the three is rounded but once.
    share, kept, growth = gained / after, before / after, gained / before
    gain = _printed_gain(share, kept, distance) if printed_rule else share * kept
    n_features = len(scratch.vector)
    for i in range(n_features):
        deviation = scratch.deviations[k, i]
        means[k, i] += share * deviation
        marginal = kept * marginals[k, i] + gain * deviation * deviation
        marginals[k, i] = max(marginal, SMALLEST_VARIANCE)
    lifted = shrink_and_add(
        state.whiteners,
        state.remainders,
        state.variances,
        marginals,
        k,
        scratch.residuals,
        kept,
        gain,
        scratch.vector,
    )
    log_dets[k] += math.log1p(gain / kept * distance) - n_features * math.log1p(growth)
    # Where a variance grows beyond the digits of a number, so do the rounding errors
    # of slopes on it, beyond what marginals tell. As for the logarithm, comparisons:
    # sums that may be regrouped make math.isfinite true of infinity.
    return lifted or not gain * distance <= kept / UNEXPLAINED or not abs(log_dets[k]) < np.inf


@inlined
def _note(
    k: int, masses: Array, log_dets: Array, marginals: Array, priors: Array, narrowness: Array
) -> None:
    """Note what rows will need to know of a component that has changed."""
    priors[k] = math.log(masses[k]) - 0.5 * log_dets[k]
    _, n_features = marginals.shape
    for i in range(n_features):
        narrowness[k, i] = 1.0 / marginals[k, i]


@inlined
def _expect(
    points: Array, t: int, weight: float, state: DenseState, scratch: Scratch
) -> tuple[float, float]:
    """Log joint densities of components and a complete row.

    Returns the smallest distance, and the largest density. A component is left where it
    can no longer gain anything from the row: if a likely one comes first, most are left
    after a few variables, or before the first.
    """
    distances, log_joint, priors = scratch.distances, scratch.responsibilities, scratch.priors
    n_components = state.size[0]
    first = _likely(points, t, state, scratch) if n_components > 1 else 0
    nearest, largest = np.inf, -np.inf
    for turn in range(n_components):
        k = first if turn == 0 else (0 if turn == first else turn)
        margin = LOG_LOST if weight <= state.masses[k] else LOG_ZERO
        limit = max(nearest, 2.0 * (priors[k] - largest + margin))
        if turn > 0 and distances[k] > limit:
            log_joint[k] = -np.inf
            continue
        distance = measure(points, t, k, limit, state, scratch)
        if distance > limit:
            log_joint[k] = -np.inf
            continue
        if not distance <= LARGEST_DISTANCE:
            distance = residuals(
                state.whiteners, state.variances, k, scratch.deviations, scratch.residuals
            )
        distances[k] = distance
        log_joint[k] = priors[k] - 0.5 * distance
        nearest = min(nearest, distance)
        largest = max(largest, log_joint[k])
    return nearest, largest


@inlined
def _likely(points: Array, t: int, state: DenseState, scratch: Scratch) -> int:
    """A component that is likely, as if variables were independent.

    Writes bounds on the squared distances: none is smaller than that in any one
    variable, by its marginal.
    """
    best, nearest = 0, np.inf
    for k in range(state.size[0]):
        distance, largest = 0.0, 0.0
        for i in range(len(scratch.vector)):
            deviation = points[t, i] - state.means[k, i]
            part = scratch.narrowness[k, i] * deviation * deviation
            distance += part
            largest = max(largest, part)
        scratch.distances[k] = SURELY * largest
        if distance < nearest:
            best, nearest = k, distance
    return best


@inlined
def _expect_incomplete(
    points: Array, t: int, n_missing: int, state: DenseState, scratch: Scratch
) -> tuple[float, float]:
    """The same for a row with missing entries, whose deviations are completed."""
    nearest, largest = np.inf, -np.inf
    for k in range(state.size[0]):
        for i in range(len(scratch.vector)):
            scratch.deviations[k, i] = points[t, i] - state.means[k, i]
        distance, log_det = complete(
            state.whiteners,
            state.variances,
            k,
            scratch.deviations,
            scratch.missing,
            n_missing,
            scratch.residuals,
            scratch.systems,
        )
        log_joint = math.log(state.masses[k]) - 0.5 * (log_det + state.log_dets[k] + distance)
        scratch.distances[k], scratch.responsibilities[k] = distance, log_joint
        nearest, largest = min(nearest, distance), max(largest, log_joint)
    return nearest, largest


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
    k: int, share: float, n_missing: int, state: DenseState, scratch: Scratch
) -> bool:
    """Add ``share`` of the missing entries' conditional covariance to the covariance.

    The deviation is done with by now, so its row serves as scratch. Returns
    whether a variance had to be lifted to its floor.
    """
    lifted = False
    for m in range(n_missing):
        root_column(scratch.systems, k, scratch.missing, m, scratch.deviations)
        for i in range(len(scratch.vector)):
            state.marginals[k, i] += share * scratch.deviations[k, i] * scratch.deviations[k, i]
        residuals(state.whiteners, state.variances, k, scratch.deviations, scratch.residuals)
        lifted |= shrink_and_add(
            state.whiteners,
            state.remainders,
            state.variances,
            state.marginals,
            k,
            scratch.residuals,
            1.0,
            share,
            scratch.vector,
        )
    return lifted
