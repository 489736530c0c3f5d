"""How a mixture begins: from the rows that were held back at first."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from figmn._typing import Array
from figmn.components import engine
from figmn.components.base import Components
from figmn.components.scale import moments_of, suggested_scale
from figmn.kernels.learning import Settings
from figmn.mixture.choices import Choices
from figmn.mixture.start import LEAST_ROWS, Growth, started
from figmn.mixture.warmup import HeldRows, last_refit

_FEW: Final = 128  # rows that are learnt in no time
_FEW_ENTRIES: Final = 4096  # of them
_JUDGES: Final = 8  # one of so many rows is left out, to judge by


class Begun(NamedTuple):
    """Where the rows of the warm-up have led."""

    components: Components
    growth: Growth | None
    """How to go on, if rows were fitted by EM."""
    settings: Settings
    together: int
    """How many of the rows were fitted by EM, before the others were learnt in order."""
    scaled_by: int = 0
    """How many of the rows have shown the scale, if all were learnt in order."""


def rows_together(held: HeldRows, choices: Choices) -> int:
    """How many of the rows held are fitted by EM; with 0 all are learnt in order."""
    if len(held) < LEAST_ROWS or not choices.start_from_batch:
        return 0
    return held.fitted_together(LEAST_ROWS)


def rows_for_scale(held: HeldRows) -> int:
    """How many of the rows held show the scale, where more are to come.

    All, while they are few; then it grows in steps, so that a stream which is asked for
    answers after every row need not be learnt anew for each.
    """
    few = min(_FEW, _FEW_ENTRIES // held.rows.shape[1])
    return len(held) if len(held) <= few else last_refit(len(held), 1)


def begin(
    held: HeldRows,
    together: int,
    scaled_by: int,
    choices: Choices,
    scale: Array | None,
    center: Array,
    *,
    final: bool,
) -> Begun:
    """Learn the rows of the warm-up.

    Parameters
    ----------
    held : HeldRows
    together : int
        How many of them to fit by EM.
    scaled_by : int
        How many of them show the scale, if none are.
    choices : Choices
    scale : array of shape (D,) or None
    center : array of shape (D,)
        Stands in for the mean of columns without a known entry.
    final : bool
        Whether no further rows are known to come.
    """
    if together == 0:
        return _learnt_in_order(held, scaled_by, choices, scale, center)
    first, rest = held.split(together)
    begun = _fitted(first, choices, scale, final=final)
    begun.components.learn(rest.rows, rest.weights, begun.settings)
    return begun


def begin_anew(
    sample: HeldRows, before: Components, choices: Choices, scale: Array | None
) -> Begun:
    """Fit rows that stand for all of a stream, in place of the components before.

    Or go on with these, if rows that are left out at first prefer them: with room for more,
    since the stream has changed.
    """
    left_out = np.arange(len(sample)) % _JUDGES == 0
    known = HeldRows(sample.rows[~left_out], sample.weights[~left_out])
    trial = _fitted(known, choices, scale, final=False, before=before)
    judges, weights = sample.rows[left_out], sample.weights[left_out]
    gain = trial.components.log_density(judges) - before.log_density(judges)
    if weights @ gain > 0.0:
        return _fitted(sample, choices, scale, final=False, before=before)
    return _going_on(before, choices, scale, len(sample))


def _fitted(
    held: HeldRows,
    choices: Choices,
    scale: Array | None,
    *,
    final: bool,
    before: Components | None = None,
) -> Begun:
    """Fit rows by EM, in place of components before, if there are any."""
    fitted = started(held, scale, choices.preferences(final), choices.retention, before)
    return _going_on(engine.suited(fitted, choices.update), choices, scale, len(held))


def _going_on(
    components: Components, choices: Choices, scale: Array | None, together: int
) -> Begun:
    """How to go on from components."""
    units = suggested_scale(components.moments)
    growth = Growth.of(components, units, components.n_learnt)
    settings = choices.for_kernel(components.n_features, scale, growth)
    return Begun(components, growth, settings, together)


def _learnt_in_order(
    held: HeldRows, scaled_by: int, choices: Choices, scale: Array | None, center: Array
) -> Begun:
    """Learn the rows one after the other, at the scale that the first of them show."""
    n_features = held.rows.shape[1]
    components = engine.none(n_features, choices.update)
    moments = moments_of(held.rows[:scaled_by], held.weights[:scaled_by])
    unseen = moments[0] == 0.0
    moments[1, unseen] = center[unseen]
    components.moments[:] = moments
    settings = choices.for_kernel(n_features, suggested_scale(moments) if scale is None else scale)
    components.learn(held.rows, held.weights, settings)
    return Begun(components, None, settings, 0, scaled_by)
