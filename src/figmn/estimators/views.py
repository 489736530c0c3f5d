"""Ways for mixtures to tell classes apart, each with the same few methods.

A view learns rows together with the number of each row's class, its *column*:
classes are numbered as they appear, and labels are the classifier's affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.components.density import normalised
from figmn.components.scale import moments_of, suggested_scale
from figmn.mixture import Mixture
from figmn.mixture.validation import as_scale, as_weights
from figmn.mixture.warmup import last_refit
from figmn.storage import from_plain, to_plain

_BLOCK: Final = 512  # rows to predict at a time
_ROWS_FOR_SCALE: Final = 100
_TINY: Final = float(np.finfo(np.float64).tiny)


class View(ABC):
    """Class probabilities from mixtures."""

    @abstractmethod
    def learn(self, rows: Array, columns: Index, weights: Array) -> None:
        """Learn rows of shape (N, D) and their classes, of shape (N,)."""

    @abstractmethod
    def add_classes(self, count: int) -> Self:
        """A view with room for further classes; this one stays as it is."""

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
    def pack(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Settings as plain values, and state as arrays."""

    @classmethod
    @abstractmethod
    def unpack(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Inverse of :meth:`pack`; raises ValueError on anything inconsistent."""


class JointView(View):
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

    def learn(self, rows: Array, columns: Index, weights: Array) -> None:
        """Learn rows and their classes."""
        joint = np.hstack([rows, np.eye(self.n_classes)[columns]])
        self.mixture._learn(joint, weights)

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
        inputs = np.arange(rows.shape[1])
        parts = [
            self._shares(self.mixture.infer(rows[start : start + _BLOCK], known=inputs))
            for start in range(0, len(rows), _BLOCK)
        ]
        return np.concatenate(parts)

    def _shares(self, answer: Any) -> Array:
        shares: Array = np.maximum(answer.mean(), 0.0)
        # Far from all data a linear extrapolation may leave nothing above
        # zero: the components' own shares of the classes stand in.
        lost = shares.sum(axis=1) <= 0.0
        if lost.any():
            own = np.maximum(self.mixture.means[:, -self.n_classes :], 0.0)
            shares[lost] = answer.weights[lost] @ own + _TINY
        shares /= shares.max(axis=1, keepdims=True)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether the mixture has these settings."""
        choices = self.mixture.choices
        return all(getattr(choices, name) == value for name, value in settings.items())

    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change the mixture's settings."""
        self.mixture.reconfigure(**settings)

    def pack(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The mixture's own."""
        settings, arrays = self.mixture._pack()
        return {"mixture": settings, "n_classes": self.n_classes}, arrays

    @classmethod
    def unpack(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Check that there is a variable for each class."""
        view = cls(Mixture._unpack(settings["mixture"], arrays), settings["n_classes"])
        if not 1 <= view.n_classes < view.mixture.n_features:
            raise ValueError("the number of classes does not match the mixture")
        return view


class ClassView(View):
    """A mixture a class, and how frequent the classes are.

    The scale of the columns is that of all classes together, so that a class of
    few rows has a sensible width: the first rows are held back to show it.

    Parameters
    ----------
    n_features, n_classes : int
    settings : dict
        Of the mixtures.
    scale : array of shape (D,) or None
    """

    def __init__(
        self, n_features: int, n_classes: int, settings: dict[str, Any], scale: Array | None
    ) -> None:
        self.settings = settings
        self.scale = scale
        self.rows = np.empty((0, n_features))
        self.columns = np.empty(0, dtype=np.int64)
        self.weights = np.empty(0)
        self.counts = np.zeros(n_classes)
        self._mixtures: list[Mixture] = []
        self._provisional: ClassView | None = None
        if scale is not None:
            self._begin(scale)

    @property
    def n_classes(self) -> int:
        """C."""
        return len(self.counts)

    @property
    def n_features(self) -> int:
        """D."""
        return self.rows.shape[1]

    @property
    def mixtures(self) -> list[Mixture]:
        """One a class; none, as long as the scale is not known."""
        return self._mixtures

    def learn(self, rows: Array, columns: Index, weights: Array) -> None:
        """Learn rows, each in the mixture of its class."""
        if self.mixtures:
            self._learn(rows, columns, weights)
            return
        useful = (weights > 0.0) & ~np.isnan(rows).all(axis=1)
        rows = np.vstack([self.rows, rows[useful]])
        columns = np.concatenate([self.columns, columns[useful]])
        weights = np.concatenate([self.weights, weights[useful]])
        if len(rows) < _ROWS_FOR_SCALE:
            self._hold(rows, columns, weights)
            return
        first = slice(_ROWS_FOR_SCALE)
        self._begin(suggested_scale(moments_of(rows[first], weights[first])))
        self._learn(rows, columns, weights)

    def _hold(self, rows: Array, columns: Index, weights: Array) -> None:
        """Hold rows back, and let answers that are to come heed them."""
        before, now = len(self.rows), len(rows)
        self.rows, self.columns, self.weights = rows, columns, weights
        if self._provisional is None:
            return
        if last_refit(before, 1) != last_refit(now, 1):
            self._provisional = None  # it is time to look at the scale again
        else:
            self._provisional._learn(rows[before:], columns[before:], weights[before:])

    def _seen(self) -> ClassView:
        """The view after the rows held back."""
        if self.mixtures or len(self.rows) == 0:
            return self
        if self._provisional is None:
            first = slice(last_refit(len(self.rows), 1))
            scale = suggested_scale(moments_of(self.rows[first], self.weights[first]))
            view = ClassView(self.n_features, self.n_classes, self.settings, scale)
            view._learn(self.rows, self.columns, self.weights)
            self._provisional = view
        return self._provisional

    def _begin(self, scale: Array) -> None:
        self.scale = scale
        self._provisional = None
        n_features = self.rows.shape[1]
        self._mixtures = [self._new(scale) for _ in self.counts]
        self.rows = np.empty((0, n_features))
        self.columns, self.weights = np.empty(0, dtype=np.int64), np.empty(0)

    def _new(self, scale: Array) -> Mixture:
        return Mixture(self.rows.shape[1], scale=scale, **self.settings)

    def _learn(self, rows: Array, columns: Index, weights: Array) -> None:
        half_life = self.settings["half_life"]
        fades = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)
        counts = self.counts.copy()
        for column, weight in zip(columns.tolist(), weights.tolist(), strict=True):
            if fades < 1.0:
                counts *= fades**weight
            counts[column] += weight
        self.counts = counts
        if len(rows) == 1:  # the same as below, in a tenth of the time
            self.mixtures[int(columns[0])]._learn(rows, weights)
            return
        for column in np.unique(columns):
            here = columns == column
            self.mixtures[column]._learn(rows[here], weights[here])

    @property
    def frequencies(self) -> Array:
        """Weights of the classes, with rows that are held back, of shape (C,)."""
        return self._seen().counts

    def add_classes(self, count: int) -> Self:
        """Add mixtures that have learnt nothing."""
        view = type(self)(self.rows.shape[1], len(self.counts) + count, self.settings, None)
        view.rows, view.columns, view.weights = self.rows, self.columns, self.weights
        view.counts[: len(self.counts)] = self.counts
        view.scale = self.scale
        if self.mixtures and self.scale is not None:
            view._mixtures = [mixture.copy() for mixture in self.mixtures]
            view._mixtures += [self._new(self.scale) for _ in range(count)]
        return view

    def consolidate(self) -> None:
        """Fit each class anew."""
        if not self.mixtures and len(self.rows) > 0:
            rows, columns, weights = self.rows, self.columns, self.weights
            self._begin(suggested_scale(moments_of(rows, weights)))
            self._learn(rows, columns, weights)
        for mixture in self.mixtures:
            mixture.consolidate()

    def probabilities(self, rows: Array) -> Array:
        r"""Posteriors :math:`p(c) p(x \mid c)` by their sum.

        A class none of whose rows has a known entry is as probable as it is frequent.
        """
        view = self._seen()
        counts, mixtures = view.counts, view.mixtures
        if not counts.any():
            return np.full((len(rows), self.n_classes), 1.0 / self.n_classes)
        shares = counts / counts.sum()
        posteriors = np.tile(shares, (len(rows), 1))
        heard = [c for c in np.flatnonzero(counts) if mixtures[c].n_components > 0]
        if heard:
            densities = np.array([mixtures[c]._ready.log_density(rows) for c in heard])
            given = normalised(densities.T + np.log(counts[heard]))
            posteriors[:, heard] = shares[heard].sum() * given
        return posteriors

    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether new mixtures have these settings."""
        return self.settings == settings

    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change the settings of each class's mixture."""
        Mixture(self.n_features, **settings)  # refuses what no mixture would take
        for mixture in self.mixtures:
            mixture.reconfigure(**settings)
        self.settings = settings
        self._provisional = None

    def pack(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Those of all mixtures, with their numbers before the names of arrays."""
        arrays: dict[str, AnyArray] = {
            "rows": self.rows,
            "columns": self.columns,
            "weights": self.weights,
            "counts": self.counts,
        }
        if self.scale is not None:
            arrays["scale"] = self.scale
        parts = [mixture._pack() for mixture in self.mixtures]
        for number, (_, part) in enumerate(parts):
            arrays |= {f"{number}/{name}": array for name, array in part.items()}
        mixtures = [settings for settings, _ in parts]
        own = {name: to_plain(value, name) for name, value in self.settings.items()}
        return {"settings": own, "mixtures": mixtures}, arrays

    @classmethod
    def unpack(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Check that there is a mixture for each class, or none yet."""
        rows, columns = arrays["rows"], arrays["columns"]
        n_features, n_classes = rows.shape[1], len(arrays["counts"])
        own = {name: from_plain(value) for name, value in settings["settings"].items()}
        view = cls(n_features, n_classes, own, None)
        view.rows, view.columns = rows, columns
        view.weights = as_weights(arrays["weights"], len(rows))
        view.counts = as_weights(arrays["counts"], n_classes)
        if columns.shape != (len(rows),) or not np.isin(columns, np.arange(n_classes)).all():
            raise ValueError("rows that are held back have no class")
        if "scale" in arrays:
            view.scale = as_scale(arrays["scale"], n_features)
        view._mixtures = [
            Mixture._unpack(part, part_of(arrays, str(number)))
            for number, part in enumerate(settings["mixtures"])
        ]
        widths = {mixture.n_features for mixture in view.mixtures}
        if view.mixtures and (len(view.mixtures) != n_classes or widths != {n_features}):
            raise ValueError("the classes do not match their mixtures")
        return view


def part_of(arrays: dict[str, AnyArray], name: str) -> dict[str, AnyArray]:
    """The arrays whose names begin with another name and a slash, without that."""
    start = f"{name}/"
    return {key[len(start) :]: array for key, array in arrays.items() if key.startswith(start)}


def indicator_scale(n_classes: int) -> float:
    """Standard deviation of the indicator of one of several equally frequent classes."""
    share = 1.0 / max(n_classes, 2)
    return float(np.sqrt(share * (1.0 - share)))
