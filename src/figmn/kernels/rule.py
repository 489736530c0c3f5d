r"""The learning rule, where it must be compiled: written once, for all engines.

For a row :math:`x` of weight :math:`a`, with the squared Mahalanobis distances
:math:`d_j^2` and the masses :math:`s_j` of the components:

- every mass fades, if rows are forgotten: :func:`fade`;
- the row is novel, and starts a component, if no distance is below the chi-square
  threshold and there are fewer than ``max_components``: :func:`is_novel`;
- else component :math:`j` gains :math:`a\,p(j \mid x)`, its responsibility for the row:
  :func:`normalise`;
- and components may be spurious by now: :func:`is_spurious`.

How a component changes by what it gains is each engine's own arithmetic.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from figmn._typing import Array, IntArray
from figmn.kernels.compiler import LOG_ZERO, SMALLEST_MASS, inlined, uncounted

NOTHING, NOVEL, SPURIOUS = 0, 1, 2
"""Events after which an engine hands back: nothing is to be done but to go on; or the row
where it stopped starts a component; or, after the row before it, components may have to be
removed."""


class Rule(NamedTuple):
    """What learning needs to know of the settings."""

    thresholds: Array
    """Shape (D + 1,): squared distance at which a row is novel, indexed by the number of
    known entries."""
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


def only_updating(rule: Rule, n_components: int) -> Rule:
    """The same rule, by which components neither come nor go nor fade."""
    return rule._replace(
        adaptive=False,
        prune_mass=0.0,
        retention=1.0,
        faded=0.0,
        max_components=n_components,
    )


@uncounted
def fade(masses: Array, count: int, weight: float, rule: Rule) -> None:
    """Let the first masses fade as a row of some weight comes in."""
    left = rule.retention**weight
    for k in range(count):
        masses[k] = faded(masses[k], left)


@inlined
def faded(mass: float, left: float) -> float:
    """A mass of which some share is left."""
    return max(mass * left, SMALLEST_MASS)


@inlined
def is_novel(count: int, nearest: float, n_known: int, rule: Rule) -> bool:
    """Whether a row starts a component.

    It does if no component is within the threshold for as many known entries as the row has,
    and there is room for one more. The first row always does. Equation 1 of the paper.
    """
    near = count > 0 and nearest < rule.thresholds[n_known]
    return count < rule.max_components and not near


@inlined
def normalise(log_joint: Array, count: int, largest: float) -> None:
    """Turn the first log joint densities into responsibilities."""
    total = 0.0
    for k in range(count):
        difference = log_joint[k] - largest
        log_joint[k] = math.exp(difference) if difference > -LOG_ZERO else 0.0
        total += log_joint[k]
    for k in range(count):
        log_joint[k] /= total


@inlined
def prunes(rule: Rule) -> bool:
    """Whether components are ever removed."""
    return rule.prune_mass > 0.0 or rule.faded > 0.0


@inlined
def is_spurious(
    k: int, heaviest: int, total: float, masses: Array, ages: IntArray, rule: Rule
) -> bool:
    """Whether a component is to be removed.

    Section 2.3 of the paper: it has lived through more than ``prune_age`` updates and has
    gathered less mass than ``prune_mass``. Or it has faded to a small share of all mass.
    The heaviest component stays.
    """
    old = ages[k] > rule.prune_age and masses[k] < rule.prune_mass
    return (old or masses[k] < rule.faded * total) and k != heaviest


@inlined
def heaviest_of(count: int, masses: Array) -> tuple[int, float]:
    """The heaviest of the first components, and the mass of all of them."""
    heaviest, total = 0, 0.0
    for k in range(count):
        total += masses[k]
        if masses[k] > masses[heaviest]:
            heaviest = k
    return heaviest, total


@uncounted
def any_spurious(count: int, masses: Array, ages: IntArray, rule: Rule) -> bool:
    """Whether one of the first components is to be removed."""
    heaviest, total = heaviest_of(count, masses)
    found = False
    for k in range(count):
        found |= is_spurious(k, heaviest, total, masses, ages, rule)
    return found
