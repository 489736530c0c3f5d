"""The phase in which rows update components one after the other."""

from __future__ import annotations

import copy
from typing import Final, Self

import numpy as np

from figmn._typing import Array
from figmn.batch.selection import THOROUGH, Search
from figmn.batch.slices import Slices
from figmn.engines import choice
from figmn.engines.interface import Components
from figmn.engines.scale import suggested_scale
from figmn.kernels.compiler import LARGEST
from figmn.settings import Settings
from figmn.stream import driver
from figmn.stream.refit import Refit
from figmn.stream.retained_sample import RetainedSample
from figmn.stream.row_buffer import RowBuffer
from figmn.stream.settings_to_rule import preferences_of, rule_of
from figmn.stream.start import Growth, HeldOut, started

_MOST_JUDGED: Final = 1024  # rows, to see how good predictions are
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
        self.review: Review | None = None
        self.held_out: tuple[HeldOut, ...] = ()

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
            if self.review is not None:
                part = slice(self.review.pass_rows(rows[part], weights[part]))
            driver.learn(self.components, rows[part], weights[part], self.rule)
            due = sample.learn(rows[part], weights[part])
            if self.review is not None and self.review.result is not None:
                self._take(self.review.result)
            if due:
                self.hold_out()
            if due and self.review is None and sample.has_moved(self.components):
                self.review = Review.of(self, sample)
            rows, weights = rows[part.stop :], weights[part.stop :]
        return self

    def hold_out(self) -> None:
        """Let the components be judged as they are now, by rows of the sample."""
        sample = self.sample
        if sample is not None and self.settings.is_for_predictions:
            buffer, step = sample.buffer(), -(-len(sample.rows) // _MOST_JUDGED)
            rows, weights = buffer.rows[::step].copy(), buffer.weights[::step].copy()
            self.held_out = (HeldOut(copy.deepcopy(self.components), rows, weights),)

    def consolidate(self) -> Streaming:
        """Review what is retained of the stream, since no more rows are coming soon."""
        self.settle()
        if self.sample is not None and self.sample.has_moved(self.components):
            self._take(Review.of(self, self.sample).finish())
        return self

    def settle(self) -> None:
        """Finish a review that goes on."""
        if self.review is not None:
            self._take(self.review.finish())

    def _take(self, refitted: Streaming) -> None:
        """Go on with what a review has led to."""
        self.components, self.growth = refitted.components, refitted.growth
        self.rule, self.review = refitted.rule, None
        self.held_out = refitted.held_out or self.held_out
        if self.sample is not None:
            self.sample.note(self.components)

    def reconfigured(self, settings: Settings) -> Streaming:
        """The phase under other settings, for all that is learnt from now on."""
        self.settle()
        return Streaming(settings, self.components, self.scale, self.growth, self.sample)

    def merged(self, first: int, second: int) -> Streaming:
        """Merge two components; whoever does so by hand does not want it undone."""
        self.settle()
        self.sample = None
        self.components.merge(first, second)
        return self

    def widened(self, n_new: int, new_scale: Array) -> Streaming:
        """The phase with further variables of a given scale that were zero so far."""
        self.settle()
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


class Review(Refit):
    """Components fitted anew to rows that stand for all of a stream, which has changed.

    Or those before go on, if rows that are left out at first prefer them: with room for more.

    Parameters
    ----------
    settings : Settings
    scale : array of shape (D,) or None
    sample : RowBuffer
        The rows.
    before : Components
        Those up to now. They stay as they are.
    later : RowBuffer or None
        Rows that have come since, if the review has been going on.
    """

    def __init__(
        self,
        settings: Settings,
        scale: Array | None,
        sample: RowBuffer,
        before: Components,
        later: RowBuffer | None = None,
    ) -> None:
        super().__init__(before.n_features)
        self.settings, self.scale = settings, scale
        self.sample, self.before = sample, before
        if later is not None:
            self.later, self.arrived = later, len(later)

    @classmethod
    def of(cls, now: Streaming, sample: RetainedSample) -> Self:
        """A review of a stream as it is now."""
        buffer = sample.buffer()
        rows = RowBuffer(buffer.rows.copy(), buffer.weights)
        return cls(now.settings, now.scale, rows, copy.deepcopy(now.components))

    def fit(self) -> Slices[Streaming]:
        """Try on most of the rows, judge by the others, and then fit all."""
        sample, before = self.sample, self.before
        left_out = np.arange(len(sample)) % _JUDGES == 0
        known = RowBuffer(sample.rows[~left_out], sample.weights[~left_out])
        trial = yield from fitted(known, self.settings, self.scale, final=False, before=before)
        judges, weights = sample.rows[left_out], sample.weights[left_out]
        gain = trial.components.log_density(judges) - before.log_density(judges)
        if weights @ gain > 0.0:
            return (
                yield from fitted(sample, self.settings, self.scale, final=False, before=before)
            )
        return from_components(copy.deepcopy(before), self.settings, self.scale)


def fitted(
    buffer: RowBuffer,
    settings: Settings,
    scale: Array | None,
    *,
    final: bool,
    before: Components | None = None,
    search: Search = THOROUGH,
) -> Slices[Streaming]:
    """Fit rows by EM, in place of components before, if there are any."""
    preferences = preferences_of(settings, final=final)
    components, held_out = yield from started(
        buffer, scale, preferences, settings.retention, before, search
    )
    streaming = from_components(components, settings, scale)
    streaming.held_out = held_out
    return streaming


def from_components(components: Components, settings: Settings, scale: Array | None) -> Streaming:
    """How to go on from components that EM has fitted."""
    components = choice.suited(components, settings.update)
    growth = Growth.of(components, suggested_scale(components.moments), components.n_learnt)
    return Streaming(settings, components, scale, growth)
