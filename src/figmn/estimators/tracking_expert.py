"""Classes along a stream that drifts, by what the rows and the classes before them say."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.estimators.blending import add_losses, blended, expert_predictions
from figmn.estimators.class_conditional import ClassConditionalExpert
from figmn.estimators.experts import Expert, part_of
from figmn.mixture import Mixture
from figmn.validation import as_weights

# Powers below one as well, since neighbours in a stream have much of what the
# inputs tell in common.
_POWERS: Final = np.array([0.1, 0.3, 1.0])
_N_PREDICTIONS: Final = 2 + len(_POWERS)
_REMEMBERED: Final = 0.999  # of what has followed a class, whenever it occurs again


class TrackingExpert(Expert):
    """A mixture a class that forgets, which class follows which, and both together.

    Each of these predictions is trusted for how well it has predicted lately. Where
    neighbours in a stream often share their class, nothing predicts better than
    the class of the row before.

    Parameters
    ----------
    by_inputs : ClassConditionalExpert

    Attributes
    ----------
    losses : array of shape (5,)
        How badly each prediction has predicted lately, in nats.
    followers : array of shape (C + 1, C)
        How often a class, in columns, has lately followed another, in rows, the last of
        which stands for none.
    latest : int
        The class of the row before; at first none, which is -1.
    """

    def __init__(self, by_inputs: ClassConditionalExpert) -> None:
        self.by_inputs = by_inputs
        self.losses = np.zeros(_N_PREDICTIONS)
        self.followers = np.zeros((by_inputs.n_classes + 1, by_inputs.n_classes))
        self.latest = -1
        self._answer: tuple[bytes, Array] | None = None

    @property
    def n_classes(self) -> int:
        """C."""
        return self.by_inputs.n_classes

    @property
    def n_features(self) -> int:
        """D."""
        return self.by_inputs.n_features

    @property
    def mixtures(self) -> list[Mixture]:
        """One a class."""
        return self.by_inputs.mixtures

    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows one by one, after judging the predictions by each."""
        for t in range(len(rows)):
            here = slice(t, t + 1)
            number = int(classes[t])
            if weights[t] > 0.0:
                add_losses(self.losses, self._predictions(rows[here]), number)
                self._follow(number)
            self.by_inputs.learn(rows[here], classes[here], weights[here])
            self._answer = None

    def _follow(self, number: int) -> None:
        """Count a succession, with less and less weight on earlier ones."""
        followers = self.followers[self.latest]
        followers *= _REMEMBERED
        followers[number] += 1.0
        self.latest = number

    def probabilities(self, rows: Array) -> Array:
        """For rows each of which may be the next."""
        return blended(self._predictions(rows), self.losses)

    def _predictions(self, rows: Array) -> Array:
        """Probabilities by each prediction, of shape (5, N, C)."""
        answer = self._answer  # read once: another thread may ask as well
        if answer is not None and answer[0] == rows.tobytes():
            return answer[1]  # predicted a moment ago, and nothing learnt since
        given = self.by_inputs.probabilities(rows)
        followers = self.followers[self.latest]
        every = expert_predictions(given, self.by_inputs.frequencies, followers, _POWERS)
        if len(rows) == 1:
            self._answer = rows.tobytes(), every
        return every

    def add_classes(self, count: int) -> Self:
        """Add classes that have not occurred."""
        expert = type(self)(self.by_inputs.add_classes(count))
        expert.followers[: self.n_classes, : self.n_classes] = self.followers[:-1]
        expert.losses, expert.latest = self.losses.copy(), self.latest
        return expert

    def consolidate(self) -> None:
        """Fit each class anew."""
        self.by_inputs.consolidate()

    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether the mixtures have these settings."""
        return self.by_inputs.is_configured(settings)

    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change the settings of each class's mixture."""
        self.by_inputs.reconfigure(settings)
        self._answer = None

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Those of the mixtures, and what was learnt beside them."""
        settings, arrays = self.by_inputs.to_state()
        arrays = {f"by_inputs/{name}": array for name, array in arrays.items()}
        arrays |= {"losses": self.losses, "followers": self.followers}
        return {"by_inputs": settings, "latest": self.latest}, arrays

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Check that counts are counts, and losses are losses."""
        expert = cls(
            ClassConditionalExpert.from_state(settings["by_inputs"], part_of(arrays, "by_inputs"))
        )
        followers = arrays["followers"]
        if followers.shape != expert.followers.shape:
            raise ValueError("the successions do not match the classes")
        if settings["latest"] not in range(-1, expert.n_classes):
            raise ValueError("the latest class is none of the classes")
        expert.followers = as_weights(followers.ravel(), followers.size).reshape(followers.shape)
        expert.losses = as_weights(arrays["losses"], _N_PREDICTIONS)
        expert.latest = int(settings["latest"])
        return expert
