r"""Learning a block of rows in the span of those rows.

For each component that a block touches, all that the sequential algorithm needs
to know of the rows are their inner products ``M`` under the component as it is
now. A step towards row ``t`` with share ``w`` changes them by

.. math::

    M_{uv}' = \frac{M_{uv} - w (M_{ut} + M_{vt}) + w^2 M_{tt}
        - \frac{w}{1 + w M_{tt}} q_u q_v}{1 - w}, \qquad q = M_{\cdot t} - w M_{tt}

the mean moves by a combination of the rows, and one further combination joins
the covariance. So a step costs O(B^2) instead of O(D^2), and the work in D
dimensions is left to products of whole blocks, before and after.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from figmn._typing import AnyArray, Array, IntArray
from figmn.kernels.compiler import LOG_ZERO, compiled, internal
from figmn.kernels.learning import DONE, NOVEL, SPURIOUS, Settings, fade
from figmn.kernels.moments import absorb

UNPREPARED, ASTONISHING, STALE, WORN = 3, 4, 5, 6
"""Further reasons why a walk has stopped: the row where it stopped needs inner products
of some components, or is beyond the reach of any block, or of this one, being far off a
component as it was at the start; or the row before it has left one that has changed so
much that the products have lost some digits, and must be taken anew."""

LARGEST_STEP = 1e7
"""Of a block on roots: beyond it, half of the digits would be lost."""

LEAST_KEPT = 1e-50
"""Of a base: with less, rows that join it would leave the range of numbers."""

_LARGEST_SHARE = 0.999
_LEAST_KEPT = 1e-2  # the cube of its inverse is how much rounding errors may have grown


class Walked(NamedTuple):
    """What a block of B rows has done so far to the components that it touched."""

    products: Array
    """Shape (S, B, B): inner products of the rows, as of now; the upper triangle."""
    steps: Array
    """Shape (S, B, B): combinations of deviations that join the covariance."""
    shifts: Array
    """Shape (S, B): combination of deviations by which the mean has moved."""
    taken: IntArray
    """Shape (S, B): the rows towards which it has moved."""
    shares: Array
    """Shape (S, B): how far."""
    kept: Array
    """Shape (S,): the factor of the base covariance at the start."""
    counts: IntArray
    """Shape (S,): number of steps."""


def unwalked(slots: int, size: int) -> Walked:
    """Room for components that a block of rows has not changed yet."""
    return Walked(
        np.empty((slots, size, size)),
        np.empty((slots, size, size)),
        np.zeros((slots, size)),
        np.zeros((slots, size), dtype=np.int64),
        np.zeros((slots, size)),
        np.ones(slots),
        np.zeros(slots, dtype=np.int64),
    )


class Standing(NamedTuple):
    """What of K components changes with every row."""

    masses: Array
    log_dets: Array
    ages: IntArray
    kept: Array
    """Shape (K,) each; ``kept`` is the factor of the base covariance."""


@compiled
def walk(
    points: Array,
    weights: Array,
    start: int,
    absorbed: int,
    distances: Array,
    slots: IntArray,
    wanted: AnyArray,
    walked: Walked,
    standing: Standing,
    moments: Array,
    settings: Settings,
    largest_step: float,
) -> tuple[int, int]:
    """Learn rows one after the other, in coefficients.

    Parameters
    ----------
    points : array of shape (B, D)
        Complete.
    weights : array of shape (B,)
        Positive.
    start, absorbed : int
        The first row to learn, and the first that is new: the moments do not know
        it yet, and masses have not faded for it.
    distances : array of shape (K, B)
        As of the block's start, for components that it has not touched.
    slots : int array of shape (K,)
        Where in ``walked`` a component is, or -1.
    wanted : bool array of shape (K,)
        Set where a walk stops for want of inner products.
    walked, standing
        Changed.
    moments : array of shape (3, D)
        Changed, if the scale is adaptive.
    largest_step : float
        A row is beyond the reach of a block if a squared distance times the share
        that is taken of it is larger.

    Returns
    -------
    stop : int
        The first row not learnt.
    reason : int
    """
    n_points, n_features = points.shape
    n_components = slots.shape[0]
    masses, log_dets, ages, kept = standing
    threshold = settings.thresholds[n_features]
    may_grow = n_components < settings.max_components
    posteriors = np.empty(n_components)
    current = np.empty(n_components)
    for t in range(start, n_points):
        if settings.adaptive and t >= absorbed:
            absorb(moments, points, t, weights[t])
        if settings.retention < 1.0 and t >= absorbed:
            fade(masses, n_components, weights[t], settings)
        nearest, largest = np.inf, -np.inf
        for k in range(n_components):
            slot = slots[k]
            distance = distances[k, t]
            if slot >= 0 and walked.counts[slot] > 0:
                distance = max(walked.products[slot, t, t], 0.0)
            current[k] = distance
            posteriors[k] = math.log(masses[k]) - 0.5 * (log_dets[k] + distance)
            nearest = min(nearest, distance)
            largest = max(largest, posteriors[k])
        if may_grow and not nearest < threshold:
            return t, NOVEL
        total = 0.0
        for k in range(n_components):
            difference = posteriors[k] - largest
            posteriors[k] = math.exp(difference) if difference > -LOG_ZERO else 0.0
            total += posteriors[k]
        prepared, stale = True, False
        for k in range(n_components):
            gained = weights[t] * posteriors[k] / total
            share = gained / (masses[k] + gained)
            if not (share * current[k] < largest_step and share < _LARGEST_SHARE):
                return t, ASTONISHING
            if slots[k] >= 0 and walked.counts[slots[k]] > 0:
                stale |= not share * distances[k, t] < largest_step
            if slots[k] < 0 and masses[k] + gained != masses[k]:
                wanted[k] = True
                prepared = False
        if stale:
            return t, STALE
        if not prepared:
            return t, UNPREPARED
        spurious, worn = False, False
        all_mass = weights[t]
        for k in range(n_components):
            all_mass += masses[k]
        least = settings.faded * all_mass
        for k in range(n_components):
            ages[k] += 1
            gained = weights[t] * posteriors[k] / total
            before = masses[k]
            after = before + gained
            if after != before:
                masses[k] = after
                share = gained / after
                _step(walked, slots[k], t, share, current[k], kept[k])
                kept[k] *= before / after
                worn |= kept[k] < _LEAST_KEPT * walked.kept[slots[k]]
                log_dets[k] += math.log1p(share * current[k])
                log_dets[k] -= n_features * math.log1p(gained / before)
            spurious |= ages[k] > settings.prune_age and after < settings.prune_mass
            spurious |= after < least
        if spurious and n_components > 1:
            return t + 1, SPURIOUS
        if worn:
            return t + 1, WORN
    return n_points, DONE


@internal
def _step(walked: Walked, slot: int, t: int, share: float, distance: float, kept: float) -> None:
    """Move one component towards row ``t``."""
    products, steps, shifts, taken, shares, _, counts = walked
    n_points = products.shape[1]
    c = counts[slot]
    counts[slot] = c + 1
    taken[slot, c] = t
    shares[slot, c] = share
    widening = math.sqrt(share / kept)
    for u in range(n_points):
        steps[slot, c, u] = -widening * shifts[slot, u]
        shifts[slot, u] *= 1.0 - share
    steps[slot, c, t] += widening
    shifts[slot, t] += share
    # Rows that have been learnt are done with, and one half says it all.
    narrowing = share / (1.0 + share * distance)
    growth = 1.0 / (1.0 - share)
    constant = share * share * distance
    to_all = products[slot, t]
    for u in range(t + 1, n_points):
        among = products[slot, u]
        to_u = to_all[u]
        fixed = constant - share * to_u
        slope = share + narrowing * (to_u - share * distance)
        offset = fixed + narrowing * (to_u - share * distance) * share * distance
        for v in range(u, n_points):
            among[v] = growth * (among[v] + offset - slope * to_all[v])
