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
from figmn.kernels.compiler import inlined, uncounted
from figmn.kernels.rule import (
    NOTHING,
    NOVEL,
    SPURIOUS,
    Rule,
    any_spurious,
    fade,
    faded,
    is_novel,
    normalise,
    prunes,
)

UNPREPARED, OUT_OF_REACH, STALE, INACCURATE = 3, 4, 5, 6
"""Further events, which end in the engine itself. The row where the loop stopped needs inner
products of some components; or is out of reach of any block; or of this one, being far
off a component as it was at the start; or the row before it has changed a component so
much that the products have lost some digits, and must be taken anew."""

LARGEST_STEP = 1e7
"""Of a block on roots: beyond it, half of the digits would be lost."""

LEAST_BASE_SCALE = 1e-50
"""With less, rows that join a base would leave the range of numbers."""

_LARGEST_SHARE = 0.999
_LEAST_LEFT = 1e-2  # the cube of its inverse is how much rounding errors may have grown


class Steps(NamedTuple):
    """What a block of B rows has done so far to the components that it touched."""

    products: Array
    """Shape (S, B, B): inner products of the rows, as of now; the upper triangle."""
    joining: Array
    """Shape (S, B, B): combinations of deviations that join the covariance."""
    shifts: Array
    """Shape (S, B): combination of deviations by which the mean has moved."""
    taken: IntArray
    """Shape (S, B): the rows towards which it has moved."""
    shares: Array
    """Shape (S, B): how far."""
    base_scales: Array
    """Shape (S,): the factor of the base covariance at the start."""
    counts: IntArray
    """Shape (S,): number of steps."""


def no_steps(slots: int, size: int) -> Steps:
    """Room for components that a block of rows has not changed yet."""
    return Steps(
        np.empty((slots, size, size)),
        np.empty((slots, size, size)),
        np.zeros((slots, size)),
        np.zeros((slots, size), dtype=np.int64),
        np.zeros((slots, size)),
        np.ones(slots),
        np.zeros(slots, dtype=np.int64),
    )


class Varying(NamedTuple):
    """What of K components changes with every row, of shape (K,) each."""

    masses: Array
    log_dets: Array
    ages: IntArray
    base_scales: Array
    """The factor of the base covariance."""


@uncounted
def learn_in_span(
    weights: Array,
    n_features: int,
    start: int,
    distances: Array,
    slots: IntArray,
    wanted: AnyArray,
    steps: Steps,
    varying: Varying,
    rule: Rule,
    largest_step: float,
    current: Array,
    responsibilities: Array,
) -> tuple[int, int]:
    """Learn rows one after the other, in coefficients.

    Parameters
    ----------
    weights : array of shape (B,)
        Positive, of complete rows.
    n_features : int
    start : int
        The first row to learn.
    distances : array of shape (K, B)
        As of the block's start, for components that it has not touched.
    slots : int array of shape (K,)
        Where in ``steps`` a component is, or -1.
    wanted : bool array of shape (K,)
        Set where the loop stops for want of inner products.
    steps : Steps
        Changed.
    varying : Varying
        Changed.
    rule : Rule
    largest_step : float
        A row is out of reach of a block if a squared distance times the share
        that is taken of it is larger.
    current, responsibilities : arrays of shape (K,)
        Scratch.

    Returns
    -------
    stop : int
        The first row not learnt, which has changed nothing.
    event : int
    """
    n_points, n_components = len(weights), len(slots)
    masses, log_dets, ages, base_scales = varying
    may_prune = prunes(rule)
    for t in range(start, n_points):
        nearest, largest = np.inf, -np.inf
        for k in range(n_components):
            distance, slot = distances[k, t], slots[k]
            if slot >= 0 and steps.counts[slot] > 0:
                distance = max(steps.products[slot, t, t], 0.0)
            current[k] = distance
            responsibilities[k] = math.log(masses[k]) - 0.5 * (log_dets[k] + distance)
            nearest, largest = min(nearest, distance), max(largest, responsibilities[k])
        if is_novel(n_components, nearest, n_features, rule):
            return t, NOVEL
        normalise(responsibilities, n_components, largest)
        event = _obstacle(
            t, weights[t], distances, slots, wanted, steps, masses, rule, largest_step,
            current, responsibilities,
        )  # fmt: skip
        if event != NOTHING:
            return t, event
        if rule.retention < 1.0:
            fade(masses, n_components, weights[t], rule)
        inaccurate = False
        for k in range(n_components):
            ages[k] += 1
            gained, before = weights[t] * responsibilities[k], masses[k]
            after = before + gained
            if after != before:
                masses[k] = after
                share = gained / after
                _step(steps, slots[k], t, share, current[k], base_scales[k])
                base_scales[k] *= before / after
                inaccurate |= base_scales[k] < _LEAST_LEFT * steps.base_scales[slots[k]]
                log_dets[k] += math.log1p(share * current[k])
                log_dets[k] -= n_features * math.log1p(gained / before)
        if may_prune and any_spurious(n_components, masses, ages, rule):
            return t + 1, SPURIOUS
        if inaccurate:
            return t + 1, INACCURATE
    return n_points, NOTHING


@inlined
def _obstacle(
    t: int,
    weight: float,
    distances: Array,
    slots: IntArray,
    wanted: AnyArray,
    steps: Steps,
    masses: Array,
    rule: Rule,
    largest_step: float,
    current: Array,
    responsibilities: Array,
) -> int:
    """The event that keeps row ``t`` from being learnt at once, if there is one."""
    left = rule.retention**weight if rule.retention < 1.0 else 1.0
    prepared, stale, reached = True, False, True
    for k in range(len(slots)):
        mass, gained = faded(masses[k], left), weight * responsibilities[k]
        share = gained / (mass + gained)
        reached &= share * current[k] < largest_step and share < _LARGEST_SHARE
        if slots[k] >= 0 and steps.counts[slots[k]] > 0:
            stale |= not share * distances[k, t] < largest_step
        if slots[k] < 0 and mass + gained != mass:
            wanted[k] = True
            prepared = False
    if not reached:
        return OUT_OF_REACH
    if stale:
        return STALE
    return NOTHING if prepared else UNPREPARED


@inlined
def _step(
    steps: Steps, slot: int, t: int, share: float, distance: float, base_scale: float
) -> None:
    """Move one component towards row ``t``."""
    products, joining, shifts, taken, shares, _, counts = steps
    _, n_points, _ = products.shape
    c = counts[slot]
    counts[slot] = c + 1
    taken[slot, c] = t
    shares[slot, c] = share
    widening = math.sqrt(share / base_scale)
    for u in range(n_points):
        joining[slot, c, u] = -widening * shifts[slot, u]
        shifts[slot, u] *= 1.0 - share
    joining[slot, c, t] += widening
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
