"""Experts: ways for mixtures to tell classes apart, each with the same few methods.

An expert learns rows together with the number of each row's class: classes are numbered
as they appear, and labels are the classifier's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.mixture import Mixture

_TINY: Final = float(np.finfo(np.float64).tiny)


class Expert(ABC):
    """Class probabilities from mixtures."""

    @abstractmethod
    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows of shape (N, D) and their classes, of shape (N,)."""

    @abstractmethod
    def add_classes(self, count: int) -> Self:
        """An expert with room for further classes; this one stays as it is."""

    @abstractmethod
    def consolidate(self) -> None:
        """Fit rows together that are still held back, since no more are coming soon."""

    @abstractmethod
    def probabilities(self, rows: Array) -> Array:
        """Probabilities of the classes, of shape (N, C)."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """C."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """D."""

    @property
    @abstractmethod
    def mixtures(self) -> list[Mixture]:
        """All mixtures that there are."""

    @abstractmethod
    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether the mixtures have these settings."""

    @abstractmethod
    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change settings of the mixtures for all that is learnt from now on."""

    @abstractmethod
    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Settings as plain values, and state as arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Inverse of :meth:`to_state`; raises ValueError on anything inconsistent."""


class JointExpert(Expert):
    """One mixture over inputs and class indicators together, as in the paper.

    Each class is a variable that is one for its members and zero for others,
    and the prediction is the conditional mean of these given the inputs.
    """

    def __init__(self, mixture: Mixture, n_classes: int) -> None:
        self.mixture = mixture
        self._n_classes = n_classes

    @property
    def n_classes(self) -> int:
        """C."""
        return self._n_classes

    @property
    def n_features(self) -> int:
        """D."""
        return self.mixture.n_features - self.n_classes

    @property
    def mixtures(self) -> list[Mixture]:
        """The one that there is."""
        return [self.mixture]

    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows and their classes."""
        joint = np.zeros((len(rows), self.mixture.n_features))
        joint[:, : self.n_features] = rows
        joint[np.arange(len(rows)), self.n_features + classes] = 1.0
        self.mixture.core.learn(joint, weights)

    def add_classes(self, count: int) -> Self:
        """Add variables that have been zero so far."""
        scale = indicator_scale(self.n_classes + count)
        return type(self)(self.mixture.copy().add_variables(count, scale), self.n_classes + count)

    def consolidate(self) -> None:
        """Do so."""
        self.mixture.consolidate()

    def probabilities(self, rows: Array) -> Array:
        """Conditional means, with what falls below zero taken as zero, by their sum."""
        if self.mixture.n_components == 0:
            return np.full((len(rows), self.n_classes), 1.0 / self.n_classes)
        mean, _ = self.mixture.core.mean_given_first(rows)
        shares: Array = np.maximum(mean, 0.0)
        # Far from all data a linear extrapolation may leave nothing above
        # zero: the components' own shares of the classes stand in.
        lost = shares.sum(axis=1) <= 0.0
        if lost.any():
            shares[lost] = self._by_component(rows[lost])
        shares /= shares.max(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _by_component(self, rows: Array) -> Array:
        """Shares of the classes in the components, by their responsibilities for rows."""
        own = np.maximum(self.mixture.means[:, -self.n_classes :], 0.0)
        unknown = np.full((len(rows), self.n_classes), np.nan)
        shares: Array = self.mixture.posteriors(np.hstack([rows, unknown])) @ own + _TINY
        return shares

    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether the mixture has these settings."""
        own = self.mixture.settings
        return all(getattr(own, name) == value for name, value in settings.items())

    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change the mixture's settings."""
        self.mixture.reconfigure(**settings)

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The mixture's own."""
        settings, arrays = self.mixture.to_state()
        return {"mixture": settings, "n_classes": self.n_classes}, arrays

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Check that there is a variable for each class."""
        expert = cls(Mixture.from_state(settings["mixture"], arrays), settings["n_classes"])
        if not 1 <= expert.n_classes < expert.mixture.n_features:
            raise ValueError("the number of classes does not match the mixture")
        return expert


def part_of(arrays: dict[str, AnyArray], name: str) -> dict[str, AnyArray]:
    """The arrays whose names begin with another name and a slash, without that."""
    start = f"{name}/"
    return {key[len(start) :]: array for key, array in arrays.items() if key.startswith(start)}


def indicator_scale(n_classes: int) -> float:
    """Standard deviation of the indicator of one of several equally frequent classes."""
    share = 1.0 / max(n_classes, 2)
    return float(np.sqrt(share * (1.0 - share)))
