r"""The incremental mixture's algorithm: Algorithms 1 to 3 of Pinto & Engel.

::

    for each row x of weight a:                                   Algorithm 1
        if no component is near it:  create a component at x      Algorithm 3
        else:                        update every component       Algorithm 2
        remove components that have proved spurious

An *engine* advances through a chunk of rows and updates components on its way; it hands back
where a row is to start a component, or components may have to be removed: along the stream
that is done here and nowhere else. (A mixture without settings gets its first components from
EM, in :mod:`figmn.stream.start`, and new ones if the stream has changed.)

The update of component ``j``, which engines do row by row, many rows at a time, or in
matrix products, all with the same result, is (the paper's equation numbers)

.. math::

    d_j^2 &= (x - \mu_j)^\top \Lambda_j (x - \mu_j)                      & (1) \\
    p(j \mid x) &\propto p(j)\, |\Sigma_j|^{-1/2} e^{-d_j^2 / 2}         & (2, 3) \\
    v_j' &= v_j + 1, \quad s_j' = s_j + a\, p(j \mid x)                  & (4, 5) \\
    e &= x - \mu_j, \quad w = a\, p(j \mid x) / s_j'                     & (6, 7) \\
    \mu_j' &= \mu_j + w e                                                & (8, 9) \\
    \Sigma_j' &= (1 - w) \Sigma_j + w (1 - w)\, e e^\top                 & (11) \\
    p(j) &= s_j / \textstyle\sum_k s_k                                   & (12)

where (11) is the moment-exact form: ``docs/errata.md`` has what is printed. What of this
must be compiled and shared by the engines is :mod:`figmn.kernels.rule`.
"""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.engines.choice import engine_for
from figmn.engines.interface import Components
from figmn.engines.responsibilities import normalised
from figmn.engines.scale import suggested_scale
from figmn.kernels.compiler import LARGEST, SMALLEST_VARIANCE, interpreted
from figmn.kernels.moments import absorb
from figmn.kernels.rule import NOVEL, SPURIOUS, Rule, heaviest_of, is_spurious


def learn(components: Components, rows: Array, weights: Array, rule: Rule) -> None:
    """Learn rows in order (Algorithm 1).

    Parameters
    ----------
    components : Components
        Changed in place, a row or a stretch of rows at a time. If learning is interrupted,
        dense components have learnt the rows up to some row, though a spurious one may still
        be there; low-rank ones may be left in the middle of a row or of a block.
    rows : array of shape (N, D)
        NaN marks a missing entry. A row with nothing known is passed over.
    weights : array of shape (N,)
    rule : Rule
    """
    engine = engine_for(components, rows, weights, rule)
    start, n_rows = 0, len(rows)
    while start < n_rows:
        start, event = engine.advance(start)  # Algorithm 2, for the rows before
        if event == NOVEL:
            create(components, rows[start], float(weights[start]), rule)
            start += 1
        elif event == SPURIOUS:
            prune(components, rule)


def create(components: Components, row: Array, weight: float, rule: Rule) -> None:
    r"""Start a component at a novel row, of shape (D,) (Algorithm 3).

    .. math:: \mu = x, \; \Sigma = \operatorname{diag}(\delta \sigma)^2, \; s = a, \; v = 1

    Missing entries of the mean are what the other components expect, or else column means. A
    row of weight :math:`a > 1` counts as that row seen :math:`a` times, which leaves the
    initial covariance a share of :math:`1 / a`.
    """
    scale = (
        suggested_scale(_moments_with(components, row, weight)) if rule.adaptive else rule.scale
    )
    deviations = np.minimum(rule.delta * scale, LARGEST)
    variances = np.maximum(deviations**2 / max(weight, 1.0), SMALLEST_VARIANCE)
    mean = _completed(components, row)
    components.start_component(mean, np.sqrt(variances), row, weight, rule)


def _moments_with(components: Components, row: Array, weight: float) -> Array:
    """Moments of the columns, with one row more."""
    moments = components.moments.copy()
    absorb(moments, row[np.newaxis], np.array([weight]), 0, 1)
    return moments


def _completed(components: Components, row: Array) -> Array:
    """A row, with what is to be expected for its missing entries."""
    unknown = np.isnan(row)
    if not unknown.any():
        return row
    if components.n_components == 0:
        return np.where(unknown, components.moments[1], row)
    rows = row[np.newaxis]
    completed: Array = components.filled(rows, normalised(components.evaluated(rows)[1]))[0]
    return completed


def prune(components: Components, rule: Rule) -> None:
    """Remove the components that have proved spurious (section 2.3 of the paper)."""
    count, masses, ages = components.n_components, components.masses, components.ages
    heaviest, total = interpreted(heaviest_of)(count, masses)
    for k in range(count - 1, -1, -1):
        if interpreted(is_spurious)(k, heaviest, total, masses, ages, rule):
            components.remove(k)
