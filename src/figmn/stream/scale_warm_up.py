"""The first rows of a mixture with settings of its own, which are to show its scale."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array
from figmn.engines import choice
from figmn.engines.scale import moments_of, suggested_scale
from figmn.kernels.moments import absorb
from figmn.settings import Settings
from figmn.stream import driver
from figmn.stream.row_buffer import RowBuffer, last_step
from figmn.stream.settings_to_rule import rule_of
from figmn.stream.streaming import Streaming
from figmn.stream.warm_up import WarmUp

_FEW: Final = 128  # rows that are learnt in no time
_FEW_ENTRIES: Final = 4096  # of them


class ScaleWarmUp(WarmUp[Streaming]):
    """Rows held back until there are enough to show the scale of the columns.

    Parameters
    ----------
    settings : Settings
        With ``delta`` or ``beta``.
    buffer : RowBuffer
    scale : array of shape (D,) or None
    center : array of shape (D,)
        Stands in for the mean of columns without a known entry.
    """

    def __init__(
        self, settings: Settings, buffer: RowBuffer, scale: Array | None, center: Array
    ) -> None:
        super().__init__(buffer)
        self.settings = settings
        self.scale = scale
        self.center = center

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.buffer.n_features

    def n_needed(self) -> int:
        """How many rows end the warm-up."""
        return self.settings.warmup_rows

    def step(self, n_rows: int) -> int:
        """How many rows show the scale.

        All, while they are few; then in steps: not all rows are learnt anew for each.
        """
        few = min(_FEW, _FEW_ENTRIES // self.buffer.n_features)
        return n_rows if n_rows <= few else last_step(n_rows, 1)

    def begin(self, buffer: RowBuffer, *, final: bool) -> Streaming:
        """Learn rows in order, and go on from there."""
        scaled_by = self.step(len(buffer)) if final else len(buffer)
        return learnt_in_order(
            buffer, self.settings, self.scale, self.center, scaled_by, final=final
        )

    def retained(self) -> RowBuffer | None:
        """All rows so far."""
        return self.buffer

    def learn(self, rows: Array, weights: Array) -> ScaleWarmUp | Streaming:
        """Hold rows of shape (N, D) back; the phase to go on with."""
        streaming = self.add(rows, weights)
        return self if streaming is None else streaming

    def consolidate(self) -> ScaleWarmUp:
        """Nothing is to be fitted together."""
        return self

    def merged(self, first: int, second: int) -> Streaming:
        """End the warm-up with the components that questions see, and merge two of them."""
        begun = self.model()
        _, rest = self.buffer.split(self.step(len(self.buffer)))
        absorb(begun.components.moments, rest.rows, rest.weights, 0, len(rest))
        return Streaming(self.settings, begun.components, self.scale).merged(first, second)

    def widened(self, n_new: int, new_scale: Array) -> ScaleWarmUp:
        """The phase with further variables of a given scale that were zero so far."""
        return ScaleWarmUp(
            self.settings,
            self.buffer.with_zeros(n_new),
            None if self.scale is None else np.concatenate([self.scale, new_scale]),
            np.concatenate([self.center, np.zeros(n_new)]),
        )


def learnt_in_order(
    buffer: RowBuffer,
    settings: Settings,
    scale: Array | None,
    center: Array,
    scaled_by: int,
    *,
    final: bool,
) -> Streaming:
    """Learn rows one after the other, at the scale that the first of them show.

    Parameters
    ----------
    buffer : RowBuffer
    settings : Settings
    scale : array of shape (D,) or None
        The columns' standard deviations, if they were given.
    center : array of shape (D,)
    scaled_by : int
        How many rows show the scale, unless it was given.
    final : bool
        Whether no further rows are known to come: until they do, the scale stays.
    """
    n_features = buffer.n_features
    components = choice.no_components(n_features, settings.update)
    moments = moments_of(buffer.rows[:scaled_by], buffer.weights[:scaled_by])
    unseen = moments[0] == 0.0
    moments[1, unseen] = center[unseen]
    components.moments[:] = moments
    rule = rule_of(settings, n_features, suggested_scale(moments) if scale is None else scale)
    driver.learn(components, buffer.rows, buffer.weights, rule)
    begun = Streaming(settings, components, scale)
    if final:
        begun.growth, begun.rule = None, rule
    return begun
