"""How components come to be: rows held back, a start from them, a stream, and looks back."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from figmn._typing import Array
from figmn.components import engine
from figmn.components.base import Components
from figmn.kernels.compiler import LARGEST
from figmn.kernels.moments import absorb
from figmn.mixture.beginning import Begun, begin, begin_anew, rows_for_scale, rows_together
from figmn.mixture.choices import Choices
from figmn.mixture.sample import Sample
from figmn.mixture.start import Growth
from figmn.mixture.warmup import HeldRows


class Learner:
    """The state of a mixture: its components, and all that learning goes on from.

    Parameters
    ----------
    choices : Choices
    components : Components
        Owned by the learner from now on.
    scale : array of shape (D,) or None
        The columns' standard deviations, if they were given.
    held : HeldRows or None
        Rows that are held back; None after the warm-up.
    growth : Growth or None
        How a mixture that has started from EM goes on.
    sample : Sample or None
        Rows that stand for the stream, if such are kept.
    """

    def __init__(
        self,
        choices: Choices,
        components: Components,
        scale: Array | None = None,
        held: HeldRows | None = None,
        growth: Growth | None = None,
        sample: Sample | None = None,
    ) -> None:
        self.choices = choices
        self.components = engine.suited(components, choices.update)
        self.scale = scale
        self.held = held
        self.growth = growth
        self.sample = sample
        self._provisional: Begun | None = None  # where the rows held back have led
        self._reset()

    @classmethod
    def new(
        cls, n_features: int, choices: Choices, scale: Array | None, center: Array | None
    ) -> Self:
        """A learner that has learnt nothing."""
        components = engine.none(n_features, choices.update)
        if center is not None:
            components.moments[1] = center
        waits = scale is None or choices.start_from_batch
        held = HeldRows.none(n_features) if waits else None
        return cls(choices, components, scale, held)

    @property
    def visible(self) -> Components:
        """The components that queries see: rows held back count as learnt."""
        return self.components if self.held is None else self._seen(self.held).components

    def known_rows(self) -> HeldRows | None:
        """Rows that stand for all that were learnt, if such are kept."""
        if self.held is not None:
            return self.held
        return None if self.sample is None else self.sample.held()

    # -- Learning ------------------------------------------------------------

    def learn(self, rows: Array, weights: Array) -> None:
        """Learn rows of shape (N, D) in order, or hold them back."""
        if self.held is None:
            self._learn_on(rows, weights)
            return
        held = self.held.with_more(rows, weights)
        warmup = self.choices.warmup_rows
        if len(held) < warmup:
            self._hold(held)
            return
        first, rest = held.split(warmup)
        together = len(first) if rows_together(first, self.choices) else 0
        self._begin(self._begun(first, together, len(first), final=False))
        if together and self.choices.half_life is None:
            self.sample = Sample.of(first, self.components)
        self._learn_on(rest.rows, rest.weights)

    def _learn_on(self, rows: Array, weights: Array) -> None:
        """Learn rows after the warm-up."""
        sample = self.sample
        if sample is None:
            self.components.learn(rows, weights, self._settings)
            return
        while len(rows) > 0:
            part = slice(sample.until_review())
            self.components.learn(rows[part], weights[part], self._settings)
            if sample.learn(rows[part], weights[part]):
                self._review(sample)
            rows, weights = rows[part.stop :], weights[part.stop :]

    def _review(self, sample: Sample) -> None:
        """Fit the components anew if the stream no longer is what they were fitted to."""
        if sample.has_moved(self.components):
            self._begin(begin_anew(sample.held(), self.components, self.choices, self.scale))
            sample.note(self.components)

    def consolidate(self) -> None:
        """Fit what is known of the stream together, since no more rows are coming soon."""
        if self.sample is not None:
            self._review(self.sample)
        if self.held is not None and rows_together(self.held, self.choices) > 0:
            self.held = HeldRows(self.held.rows, self.held.weights, len(self.held))
            self._provisional = None

    # -- The warm-up ---------------------------------------------------------

    def _hold(self, held: HeldRows) -> None:
        """Hold rows back, and let queries that are to come see them."""
        before, self.held = self.held, held
        begun = self._provisional
        if begun is None or before is None:
            return
        if (begun.together, begun.scaled_by) != self._steps(held):
            self._provisional = None
            return
        _, new = held.split(len(before))
        begun.components.learn(new.rows, new.weights, begun.settings)

    def _seen(self, held: HeldRows) -> Begun:
        """Where the rows held back have led so far."""
        if self._provisional is None:
            self._provisional = self._begun(held, *self._steps(held), final=True)
        return self._provisional

    def _steps(self, held: HeldRows) -> tuple[int, int]:
        """How many rows are fitted together or, if none, how many show the scale.

        It depends on nothing but the rows, so answers do not on when questions are asked.
        """
        together = rows_together(held, self.choices)
        return together, 0 if together else rows_for_scale(held)

    def _begun(self, held: HeldRows, together: int, scaled_by: int, *, final: bool) -> Begun:
        center = self.components.moments[1]
        return begin(held, together, scaled_by, self.choices, self.scale, center, final=final)

    def _begin(self, begun: Begun) -> None:
        """End the warm-up."""
        self.components, self.growth, self.held = begun.components, begun.growth, None
        self._reset()

    # -- Changes -------------------------------------------------------------

    def reconfigure(self, choices: Choices) -> None:
        """Change settings for all that is learnt from now on."""
        self.choices = choices
        self.components = engine.suited(self.components, choices.update)
        if choices.start_from_batch and self.components.n_components == 0 and self.held is None:
            self.held = HeldRows.none(self.components.n_features)
        self._reset()

    def merge(self, first: int, second: int) -> None:
        """Merge two components, after ending the warm-up with those that queries see."""
        if self.held is not None:
            begun = self._seen(self.held)
            _, rest = self.held.split(begun.together + begun.scaled_by)
            absorb(begun.components.moments, rest.rows, rest.weights)
            self._begin(begun)
        self.sample = None  # whoever merges by hand does not want it undone
        self.components.merge(first, second)

    def add_variables(self, n_new: int, new_scale: Array) -> None:
        """Append variables of a given scale that have been zero in every row so far."""
        width = np.minimum(self.choices.width * new_scale, LARGEST)
        wider = self.components.widened(width**2)
        self.components = engine.suited(wider, self.choices.update)
        if self.held is not None:
            self.held = self.held.with_zeros(n_new)
        if self.sample is not None:
            self.sample = self.sample.with_zeros(n_new)
        if self.scale is not None:
            self.scale = np.concatenate([self.scale, new_scale])
        if self.growth is not None:
            scale_of_new = np.concatenate([self.growth.scale, new_scale])
            self.growth = self.growth._replace(scale=scale_of_new)
        self._reset()

    def _reset(self) -> None:
        """Make all that follows from settings and state."""
        if not self.choices.start_from_batch:
            self.growth = self.sample = None
        elif self.growth is None and self.held is None and self.components.n_components > 0:
            self.growth = Growth.of(self.components, self.components.total_scale())
        if self.choices.half_life is not None:
            self.sample = None  # a sample of all rows does not forget
        n_features = self.components.n_features
        self._settings = self.choices.for_kernel(n_features, self.scale, self.growth)
        self._provisional = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_provisional": None}
