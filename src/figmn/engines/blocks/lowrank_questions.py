"""What may be asked of low-rank components, by matrix products."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines import factors
from figmn.engines.blocks.lowrank_kernel import extend, fold, measure
from figmn.engines.blocks.pending import Pending
from figmn.engines.blocks.root_order import reorder_root
from figmn.engines.interface import Split
from figmn.engines.responsibilities import WITHOUT_FILLING
from figmn.engines.responsibilities import filled as filled_densely
from figmn.kernels import evaluation
from figmn.kernels.blas import product, solve_lower
from figmn.kernels.compiler import LARGEST_DISTANCE, LOG_NOTHING

if TYPE_CHECKING:
    from figmn.engines.blocks.lowrank_components import LowRankComponents

_QUERY: Final = 2**21  # numbers evaluated at a time
_LOG_2PI: Final = float(np.log(2.0 * np.pi))
_STAGES: Final = 10  # in which distances are taken further


def factor(components: LowRankComponents, k: int) -> tuple[Array, Array]:
    return factor_of(_whole_root(components, k), components.base_scales[k])


def _whole_root(components: LowRankComponents, k: int) -> Array:
    """Root of a component's precision, but for ``kept``; a copy."""
    root = (
        components.roots[k].copy()
        if len(components.roots[k])
        else np.diag(1.0 / components.widths[k])
    )
    if len(components.pending[k]):
        fold(root, components.pending[k].restored())
    return root


def evaluated(components: LowRankComponents, rows: Array) -> tuple[Array, Array]:
    known = np.sum(~np.isnan(rows), axis=1)
    complete = known == components.n_features
    distances = np.empty((len(rows), components.n_components))
    log_joint = np.empty_like(distances)
    _measure_all(components, rows, np.flatnonzero(complete), distances)
    constants = np.log(components.weights) - 0.5 * (
        components.n_features * _LOG_2PI + components.log_dets
    )
    log_joint[complete] = constants - 0.5 * distances[complete]
    rest = np.flatnonzero(~complete)
    for k in range(components.n_components if len(rest) else 0):
        if len(components.roots[k]) == 0:
            for t in rest:
                distance, log_det, _ = _completed(components, k, rows[t])
                constant = np.log(components.weights[k]) - 0.5 * known[t] * _LOG_2PI
                distances[t, k], log_joint[t, k] = distance, constant - 0.5 * log_det
                log_joint[t, k] -= 0.5 * distance
        else:
            parts = np.empty((2, len(rest), 1))
            component = _one(components, k)
            evaluation.evaluate(rows[rest], 1, *component, parts[0], parts[1], *WITHOUT_FILLING)
            distances[rest, k], log_joint[rest, k] = parts[:, :, 0]
            log_joint[rest, k] += np.log(components.weights[k])  # it was alone
    return distances, log_joint


def _completed(components: LowRankComponents, k: int, row: Array) -> tuple[float, float, Array]:
    """What a young component makes of an incomplete row, without a matrix of its own.

    Returns
    -------
    distance, log_det : float
        Of the known entries, under their marginal.
    filled : array of shape (D,)
        The row with its missing entries at their conditional means.
    """
    known, missing = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    pending, log_det = _young_marginal(components, k, known)
    width, base_scale = components.widths[k], components.base_scales[k]
    with np.errstate(over="ignore", invalid="ignore"):
        whitened = (row[known] - components.means[k, known]) / width[known]
        along = pending.rows @ whitened
        total = whitened @ whitened
        given = components.pending[k].restored()[:, missing].copy()
        solve_lower(np.ascontiguousarray(pending.factor), given)
        filled = row.copy()
        filled[missing] = components.means[k, missing] + width[missing] * (along @ given)
        distance = max(float(total - along @ along), 0.0) / base_scale
    if not distance <= LARGEST_DISTANCE:
        distance = LARGEST_DISTANCE
    return distance, log_det, factors.within_range(filled)


def _measure_all(
    components: LowRankComponents, rows: Array, which: Index, distances: Array
) -> None:
    """Write the distances of some rows, all of them complete."""
    size = max(_QUERY // max(components.n_features, 1), 1)
    for start in range(0, len(which), size):
        here = which[start : start + size]
        points = rows[here]
        for k in range(components.n_components):
            distances[here, k] = _distances(components, k, points)


def _one(components: LowRankComponents, k: int) -> tuple[Array, Array, Array, Array, Array]:
    """One component as the plain kernels take it."""
    whitener, variances = factor(components, k)
    return (
        components.means[k : k + 1],
        whitener[np.newaxis],
        variances[np.newaxis],
        components.log_dets[k : k + 1],
        components.weights[k : k + 1],
    )


def filled(components: LowRankComponents, rows: Array, responsibilities: Array) -> Array:
    completed = np.where(np.isnan(rows), 0.0, rows)
    incomplete = np.flatnonzero(np.isnan(rows).any(axis=1))
    missing = np.isnan(rows[incomplete])
    for k in range(components.n_components if len(incomplete) else 0):
        share = responsibilities[incomplete, k : k + 1]
        if len(components.roots[k]) == 0:
            part = share * np.array([_completed(components, k, rows[t])[2] for t in incomplete])
        else:
            part = filled_densely(rows[incomplete], *_one(components, k)[:3], share)
        completed[incomplete] += np.where(missing, part, 0.0)
    return completed


def log_joint(components: LowRankComponents, rows: Array) -> Array:
    if components.n_components < 2 or np.isnan(rows).any():
        return evaluated(components, rows)[1]
    constants = np.log(components.weights) - 0.5 * (
        components.n_features * _LOG_2PI + components.log_dets
    )
    log_joint = np.empty((len(rows), components.n_components))
    size = max(_QUERY // max(components.n_features, 1), 1)
    for start in range(0, len(rows), size):
        here = slice(start, start + size)
        log_joint[here] = _staged(components, rows[here], constants[:, np.newaxis]).T
    return log_joint


def _staged(components: LowRankComponents, points: Array, constants: Array) -> Array:
    """Log joint densities of complete rows, exact only where they can matter.

    A distance in some variables bounds that in all of them, at a fraction of the
    cost. So distances are known at first in any single variable, then, stage by
    stage, in more and more of them, but only while a component may still come
    near a likely one, which is evaluated before the others.

    Parameters
    ----------
    points : array of shape (N, D)
    constants : array of shape (K, 1)
        What of the densities does not depend on points.

    Returns
    -------
    array of shape (K, N)
    """
    guess = np.empty(len(points), dtype=np.int64)
    distances = np.empty((components.n_components, len(points)))
    evaluation.likely(points, components.means, components.marginals, guess, distances)
    likely = np.arange(components.n_components)[:, np.newaxis] == guess
    _go_on(components, points, likely, 0, components.n_features, distances)
    log_joint = constants - 0.5 * distances
    enough = log_joint[guess, np.arange(len(points))] - LOG_NOTHING
    active = ~likely
    ends = {components.n_features * stage // _STAGES for stage in range(_STAGES + 1)}
    for start, stop in pairwise(sorted(ends)):
        active &= log_joint > enough
        _go_on(components, points, active, start, stop, distances)
        log_joint = constants - 0.5 * distances
    return log_joint


def _go_on(
    components: LowRankComponents,
    points: Array,
    chosen: AnyArray,
    start: int,
    stop: int,
    distances: Array,
) -> None:
    """Take the chosen distances, of shape (K, N), from some variables to further ones.

    Only a dense base with nothing pending goes variable by variable; others go
    all the way at once.
    """
    roots = components.roots
    for k in np.flatnonzero(chosen.any(axis=1)):
        which = np.flatnonzero(chosen[k])
        if start == 0:
            distances[k, which] = 0.0
        if len(roots[k]) and not len(components.pending[k]):
            extend(
                points,
                which,
                components.means[k],
                roots[k],
                components.base_scales[k],
                start,
                stop,
                distances[k],
            )
        elif start == 0:
            distances[k, which] = _distances(components, int(k), points[which])


def _distances(components: LowRankComponents, k: int, points: Array) -> Array:
    """Squared distances of complete rows to one component."""
    distances = np.empty(len(points))
    root, pending = components.roots[k], components.pending[k].rows
    for _ in range(2):
        _, precise = measure(
            points,
            components.means[k],
            components.widths[k],
            root,
            pending,
            components.base_scales[k],
            np.empty(points.shape),
            np.empty((len(pending), len(points))),
            distances,
        )
        if precise:
            break
        root, pending = _whole_root(components, k), pending[:0]
    return distances


def marginal(components: LowRankComponents, variables: Index) -> LowRankComponents:
    part = type(components)(len(variables))
    part.moments[:] = components.moments[:, variables]
    for k in range(components.n_components):
        part.append(
            components.means[k, variables], components.widths[k, variables], components.masses[k]
        )
        if len(components.roots[k]):
            part.roots[k] = reorder_root(_whole_root(components, k), variables)
            pivots = np.diagonal(part.roots[k])
            part.log_dets[k] = 2.0 * np.log(np.sqrt(components.base_scales[k]) / pivots).sum()
        else:
            part.pending[k], part.log_dets[k] = _young_marginal(components, k, variables)
    part.marginals[:] = components.marginals[:, variables]
    part.base_scales[:], part.ages[:] = components.base_scales, components.ages
    part.state.size[1] = components.n_learnt
    return part


def _young_marginal(
    components: LowRankComponents, k: int, variables: Index
) -> tuple[Pending, float]:
    """What some of the variables of a young component have pending, and ``log|S|``."""
    joining = components.pending[k].restored()[:, variables]
    pending = Pending.of(np.ascontiguousarray(joining))
    log_det = 2.0 * np.log(components.widths[k, variables]).sum()
    log_det += 2.0 * np.log(np.diagonal(pending.factor)).sum()
    return pending, float(log_det + len(variables) * np.log(components.base_scales[k]))


def split(components: LowRankComponents, known: Index, wanted: Index) -> Split:
    both = marginal(components, np.concatenate([known, wanted]))
    leading = marginal(both, np.arange(len(known)))
    shape = (components.n_components, len(wanted))
    coefficients = np.empty((*shape, len(known)))
    whiteners, variances = np.empty((*shape, len(wanted))), np.empty(shape)
    for k in range(components.n_components):
        if len(components.roots[k]):
            root = both.roots[k][len(known) :]
            given, variances[k] = factor_of(root[:, len(known) :], components.base_scales[k])
            whiteners[k] = given
            slopes = root[:, : len(known)] / np.diagonal(root[:, len(known) :])[:, np.newaxis]
            coefficients[k] = product(-factors.inverses(given[np.newaxis])[0], slopes)
        else:
            coefficients[k], covariance = _young_split(components, k, known, wanted, leading)
            parts = factors.factor(covariance[np.newaxis])
            whiteners[k], variances[k] = parts[0][0], parts[1][0]
    return Split(leading, np.nan_to_num(coefficients), whiteners, variances)


def _young_split(
    components: LowRankComponents, k: int, known: Index, wanted: Index, leading: LowRankComponents
) -> tuple[Array, Array]:
    """Coefficients and conditional covariance of wanted variables, with a diagonal base.

    With ``L L' = I + Y_k Y_k'``, ``F_k = L^-1 Y_k`` and ``H = L^-1 Y_w`` they
    are ``H' F_k`` and ``I + H' H``, but for the variables' scales.
    """
    given = components.pending[k].restored()[:, wanted].copy()
    solve_lower(np.ascontiguousarray(leading.pending[k].factor), given)
    width, unit = components.widths[k, wanted][:, np.newaxis], components.widths[k, known]
    coefficients = width * product(given.T, leading.pending[k].rows) / unit
    covariance = np.eye(len(wanted)) + product(given.T, given)
    covariance *= components.base_scales[k] * width * width.T
    return coefficients, covariance


def factor_of(root: Array, base_scale: float) -> tuple[Array, Array]:
    """Whitener and variances of a root."""
    diagonal = np.diagonal(root)
    return root / diagonal[:, np.newaxis], (np.sqrt(base_scale) / diagonal) ** 2
