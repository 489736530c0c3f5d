"""The two phases of a mixture's life: warming up, and streaming.

A mixture without ``delta`` and ``beta`` fits its first rows by EM; one with them, but
without a ``scale``, estimates that from its first rows. Until there are enough, rows are
held back: :class:`MixtureWarmUp`. From then on they update components one after the
other: :class:`Streaming`, where the sample of the stream that is retained is reviewed
from time to time, and components are fitted anew if the stream has changed.

Both phases have the same methods. What changes a phase for good gives the phase to go
on with, so that a mixture passes from one to the other by one assignment.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array
from figmn.batch.slices import finished
from figmn.engines import choice
from figmn.engines.interface import Components
from figmn.engines.scale import moments_of, suggested_scale
from figmn.kernels.compiler import LARGEST
from figmn.kernels.moments import absorb
from figmn.settings import Settings
from figmn.stream import driver
from figmn.stream.retained_sample import RetainedSample
from figmn.stream.row_buffer import RowBuffer, last_refit
from figmn.stream.settings_to_rule import preferences_of, rule_of
from figmn.stream.start import LEAST_ROWS, Growth, started
from figmn.stream.warm_up import WarmUp

_FEW: Final = 128  # rows that are learnt in no time
_FEW_ENTRIES: Final = 4096  # of them
_JUDGES: Final = 8  # one of so many rows is left out, to judge by


class Streaming:
    """Components that rows update, and what is retained of the stream beside them.

    Parameters
    ----------
    settings : Settings
    components : Components
        Owned by the phase from now on.
    scale : array of shape (D,) or None
        The columns' standard deviations, if they were given.
    growth : Growth or None
        How a mixture that has started from EM goes on.
    sample : RetainedSample or None
        Rows that stand for the stream, if such are kept.
    """

    def __init__(
        self,
        settings: Settings,
        components: Components,
        scale: Array | None,
        growth: Growth | None = None,
        sample: RetainedSample | None = None,
    ) -> None:
        if not settings.starts_from_batch:
            growth = sample = None
        elif growth is None and components.n_components > 0:
            growth = Growth.of(components, components.total_scale())
        if settings.half_life is not None:
            sample = None  # a sample of all rows does not forget
        self.settings = settings
        self.components = choice.suited(components, settings.update)
        self.scale = scale
        self.growth = growth
        self.sample = sample
        self.rule = rule_of(settings, components.n_features, scale, growth)

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.components.n_features

    def model(self) -> Streaming:
        """What questions see: the phase itself."""
        return self

    def retained(self) -> RowBuffer | None:
        """Rows that stand for all that were learnt, if such are kept."""
        return None if self.sample is None else self.sample.buffer()

    def learn(self, rows: Array, weights: Array) -> Streaming:
        """Learn rows of shape (N, D) in order; the phase to go on with."""
        sample = self.sample
        if sample is None:
            driver.learn(self.components, rows, weights, self.rule)
            return self
        while len(rows) > 0:
            part = slice(sample.until_review())
            driver.learn(self.components, rows[part], weights[part], self.rule)
            if sample.learn(rows[part], weights[part]):
                self._review(sample)
            rows, weights = rows[part.stop :], weights[part.stop :]
        return self

    def consolidate(self) -> Streaming:
        """Review what is retained of the stream, since no more rows are coming soon."""
        if self.sample is not None:
            self._review(self.sample)
        return self

    def _review(self, sample: RetainedSample) -> None:
        """Fit the components anew if the stream no longer is what they were fitted to."""
        if sample.has_moved(self.components):
            refitted = _refitted(sample.buffer(), self)
            self.components, self.growth = refitted.components, refitted.growth
            self.rule = refitted.rule
            sample.note(self.components)

    def reconfigured(self, settings: Settings) -> Phase:
        """The phase under other settings, for all that is learnt from now on."""
        components = self.components
        if settings.starts_from_batch and components.n_components == 0:
            center = components.moments[1]
            return MixtureWarmUp.new(components.n_features, settings, self.scale, center)
        return Streaming(settings, components, self.scale, self.growth, self.sample)

    def merged(self, first: int, second: int) -> Streaming:
        """Merge two components; whoever does so by hand does not want it undone."""
        self.sample = None
        self.components.merge(first, second)
        return self

    def widened(self, n_new: int, new_scale: Array) -> Streaming:
        """The phase with further variables of a given scale that were zero so far."""
        width = np.minimum(self.settings.width * new_scale, LARGEST)
        growth, scale, sample = self.growth, self.scale, self.sample
        if growth is not None:
            growth = growth._replace(scale=np.concatenate([growth.scale, new_scale]))
        return Streaming(
            self.settings,
            self.components.widened(width**2),
            None if scale is None else np.concatenate([scale, new_scale]),
            growth,
            None if sample is None else sample.with_zeros(n_new),
        )


class MixtureWarmUp(WarmUp[Streaming]):
    """The first rows of a mixture, which are to be fitted together or to show its scale.

    Parameters
    ----------
    settings : Settings
    buffer : RowBuffer
    scale : array of shape (D,) or None
    center : array of shape (D,)
        Stands in for the mean of columns without a known entry.
    at_least : int
        So many rows, at least, are to be fitted together.
    """

    def __init__(
        self,
        settings: Settings,
        buffer: RowBuffer,
        scale: Array | None,
        center: Array,
        at_least: int = 0,
    ) -> None:
        super().__init__(buffer)
        self.settings = settings
        self.scale = scale
        self.center = center
        self.at_least = at_least

    @classmethod
    def new(
        cls, n_features: int, settings: Settings, scale: Array | None, center: Array | None = None
    ) -> MixtureWarmUp:
        """The phase of a mixture that has learnt nothing."""
        middle = np.zeros(n_features) if center is None else center
        return cls(settings, RowBuffer.none(n_features), scale, middle)

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.buffer.n_features

    def n_needed(self) -> int:
        """How many rows end the warm-up."""
        return self.settings.warmup_rows

    def step(self, n_rows: int) -> tuple[int, int]:
        """How many rows are fitted together and, if none, how many show the scale."""
        together = 0
        if n_rows >= LEAST_ROWS and self.settings.starts_from_batch:
            together = max(last_refit(n_rows, LEAST_ROWS), self.at_least)
        return together, 0 if together else self._rows_for_scale(n_rows)

    def _rows_for_scale(self, n_rows: int) -> int:
        """All, while they are few; then in steps: not all rows are learnt anew for each."""
        few = min(_FEW, _FEW_ENTRIES // self.buffer.n_features)
        return n_rows if n_rows <= few else last_refit(n_rows, 1)

    def begin(self, buffer: RowBuffer, *, final: bool) -> Streaming:
        """Fit rows by EM, or learn them in order, and go on from there."""
        together, scaled_by = self.step(len(buffer))
        if not final:  # the warm-up ends: all rows count
            together, scaled_by = (len(buffer) if together else 0), len(buffer)
        if together == 0:
            return self._learnt_in_order(buffer, scaled_by, final=final)
        first, rest = buffer.split(together)
        begun = _fitted(first, self.settings, self.scale, final=final)
        if not final and self.settings.half_life is None:
            begun.sample = RetainedSample.of(first, begun.components)
        driver.learn(begun.components, rest.rows, rest.weights, begun.rule)
        return begun

    def _learnt_in_order(self, buffer: RowBuffer, scaled_by: int, *, final: bool) -> Streaming:
        """Learn the rows one after the other, at the scale that the first of them show."""
        n_features = buffer.n_features
        components = choice.no_components(n_features, self.settings.update)
        moments = moments_of(buffer.rows[:scaled_by], buffer.weights[:scaled_by])
        unseen = moments[0] == 0.0
        moments[1, unseen] = self.center[unseen]
        components.moments[:] = moments
        scale = suggested_scale(moments) if self.scale is None else self.scale
        rule = rule_of(self.settings, n_features, scale)
        driver.learn(components, buffer.rows, buffer.weights, rule)
        begun = Streaming(self.settings, components, self.scale)
        if final:  # until the next step, at the same scale
            begun.growth, begun.rule = None, rule
        return begun

    def retained(self) -> RowBuffer | None:
        """All rows so far."""
        return self.buffer

    def learn(self, rows: Array, weights: Array) -> Phase:
        """Hold rows of shape (N, D) back; the phase to go on with."""
        streaming = self.add(rows, weights)
        return self if streaming is None else streaming

    def consolidate(self) -> MixtureWarmUp:
        """Fit all rows together that were held back, since no more are coming soon."""
        if self.step(len(self.buffer))[0] == 0:
            return self
        buffer, scale, center = self.buffer, self.scale, self.center
        return MixtureWarmUp(self.settings, buffer, scale, center, at_least=len(buffer))

    def reconfigured(self, settings: Settings) -> MixtureWarmUp:
        """The phase under other settings."""
        return MixtureWarmUp(settings, self.buffer, self.scale, self.center, self.at_least)

    def merged(self, first: int, second: int) -> Streaming:
        """End the warm-up with the components that questions see, and merge two of them."""
        begun = self.model()
        _, rest = self.buffer.split(sum(self.step(len(self.buffer))))
        absorb(begun.components.moments, rest.rows, rest.weights, 0, len(rest))
        streaming = Streaming(self.settings, begun.components, self.scale, begun.growth)
        return streaming.merged(first, second)

    def widened(self, n_new: int, new_scale: Array) -> MixtureWarmUp:
        """The phase with further variables of a given scale that were zero so far."""
        return MixtureWarmUp(
            self.settings,
            self.buffer.with_zeros(n_new),
            None if self.scale is None else np.concatenate([self.scale, new_scale]),
            np.concatenate([self.center, np.zeros(n_new)]),
            self.at_least,
        )


Phase = MixtureWarmUp | Streaming


def first_phase(
    n_features: int, settings: Settings, scale: Array | None, center: Array | None
) -> Phase:
    """The phase of a mixture that has learnt nothing."""
    if scale is None or settings.starts_from_batch:
        return MixtureWarmUp.new(n_features, settings, scale, center)
    components = choice.no_components(n_features, settings.update)
    if center is not None:
        components.moments[1] = center
    return Streaming(settings, components, scale)


def _fitted(
    buffer: RowBuffer,
    settings: Settings,
    scale: Array | None,
    *,
    final: bool,
    before: Components | None = None,
) -> Streaming:
    """Fit rows by EM, in place of components before, if there are any."""
    preferences = preferences_of(settings, final=final)
    components = finished(started(buffer, scale, preferences, settings.retention, before))
    return _from_components(choice.suited(components, settings.update), settings, scale)


def _refitted(sample: RowBuffer, now: Streaming) -> Streaming:
    """Fit rows that stand for all of a stream, in place of the components now.

    Or go on with these, if rows that are left out at first prefer them: with room for more,
    since the stream has changed.
    """
    left_out = np.arange(len(sample)) % _JUDGES == 0
    known = RowBuffer(sample.rows[~left_out], sample.weights[~left_out])
    settings, scale, before = now.settings, now.scale, now.components
    trial = _fitted(known, settings, scale, final=False, before=before)
    judges, weights = sample.rows[left_out], sample.weights[left_out]
    gain = trial.components.log_density(judges) - before.log_density(judges)
    if weights @ gain > 0.0:
        return _fitted(sample, settings, scale, final=False, before=before)
    return _from_components(before, settings, scale)


def _from_components(components: Components, settings: Settings, scale: Array | None) -> Streaming:
    """How to go on from components that EM has fitted."""
    units = suggested_scale(components.moments)
    growth = Growth.of(components, units, components.n_learnt)
    return Streaming(settings, components, scale, growth)
