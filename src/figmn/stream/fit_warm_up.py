"""The first rows of a mixture without settings, to which EM fits its components."""

from __future__ import annotations

from typing import Final

import numpy as np

from figmn._typing import Array
from figmn.batch.selection import QUICK
from figmn.batch.slices import Slices, finished
from figmn.engines.scale import moments_of
from figmn.settings import Settings
from figmn.stream.refit import Refit
from figmn.stream.retained_sample import RetainedSample
from figmn.stream.row_buffer import RowBuffer, next_step
from figmn.stream.scale_warm_up import learnt_in_order
from figmn.stream.start import LEAST_ROWS
from figmn.stream.streaming import Streaming, fitted

_GROWTH: Final = 1.2  # of rows, from one provisional fit to the next
_GROWTH_OF_CLASS: Final = 1.5  # densities that are to tell classes apart need not be as good
_PIECE: Final = 256  # rows to follow at a time, so that none are learnt by strides
_FEW: Final = 16  # rows that are followed at once, and not when somebody asks


class FitWarmUp:
    """Rows kept until there are enough to fit components that last.

    Questions see a provisional model. It learns rows as they come, and after every fifth more
    of them it is fitted anew, which takes place while further rows come (:class:`Refit`). What
    it is depends on the rows alone: where they come in large chunks, and nobody asks, it is
    not made, which changes nothing but when that is done.

    Parameters
    ----------
    settings : Settings
    buffer : RowBuffer
    scale : array of shape (D,) or None
    center : array of shape (D,)
        Stands in for the mean of columns without a known entry.
    together : int
        So many rows were fitted together, since no more were coming soon.
    scaled_at : int
        After how many rows the scale was given: it counts for fits to more of them.
    """

    def __init__(
        self,
        settings: Settings,
        buffer: RowBuffer,
        scale: Array | None,
        center: Array,
        together: int = 0,
        scaled_at: int = 0,
    ) -> None:
        self.settings = settings
        self.buffer = buffer
        self.scale = scale
        self.center = center
        self.together = together
        self.scaled_at = scaled_at
        of_class = settings.shrinkage is not None and not settings.is_for_predictions
        self._growth = _GROWTH_OF_CLASS if of_class else _GROWTH
        self._model: Streaming | None = None
        self._followed = 0  # rows that the model has learnt
        self._refit: Refit | None = None
        self._last: LastingFit | None = None

    @property
    def n_features(self) -> int:
        """Number of variables D."""
        return self.buffer.n_features

    def retained(self) -> RowBuffer | None:
        """All rows so far."""
        return self.buffer

    def learn(self, rows: Array, weights: Array) -> FitWarmUp | Streaming:
        """Keep rows of shape (N, D); the phase to go on with."""
        self.buffer = self.buffer.with_more(rows, weights)
        if len(self.buffer) >= self.settings.warmup_rows:
            streaming = self._ended()
            if streaming is not None:
                return streaming
        if len(rows) <= _FEW:
            self._follow()
        return self

    def _ended(self) -> Streaming | None:
        """What to go on with, if the rows since there are enough have sufficed to fit it."""
        first, rest = self.buffer.split(self.settings.warmup_rows)
        if len(first) < LEAST_ROWS:
            begun = self._learnt_in_order(first, final=False)
            return begun.learn(*rest.arrays)
        if self._last is None:
            self._last = LastingFit(first, self.settings, self._scale_for(first))
        _, new = rest.split(self._last.arrived)
        passed = self._last.pass_rows(*new.arrays)
        if self._last.result is None:
            return None
        return self._last.result.learn(*new.split(passed)[1].arrays)

    # -- The provisional model -----------------------------------------------

    def model(self) -> Streaming:
        """What the rows so far lead to."""
        if len(self.buffer) < LEAST_ROWS:
            return self._learnt_in_order(self.buffer, final=True)
        self._follow()
        assert self._model is not None
        return self._model

    def _learnt_in_order(self, buffer: RowBuffer, *, final: bool) -> Streaming:
        """A model of few rows."""
        scale = self._scale_for(buffer)
        return learnt_in_order(buffer, self.settings, scale, self.center, len(buffer), final=final)

    def give_scale(self, scale: Array) -> None:
        """Take the columns' standard deviations, as they have become known, from now on."""
        self.scale, self.scaled_at = scale, len(self.buffer)

    def _scale_for(self, buffer: RowBuffer) -> Array | None:
        """The scale, if it was known before the last of some first rows."""
        return self.scale if len(buffer) > self.scaled_at else None

    def _follow(self) -> None:
        """Let the provisional model learn the rows that it has not seen."""
        if len(self.buffer) < LEAST_ROWS:
            return
        if self._model is None:
            self._begin()
        while self._followed < len(self.buffer):
            step = next_step(self._followed, LEAST_ROWS, self._growth)
            self._follow_to(min(step, len(self.buffer), self._followed + _PIECE))
            if self._followed == step and self._refit is None:
                self._refit = self._begun(step)

    def _begin(self) -> None:
        """Make the model of the first rows."""
        self._followed = self.together or LEAST_ROWS
        first, _ = self.buffer.split(self._followed)
        if self.together:
            scale = self._scale_for(first)
            self._model = finished(fitted(first, self.settings, scale, final=True))
        else:
            self._model = self._learnt_in_order(first, final=True)
            self._refit = self._begun(self._followed)

    def _begun(self, n_rows: int) -> ProvisionalFit:
        """A fit to the first rows that is to be made from now on."""
        first, _ = self.buffer.split(n_rows)
        return ProvisionalFit(first, self.settings, self._scale_for(first))

    def _follow_to(self, stop: int) -> None:
        """Learn rows to before ``stop``, or until a fit that goes on is finished."""
        assert self._model is not None
        part = slice(self._followed, stop)
        new = self.buffer.rows[part], self.buffer.weights[part]
        if self._refit is None:
            self._model.learn(*new)
        else:
            stop = self._followed + self._refit.pass_rows(*new)
            if self._refit.result is None:
                self._model.learn(*new)
            else:
                self._model, self._refit = self._refit.result, None
        self._followed = stop

    # -- Other phases to go on with ------------------------------------------

    def consolidate(self) -> FitWarmUp | Streaming:
        """Fit all rows together, since no more are coming soon."""
        if self._last is not None:
            return self._last.finish().consolidate()
        if len(self.buffer) < LEAST_ROWS:
            return self
        return FitWarmUp(
            self.settings,
            self.buffer,
            self.scale,
            self.center,
            together=len(self.buffer),
            scaled_at=min(self.scaled_at, len(self.buffer) - 1),
        )

    def merged(self, first: int, second: int) -> Streaming:
        """End the warm-up with the components that questions see, and merge two of them."""
        begun = self.model()
        begun.components.moments[:] = moments_of(self.buffer.rows, self.buffer.weights)
        streaming = Streaming(self.settings, begun.components, self.scale, begun.growth)
        return streaming.merged(first, second)

    def widened(self, n_new: int, new_scale: Array) -> FitWarmUp:
        """The phase with further variables of a given scale that were zero so far."""
        return FitWarmUp(
            self.settings,
            self.buffer.with_zeros(n_new),
            None if self.scale is None else np.concatenate([self.scale, new_scale]),
            np.concatenate([self.center, np.zeros(n_new)]),
            self.together,
            self.scaled_at,
        )


class FirstFit(Refit):
    """A fit to the first rows of a stream.

    Parameters
    ----------
    first : RowBuffer
    settings : Settings
    scale : array of shape (D,) or None
    """

    def __init__(self, first: RowBuffer, settings: Settings, scale: Array | None) -> None:
        super().__init__(first.n_features)
        self.first, self.settings, self.scale = first, settings, scale


class ProvisionalFit(FirstFit):
    """A fit on the way to more rows."""

    def fit(self) -> Slices[Streaming]:
        """Fit the rows in short."""
        return (yield from fitted(self.first, self.settings, self.scale, final=True, search=QUICK))


class LastingFit(FirstFit):
    """The fit that ends the warm-up."""

    def fit(self) -> Slices[Streaming]:
        """Fit the rows, and keep them as the beginning of the sample."""
        streaming = yield from fitted(self.first, self.settings, self.scale, final=False)
        if self.settings.half_life is None:
            streaming.sample = RetainedSample.of(self.first, streaming.components)
            streaming.hold_out()
        return streaming
