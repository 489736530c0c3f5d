"""The phases of a mixture's life: warming up, and streaming.

A mixture without ``delta`` and ``beta`` fits its first rows by EM: :class:`FitWarmUp`. One
with them, but without a ``scale``, estimates that from its first rows: :class:`ScaleWarmUp`.
From then on rows update components one after the other: :class:`Streaming`, where the sample
of the stream that is retained is reviewed from time to time, and components are fitted anew
if the stream has changed.

All phases have the same methods. What changes a phase for good gives the phase to go on
with, so that a mixture passes from one to the other by one assignment.
"""

from __future__ import annotations

import numpy as np

from figmn._typing import Array
from figmn.engines import choice
from figmn.settings import Settings
from figmn.stream.fit_warm_up import FitWarmUp
from figmn.stream.row_buffer import RowBuffer
from figmn.stream.scale_warm_up import ScaleWarmUp
from figmn.stream.streaming import Streaming

__all__ = ["FitWarmUp", "Phase", "ScaleWarmUp", "Streaming"]

Phase = FitWarmUp | ScaleWarmUp | Streaming


def first_phase(
    n_features: int, settings: Settings, scale: Array | None, center: Array | None
) -> Phase:
    """The phase of a mixture that has learnt nothing."""
    middle = np.zeros(n_features) if center is None else center
    if scale is None or settings.starts_from_batch:
        return warming_up(settings, RowBuffer.none(n_features), scale, middle)
    components = choice.no_components(n_features, settings.update)
    components.moments[1] = middle
    return Streaming(settings, components, scale)


def warming_up(
    settings: Settings,
    buffer: RowBuffer,
    scale: Array | None,
    center: Array,
    together: int = 0,
    scaled_at: int = 0,
) -> FitWarmUp | ScaleWarmUp:
    """The phase of a mixture that has seen some rows; see :class:`FitWarmUp`."""
    if settings.starts_from_batch:
        return FitWarmUp(settings, buffer, scale, center, together, scaled_at)
    return ScaleWarmUp(settings, buffer, scale, center)


def reconfigured(phase: Phase, settings: Settings) -> Phase:
    """A phase under other settings, for all that is learnt from now on."""
    if isinstance(phase, FitWarmUp):
        start = (phase.buffer, phase.scale, phase.center, phase.together, phase.scaled_at)
        return warming_up(settings, *start)
    if isinstance(phase, ScaleWarmUp):
        return warming_up(settings, phase.buffer, phase.scale, phase.center)
    components = phase.components
    if settings.starts_from_batch and components.n_components == 0:
        return first_phase(phase.n_features, settings, phase.scale, components.moments[1])
    return phase.reconfigured(settings)
