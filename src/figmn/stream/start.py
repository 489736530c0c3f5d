"""The components that a mixture without settings starts from."""

from __future__ import annotations

import warnings
from typing import Final, NamedTuple

import numpy as np

from figmn._typing import Array, Index
from figmn.batch import gaps, selection
from figmn.batch.em import Batch, Parameters, Prior, converged, normalised
from figmn.batch.selection import THOROUGH, Fitted, Preferences, Search
from figmn.batch.slices import Slices, cost
from figmn.engines import factors
from figmn.engines.interface import Components
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.engines.scale import moments_of, suggested_scale
from figmn.kernels.rule import Rule
from figmn.stream.driver import learn
from figmn.stream.row_buffer import RowBuffer, weight_after

LEAST_ROWS: Final = 16
"""From this many rows on there is enough to choose by."""


_FEW_ROWS: Final = 64  # to learn at a time
_FILLINGS: Final = 3  # times that missing entries are drawn anew
_REFILLED_PRIOR: Final = 1.0  # shrinkage then, unless it is given
_FAR_OFF: Final = 10.0  # a scale from the standard deviation, for EM to work with
_MOST_ROWS: Final = 8192  # of a stream, to count for how many components there may be
_LEAST_PROPORTION: Final = 1e-6  # of a row's weight to the largest, for it to count
_FARTHEST: Final = 1e5  # a row in units, for squares to keep their digits
_LEAST_WEIGHT: Final = 2.0  # rows, for a component to be taken as a model of others
_QUARTILES_APART: Final = 1.349  # of a normal distribution, in standard deviations
_HIDDEN: Final = 3.0  # a standard deviation from the usual one, if outliers make it up
_MOST_HIDDEN: Final = 1e3  # the same, as far as it can be followed in float64
_NARROWEST: Final = 1e-3  # a new component, in standard deviations of the columns


class Growth(NamedTuple):
    """How such a mixture goes on: what a new component looks like, and how many there may be."""

    scale: Array
    """Standard deviations of a new component, of shape (D,)."""
    most: int
    """Bound on the number of components."""

    @classmethod
    def of(cls, components: Components, units: Array, n_rows: int | None = None) -> Growth:
        """New components as wide as the present ones, and a little more than twice as many.

        Fewer if ``n_rows`` that have been learnt so far would be too few for so many.
        """
        # Not those of a row or less: they are as wide as outliers are far.
        heavy = components.weights * components.n_learnt > _LEAST_WEIGHT
        shares = components.weights * (heavy if heavy.any() else 1.0)
        within = np.sqrt(shares @ components.marginals / shares.sum())
        scale = factors.within_scale(np.maximum(within, _NARROWEST * units))
        most = 2 * components.n_components + 16
        if n_rows is not None:
            n_rows = min(n_rows, _MOST_ROWS)
            supported = selection.most_components(n_rows, components.n_features)
            most = max(components.n_components, min(most, supported))
        return cls(scale, most)


class HeldOut(NamedTuple):
    """Rows, and components that have not seen them or hardly."""

    components: Components
    rows: Array
    """Shape (N, D)."""
    weights: Array
    """Shape (N,)."""


class Start(NamedTuple):
    """Components fitted to rows, as if these had been learnt."""

    components: DenseComponents
    held_out: tuple[HeldOut, ...]
    """Each row once or never, with components fitted alike to others, if they are to predict."""


class _Standard(NamedTuple):
    """Rows in standard units."""

    rows: Array
    """Shape (N, D), in an order of their own."""
    weights: Array
    """Shape (N,): proportions."""
    center: Array
    """Shape (D,)."""
    units: Array
    """Shape (D,)."""
    moments: Array
    """Shape (3, D): of the columns."""
    mass: float
    """Weight of all rows."""


def started(
    buffer: RowBuffer,
    scale: Array | None,
    preferences: Preferences,
    retention: float,
    before: Components | None = None,
    search: Search = THOROUGH,
) -> Slices[Start]:
    """Components fitted to rows by EM, as if these had been learnt.

    Parameters
    ----------
    buffer : RowBuffer
    scale : array of shape (D,) or None
        Units of the columns, by which the variance floor goes; their standard
        deviations by default.
    preferences : Preferences
    retention : float
        What each row leaves of the weight of those before it.
    before : Components or None
        Have learnt a longer stream, for which the rows stand.
    search : Search
        How thoroughly to look for the number of components.
    """
    standard = _standardised(buffer, scale, retention)
    yield cost(100.0 * buffer.rows.size)
    parameters, trials = yield from _fitted(standard.rows, standard.weights, preferences, search)
    components = _components(parameters, standard.mass, standard.center, standard.units)
    components.state.moments[:] = standard.moments
    components.state.size[1] = components.ages[:] = len(buffer)
    if before is not None:
        components.masses[:] *= before.masses.sum() / standard.mass
        components.state.moments[:] = before.moments
        components.state.size[1] = components.ages[:] = before.n_learnt
    held_out = tuple(
        HeldOut(
            _components(each.parameters, 1.0, standard.center, standard.units),
            standard.center + standard.rows[each.left_out] * standard.units,
            standard.weights[each.left_out],
        )
        for each in trials
    )
    return Start(components, held_out)


def _standardised(buffer: RowBuffer, scale: Array | None, retention: float) -> _Standard:
    weights = _faded(buffer.weights, retention)
    order = _order(buffer.rows, weights)
    rows, weights = buffer.rows[order], weights[order]
    moments = moments_of(rows, buffer.weights[order])
    # Weights of any size do: what counts are their proportions. Rows of next to none take
    # part in nothing, not even in the choice of units: they stay in the center, but in
    # columns that no other row knows.
    proportions = weights / weights.max()
    counted = proportions >= _LEAST_PROPORTION
    shown = ~np.isnan(rows[counted]).all(axis=0)
    ignored = ~counted[:, np.newaxis] & shown & ~np.isnan(rows)
    telling = np.where(ignored, np.nan, rows)
    usual = moments if counted.all() else moments_of(telling, buffer.weights[order])
    units = _units(telling, usual, scale)
    return _Standard(
        np.where(ignored, 0.0, (rows - usual[1]) / units),
        np.maximum(proportions, _LEAST_PROPORTION),
        usual[1],
        units,
        moments,
        float(weights.sum()),
    )


def _order(rows: Array, weights: Array) -> Index:
    """An order of rows of their own, so that the one they came in makes no difference."""
    known = np.where(np.isnan(rows), -1.0, rows / np.fmax(np.fmax.reduce(np.abs(rows)), 1e-300))
    mixed = known @ np.random.default_rng(0).uniform(1.0, 2.0, rows.shape[1])
    return np.lexsort((weights, mixed, rows[:, -1]))


def _units(rows: Array, moments: Array, scale: Array | None) -> Array:
    """Units of the columns: the scale that was given, as far as it suits the rows."""
    own = _without_outliers(rows, suggested_scale(moments))
    if scale is not None:
        suited: Array = np.clip(scale, own / _FAR_OFF, own * _FAR_OFF)
        own = np.where(moments[2] > 0.0, suited, scale)
    farthest: Array = np.fmax.reduce(np.abs(rows - moments[1]), axis=0)
    return np.fmax(own, farthest / _FARTHEST)


def _without_outliers(rows: Array, deviations: Array) -> Array:
    """Standard deviations, or what most rows say where a few are so far off as to hide it.

    The variance floor goes by it, and must be small against all that is to be told apart.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without a known entry
        percentile = np.nanpercentile if np.isnan(rows).any() else np.percentile
        low, high = percentile(rows, [25.0, 75.0], axis=0)
        usual = (high - low) / _QUARTILES_APART
    hidden = (usual > 0.0) & (usual < deviations / _HIDDEN)
    return np.where(hidden, np.maximum(usual, deviations / _MOST_HIDDEN), deviations)


def _faded(weights: Array, retention: float) -> Array:
    """What is left of each row's weight after the rows that followed it."""
    left: Array = np.maximum(weights * retention ** weight_after(weights), 1e-300)
    return left


def _fitted(
    rows: Array, weights: Array, preferences: Preferences, search: Search
) -> Slices[Fitted]:
    """The mixture of rows in standard units, some of which may have gaps."""
    if not np.isnan(rows).any():
        return (yield from selection.fitted(rows, weights, preferences, search))
    n_features, random = rows.shape[1], np.random.default_rng(0)
    alone = DenseComponents(dense_state.empty(n_features, 1))
    for start in range(0, len(rows), _FEW_ROWS):
        part = slice(start, start + _FEW_ROWS)
        learn(alone, rows[part], weights[part], _one_component(n_features))
        yield cost(10.0 * _FEW_ROWS * n_features**2)
    complete = yield from gaps.drawn(alone, rows, random)
    parameters, trials = yield from selection.fitted(complete, weights, preferences, search)
    prior = _REFILLED_PRIOR if preferences.shrinkage is None else preferences.shrinkage
    for _ in range(_FILLINGS):
        batch = Batch((yield from gaps.drawn(_components(parameters, 1.0), rows, random)), weights)
        joint = yield from batch.log_joint_slices(parameters)
        parameters = yield from converged(batch, normalised(joint)[0], Prior(prior))
    return Fitted(parameters, trials)


def _one_component(n_features: int) -> Rule:
    """Rule under which all rows belong to one component."""
    return Rule(
        thresholds=np.full(n_features + 1, np.inf),
        scale=np.ones(n_features),
        adaptive=False,
        delta=1.0,
        prune_age=0,
        prune_mass=0.0,
        max_components=1,
        printed_rule=False,
        retention=1.0,
        faded=0.0,
    )


def _components(
    parameters: Parameters, mass: float, center: Array | None = None, units: Array | None = None
) -> DenseComponents:
    """Components of given parameters, in the columns' own units if these are given."""
    n_features = parameters.means.shape[1]
    center = np.zeros(n_features) if center is None else center
    units = np.ones(n_features) if units is None else units
    whiteners, variances = factors.factor(parameters.covariances)
    state = dense_state.from_factors(
        center + parameters.means * units,
        whiteners * (units[:, np.newaxis] / units),
        np.ascontiguousarray(factors.within_scale(np.sqrt(variances) * units) ** 2),
        parameters.weights * mass,
    )
    return DenseComponents(state)
