"""Many rows learnt at a time, by strides.

Where clusters lie apart, most rows belong to one component and change no other.
What it has learnt after many such rows does not depend on what it was in
between, so that those of a *stride* can be learnt by one update of a matrix for
each component. That they are such rows must be known beforehand, while
components still are what they were: :mod:`figmn.engines.strides.certainty` shows it. Rows of
which it cannot be shown are learnt in their turn, by those components that may have
a say in them; these have caught up by then with the rows before.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from figmn._typing import Array, IntArray
from figmn.engines.rowwise.dense_state import DenseState
from figmn.engines.rowwise.row_kernel import Scratch, measure, update
from figmn.engines.strides.certainty import (
    FARTHEST,
    GROWTH,
    LIMIT,
    N_BOUNDS,
    allow,
    bound,
    find_shared,
)
from figmn.engines.strides.pooled_update import STRIP, accumulate, update_pooled
from figmn.kernels.compiler import UNEXPLAINED, compiled, inlined, uncounted
from figmn.kernels.factor import settle
from figmn.kernels.moments import absorb
from figmn.kernels.rule import normalise

_FEW = 4  # and as many more as there are variables: fewer rows are learnt one by one
_MOST_GROWN = 1.5  # by the rows of a stride, relative to a component's mass
_LEAST_SHARE = 1e-12  # of a row in a component's mass: a lighter one may change nothing
_LEAST_UNEXPLAINED = 16.0 * FARTHEST * UNEXPLAINED  # by the number of variables and 8
_ORDINARY = 1e-280  # variances above it, and below its inverse, are safe to multiply


class StridePlan(NamedTuple):
    """What is known of the M rows of a stride, and of K components in it.

    Rows have two orders: that of the stream, and their *places*, where those of one
    component are together.
    """

    guesses: IntArray
    """Shape (M,), by the stream: which component a row may belong to."""
    uncertain: IntArray
    """Shape (M,), by the stream: the place of a row uncertain, or -1."""
    numbers: IntArray
    """Shape (M,), by place, as all that follows: where rows stand in the stream."""
    distances: Array
    """Shape (M,): squared distances from the component; infinite where that is far."""
    sharers: IntArray
    """Shape (M,): which other components may have a say, as bits."""
    ordinary: IntArray
    """Shape (K,): whether a component can learn rows together at all."""
    first: IntArray
    """Shape (K + 1,): where those of each component begin."""
    last: IntArray
    """Shape (K,): where those end that it can learn in this stride."""
    following: IntArray
    """Shape (K,): the next that it has to learn."""
    n_uncertain: IntArray
    """Shape (K,): rows uncertain that it may gain from."""
    concerned: IntArray
    """Shape (K,): those that may gain from the row that is being learnt."""
    untouched: IntArray
    """Shape (K,): whether the component is what it was, and the sums are those of all rows."""
    sums: Array
    """Shape (K, 3, D): over the rows of each component, by their shares."""
    scatters: Array
    """Shape (K, D, D): such sums of products of whitened deviations; lower triangles."""
    allowances: Array
    """Shape (K,): how much each may gain from rows of others; kept from stride to stride."""
    bounds: Array
    """Shape (K, N_BOUNDS): see :mod:`figmn.engines.strides.certainty`."""
    strip: Array
    """Shape (2 D + 2, STRIP): rows side by side."""


def room_for_stride(n_rows: int, n_components: int, n_features: int) -> StridePlan:
    """Room for strides of at most that many rows."""
    by_row, by_component = (n_rows,), (n_components,)
    return StridePlan(
        guesses=np.empty(by_row, np.int64),
        uncertain=np.empty(by_row, np.int64),
        numbers=np.empty(by_row, np.int64),
        distances=np.empty(by_row),
        sharers=np.empty(by_row, np.int64),
        ordinary=np.empty(by_component, np.int64),
        first=np.empty(n_components + 1, np.int64),
        last=np.empty(by_component, np.int64),
        following=np.empty(by_component, np.int64),
        n_uncertain=np.empty(by_component, np.int64),
        concerned=np.empty(by_component, np.int64),
        untouched=np.empty(by_component, np.int64),
        sums=np.empty((n_components, 3, n_features)),
        scatters=np.empty((n_components, n_features, n_features)),
        allowances=np.full(by_component, 0.25),
        bounds=np.empty((n_components, N_BOUNDS)),
        strip=np.zeros((2 * n_features + 2, STRIP)),
    )


def stride(
    points: Array,
    weights: Array,
    start: int,
    stop: int,
    threshold: float,
    adaptive: bool,
    state: DenseState,
    scratch: Scratch,
    plan: StridePlan,
) -> tuple[int, int, int]:
    """Learn rows, the certain ones together.

    A stride of a few rows takes longer than learning them one by one.

    Parameters
    ----------
    points : array of shape (N, D)
    weights : array of shape (N,)
    start, stop : int
        The first row to learn, and the row after the last.
    threshold : float
        Squared distance from which on a row is novel.
    adaptive : bool
        Whether column moments are noted.
    state : DenseState
        With one component at least, and ``MOST_COMPONENTS`` at most.
    scratch : Scratch
    plan : StridePlan

    Returns
    -------
    done : int
        The first row not learnt: it may be novel, has missing entries or no weight, or
        components have changed too much to tell.
    n_singly : int
        How many rows were learnt one by one.
    n_needless : int
        How many of these since they were uncertain, but only one component has gained.
    """
    guess(points, start, stop, int(state.size[0]), state.means, state.marginals, plan.guesses)
    end, heaviest = group(weights, start, stop, state, plan)
    end = find_uncertain(points, weights, start, end, threshold, heaviest, state, scratch, plan)
    return learn_planned(points, weights, start, end, threshold, adaptive, state, scratch, plan)


@compiled
def guess(
    points: Array,
    start: int,
    stop: int,
    n_components: int,
    all_means: Array,
    marginals: Array,
    guesses: IntArray,
) -> None:
    """Guess the components of rows, as if variables were independent.

    Rows lie side by side, so that several are compared at once, in four variables
    at a time; there are zeros where a variable has no three others.
    """
    _, n_features = points.shape
    last = 4 * ((n_features - 1) // 4)
    total, least, best = last + 4, last + 5, last + 6
    # Made here, so that its width is known to the compiler.
    strip = np.empty((last + 7, STRIP))
    means, narrowness = np.empty((n_components, last + 4)), np.empty((n_components, last + 4))
    for i in range(last + 4):
        for k in range(n_components):
            given = i < n_features
            means[k, i] = all_means[k, i] if given else 0.0
            narrowness[k, i] = 1.0 / marginals[k, i] if given else 0.0
        for c in range(STRIP):
            strip[i, c] = 0.0
    for begin in range(start, stop, STRIP):
        width = min(STRIP, stop - begin)
        for c in range(width):
            for i in range(n_features):
                strip[i, c] = points[begin + c, i]
        for c in range(STRIP):
            strip[least, c], strip[best, c] = np.inf, 0.0
        for k in range(n_components if n_components > 1 else 0):
            for c in range(STRIP):
                strip[total, c] = 0.0
            for i in range(0, last + 4, 4):
                v, w, x, y = means[k, i], means[k, i + 1], means[k, i + 2], means[k, i + 3]
                e, f = narrowness[k, i], narrowness[k, i + 1]
                g, h = narrowness[k, i + 2], narrowness[k, i + 3]
                for c in range(STRIP):
                    p, q = strip[i, c] - v, strip[i + 1, c] - w
                    r, s = strip[i + 2, c] - x, strip[i + 3, c] - y
                    strip[total, c] += (e * p * p + f * q * q) + (g * r * r + h * s * s)
            this = float(k)
            for c in range(STRIP):
                distance, so_far, before = strip[total, c], strip[least, c], strip[best, c]
                strip[best, c] = this if distance < so_far else before
                strip[least, c] = min(distance, so_far)
        for c in range(width):
            guesses[begin - start + c] = int(strip[best, c])


@uncounted
def group(
    weights: Array, start: int, stop: int, state: DenseState, plan: StridePlan
) -> tuple[int, float]:
    """Put rows in their places: those guessed to be of one component together, in order.

    Returns the first row that its component cannot learn together with those before,
    by their weights, and the largest weight.
    """
    n_components, n_rows, masses = state.size[0], stop - start, state.masses
    first, last, guesses, bounds = plan.first, plan.last, plan.guesses, plan.bounds
    for k in range(n_components + 1):
        first[k] = 0
    for c in range(n_rows):
        first[guesses[c] + 1] += 1
    for k in range(n_components):
        first[k + 1] += first[k]
        last[k] = plan.following[k] = first[k]
        bounds[k, GROWTH] = 1.0
        plan.ordinary[k] = _is_ordinary(k, state.variances, state.marginals)
    heaviest = 0.0
    for c in range(n_rows):
        k, weight = guesses[c], weights[start + c]
        share, place = weight / masses[k], last[k]
        grown = bounds[k, GROWTH] + share
        if plan.ordinary[k] == 0 or not (share > _LEAST_SHARE and grown <= _MOST_GROWN):
            return start + c, heaviest
        bounds[k, GROWTH] = grown
        last[k] += 1
        plan.numbers[place], plan.sharers[place] = start + c, 0
        plan.uncertain[c] = -1
        heaviest = max(heaviest, weight)
    return stop, heaviest


@inlined
def _is_ordinary(k: int, variances: Array, marginals: Array) -> bool:
    """Whether numbers are far from the end of their range, and from the floors.

    That is even if the rows of a stride, and what is allowed of others, should make a
    variance grow by as much as they can.
    """
    ordinary = True
    _, n_features = variances.shape
    for i in range(n_features):
        variance, marginal = variances[k, i], marginals[k, i]
        ordinary &= variance > _LEAST_UNEXPLAINED * (n_features + 8.0) * marginal
        ordinary &= variance > _ORDINARY and marginal < 1.0 / _ORDINARY
    return ordinary


@uncounted
def find_uncertain(
    points: Array,
    weights: Array,
    start: int,
    stop: int,
    threshold: float,
    heaviest: float,
    state: DenseState,
    scratch: Scratch,
    plan: StridePlan,
) -> int:
    """Find the rows uncertain; return the first row that cannot be learnt in this stride."""
    n_components, n_features = state.size[0], len(scratch.vector)
    first, last, numbers, bounds = plan.first, plan.last, plan.numbers, plan.bounds
    masses, log_dets = state.masses, state.log_dets
    limit = min(threshold, FARTHEST * (n_features + 8.0))
    for k in range(n_components):
        end = last[k]
        accumulate(k, first[k], end, limit, points, weights, state, plan)
        bound(k, threshold, heaviest, masses, log_dets, plan.allowances, plan.scatters, bounds)
        plan.n_uncertain[k], plan.untouched[k] = 0, 1
        if last[k] < end:
            stop = min(stop, numbers[last[k]])
    find_shared(points, state, scratch, plan)
    for k in range(n_components):
        for c in range(first[k], last[k]):
            if plan.sharers[c] != 0 or not plan.distances[c] < bounds[k, LIMIT]:
                plan.uncertain[numbers[c] - start] = c
                plan.n_uncertain[k] += 1
    # Few rows at a time take longer by a matrix than one by one.
    for k in range(n_components):
        if plan.n_uncertain[k] * (_FEW + n_features) > last[k] - first[k]:
            for c in range(first[k], last[k]):
                plan.uncertain[numbers[c] - start] = c
    return stop


@uncounted
def learn_planned(
    points: Array,
    weights: Array,
    start: int,
    stop: int,
    threshold: float,
    adaptive: bool,
    state: DenseState,
    scratch: Scratch,
    plan: StridePlan,
) -> tuple[int, int, int]:
    """Learn rows from one uncertain row to the next.

    Such a row is learnt by all components concerned, once they have caught up with
    their rows before it. It ends the stride if it may be novel, or an allowance ends.
    """
    masses, concerned, following = state.masses, plan.concerned, plan.following
    distances, responsibilities = scratch.distances, scratch.responsibilities
    t, n_singly, n_needless = start, 0, 0
    while True:
        while t < stop and plan.uncertain[t - start] < 0:
            t += 1
        place = plan.uncertain[t - start] if t < stop else -1
        n_concerned, measured, sharers = 0, False, -1  # all of them
        if place >= 0 and plan.distances[place] < np.inf:
            n_concerned, measured, sharers = 1, True, plan.sharers[place]
            concerned[0] = plan.guesses[t - start]
        for k in range(state.size[0]):
            if sharers & (1 << k):
                concerned[n_concerned] = k
                n_concerned += 1
        for c in range(n_concerned):
            k = concerned[c]
            begin = following[k]
            while following[k] < plan.last[k] and plan.numbers[following[k]] < t:
                following[k] += 1
            if begin < following[k]:
                update_pooled(k, begin, following[k], points, weights, state, scratch, plan)
        if t == stop:
            break
        nearest, largest = np.inf, -np.inf
        for c in range(n_concerned):
            k = concerned[c]
            distances[k] = measure(points, t, k, np.inf, state, scratch)
            log_joint = math.log(masses[k]) - 0.5 * (state.log_dets[k] + distances[k])
            responsibilities[c] = log_joint
            nearest, largest = min(nearest, distances[k]), max(largest, log_joint)
        normalise(responsibilities, n_concerned, largest)
        certain = nearest < threshold
        for c in range(n_concerned):
            k = concerned[c]
            responsibilities[c] *= weights[t]
            # What its own component gains of a row that was measured is counted already.
            if c > 0 or not measured:
                certain &= allow(k, responsibilities[c], distances[k], masses, plan)
        n_gaining = 0
        for c in range(n_concerned if certain else 0):
            k = concerned[c]
            if masses[k] + responsibilities[c] != masses[k]:
                n_gaining += 1
                plan.untouched[k] = 0
                if update(k, responsibilities[c], False, state, scratch):
                    state.log_dets[k] = settle(
                        state.whiteners, state.variances, state.marginals, k, scratch.systems
                    )
        if n_gaining > 0:
            following[plan.guesses[t - start]] = place + 1
            n_singly += 1
            n_needless += n_concerned > n_gaining == 1
            t += 1
        else:
            stop = t
    for k in range(state.size[0]):
        state.ages[k] += stop - start
    state.size[1] += stop - start
    if adaptive:
        absorb(state.moments, points, weights, start, stop)
    return stop, n_singly, n_needless
