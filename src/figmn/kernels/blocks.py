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
from figmn.kernels.compiler import LOG_ZERO, inlined, uncounted
from figmn.kernels.learning import DONE, NOVEL, SPURIOUS, Settings, fade

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
_DISTANCE, _POSTERIOR = 0, 1
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


@uncounted
def walk(
    points: Array,
    weights: Array,
    start: int,
    begun: int,
    distances: Array,
    slots: IntArray,
    wanted: AnyArray,
    walked: Walked,
    standing: Standing,
    settings: Settings,
    largest_step: float,
    scratch: Array,
) -> tuple[int, int, int]:
    """Learn rows one after the other, in coefficients.

    Parameters
    ----------
    points : array of shape (B, D)
        Complete.
    weights : array of shape (B,)
        Positive.
    start, begun : int
        The first row to learn, and the first that masses have not faded for yet.
    distances : array of shape (K, B)
        As of the block's start, for components that it has not touched.
    slots : int array of shape (K,)
        Where in ``walked`` a component is, or -1.
    wanted : bool array of shape (K,)
        Set where a walk stops for want of inner products.
    walked, standing
        Changed.
    largest_step : float
        A row is beyond the reach of a block if a squared distance times the share
        that is taken of it is larger.
    scratch : array of shape (2, K)

    Returns
    -------
    stop : int
        The first row not learnt.
    reason : int
    begun : int
        The first row that masses have not faded for by now. Moments are left to the caller.
    """
    n_points, n_features = points.shape
    n_components = len(slots)
    masses, log_dets, ages, kept = standing
    threshold = settings.thresholds[n_features]
    may_grow = n_components < settings.max_components
    for t in range(start, n_points):
        if settings.retention < 1.0 and t >= begun:
            fade(masses, n_components, weights[t], settings)
        nearest, largest = np.inf, -np.inf
        for k in range(n_components):
            slot = slots[k]
            distance = distances[k, t]
            if slot >= 0 and walked.counts[slot] > 0:
                distance = max(walked.products[slot, t, t], 0.0)
            scratch[_DISTANCE, k] = distance
            scratch[_POSTERIOR, k] = math.log(masses[k]) - 0.5 * (log_dets[k] + distance)
            nearest = min(nearest, distance)
            largest = max(largest, scratch[_POSTERIOR, k])
        if may_grow and not nearest < threshold:
            return t, NOVEL, t + 1
        total = 0.0
        for k in range(n_components):
            difference = scratch[_POSTERIOR, k] - largest
            scratch[_POSTERIOR, k] = math.exp(difference) if difference > -LOG_ZERO else 0.0
            total += scratch[_POSTERIOR, k]
        prepared, stale = True, False
        for k in range(n_components):
            gained = weights[t] * scratch[_POSTERIOR, k] / total
            share = gained / (masses[k] + gained)
            if not (share * scratch[_DISTANCE, k] < largest_step and share < _LARGEST_SHARE):
                return t, ASTONISHING, t + 1
            if slots[k] >= 0 and walked.counts[slots[k]] > 0:
                stale |= not share * distances[k, t] < largest_step
            if slots[k] < 0 and masses[k] + gained != masses[k]:
                wanted[k] = True
                prepared = False
        if stale:
            return t, STALE, t + 1
        if not prepared:
            return t, UNPREPARED, t + 1
        spurious, worn = False, False
        all_mass = weights[t]
        for k in range(n_components):
            all_mass += masses[k]
        least = settings.faded * all_mass
        for k in range(n_components):
            ages[k] += 1
            gained = weights[t] * scratch[_POSTERIOR, k] / total
            before = masses[k]
            after = before + gained
            if after != before:
                masses[k] = after
                share = gained / after
                _step(walked, slots[k], t, share, scratch[_DISTANCE, k], kept[k])
                kept[k] *= before / after
                worn |= kept[k] < _LEAST_KEPT * walked.kept[slots[k]]
                log_dets[k] += math.log1p(share * scratch[_DISTANCE, k])
                log_dets[k] -= n_features * math.log1p(gained / before)
            spurious |= ages[k] > settings.prune_age and after < settings.prune_mass
            spurious |= after < least
        if spurious and n_components > 1:
            return t + 1, SPURIOUS, t + 1
        if worn:
            return t + 1, WORN, t + 1
    return n_points, DONE, n_points


@inlined
def _step(walked: Walked, slot: int, t: int, share: float, distance: float, kept: float) -> None:
    """Move one component towards row ``t``."""
    products, steps, shifts, taken, shares, _, counts = walked
    _, n_points, _ = products.shape
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
    for u in range(t + 1, n_points):
        to_u = products[slot, t, u]
        fixed = constant - share * to_u
        slope = share + narrowing * (to_u - share * distance)
        offset = fixed + narrowing * (to_u - share * distance) * share * distance
        for v in range(u, n_points):
            moved = products[slot, u, v] + offset - slope * products[slot, t, v]
            products[slot, u, v] = growth * moved
