"""The expert that has a mixture for each class."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines.responsibilities import normalised
from figmn.engines.scale import moments_of, suggested_scale
from figmn.estimators.experts import Expert, part_of
from figmn.mixture import Mixture
from figmn.storage import from_plain, to_plain
from figmn.stream.row_buffer import RowBuffer, last_refit
from figmn.stream.warm_up import WarmUp
from figmn.validation import as_scale, as_weights

_ROWS_FOR_SCALE: Final = 100


class ClassMixtures:
    """A mixture a class, and how frequent the classes are: the phase of streaming.

    Parameters
    ----------
    mixtures : list of Mixture
    counts : array of shape (C,)
        Weights of the classes so far.
    scale : array of shape (D,)
        Of the columns.
    settings : dict
        Of the mixtures.
    """

    def __init__(
        self, mixtures: list[Mixture], counts: Array, scale: Array, settings: dict[str, Any]
    ) -> None:
        self.mixtures = mixtures
        self.counts = counts
        self.scale = scale
        half_life = settings["half_life"]
        self._retention = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)

    @classmethod
    def new(cls, n_classes: int, scale: Array, settings: dict[str, Any]) -> Self:
        """Mixtures that have learnt nothing."""
        mixtures = [Mixture(len(scale), scale=scale, **settings) for _ in range(n_classes)]
        return cls(mixtures, np.zeros(n_classes), scale, settings)

    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows, each in the mixture of its class."""
        counts = self.counts.copy()
        for number, weight in zip(classes.tolist(), weights.tolist(), strict=True):
            if self._retention < 1.0:
                counts *= self._retention**weight
            counts[number] += weight
        self.counts = counts
        if len(rows) == 1:  # the same as below, in a tenth of the time
            self.mixtures[int(classes[0])].core.learn(rows, weights)
            return
        for number in np.unique(classes):
            here = classes == number
            self.mixtures[number].core.learn(rows[here], weights[here])

    def probabilities(self, rows: Array) -> Array:
        """Posteriors of the classes, of shape (N, C)."""
        if not self.counts.any():
            return np.full((len(rows), len(self.counts)), 1.0 / len(self.counts))
        occurred = np.flatnonzero(self.counts).tolist()
        components = {c: self.mixtures[c].core.components() for c in occurred}
        heard = [c for c, part in components.items() if part.n_components > 0]
        log_joint = np.empty((len(rows), len(heard)))
        for number, c in enumerate(heard):
            log_joint[:, number] = components[c].log_density(rows)
        log_joint += np.log(self.counts[heard])
        if len(heard) == len(self.counts):
            return normalised(log_joint)
        shares = self.counts / self.counts.sum()
        posteriors = np.tile(shares, (len(rows), 1))
        if heard:
            posteriors[:, heard] = shares[heard].sum() * normalised(log_joint)
        return posteriors


class ClassWarmUp(WarmUp[ClassMixtures]):
    """The first rows of all classes, which are to show the scale of the columns.

    Parameters
    ----------
    n_classes : int
    settings : dict
        Of the mixtures.
    buffer : RowBuffer
        Of rows, class numbers and weights.
    """

    def __init__(self, n_classes: int, settings: dict[str, Any], buffer: RowBuffer) -> None:
        super().__init__(buffer)
        self.n_classes = n_classes
        self.settings = settings

    def n_needed(self) -> int:
        """How many rows end the warm-up."""
        return _ROWS_FOR_SCALE

    def step(self, n_rows: int) -> int:
        """How many rows show the scale: in steps, so that not all are learnt anew for each."""
        return last_refit(n_rows, 1)

    def begin(self, buffer: RowBuffer, *, final: bool) -> ClassMixtures:
        """Learn the rows at the scale that they show."""
        first = slice(self.step(len(buffer)) if final else len(buffer))
        scale = suggested_scale(moments_of(buffer.rows[first], buffer.weights[first]))
        begun = ClassMixtures.new(self.n_classes, scale, self.settings)
        begun.learn(*buffer.arrays)
        return begun


class ClassConditionalExpert(Expert):
    r"""A mixture a class: posteriors :math:`p(c) p(x \mid c)` by their sum.

    The scale of the columns is that of all classes together, so that a class of
    few rows has a sensible width: the first rows are held back to show it. A class none
    of whose rows has a known entry is as probable as it is frequent.

    Parameters
    ----------
    settings : dict
        Of the mixtures.
    phase : ClassWarmUp or ClassMixtures
    """

    def __init__(self, settings: dict[str, Any], phase: ClassWarmUp | ClassMixtures) -> None:
        self.settings = settings
        self.phase = phase

    @classmethod
    def new(
        cls, n_features: int, n_classes: int, settings: dict[str, Any], scale: Array | None
    ) -> Self:
        """An expert that has learnt nothing."""
        if scale is None:
            buffer = RowBuffer.none(n_features, np.int64)
            return cls(settings, ClassWarmUp(n_classes, settings, buffer))
        return cls(settings, ClassMixtures.new(n_classes, scale, settings))

    @property
    def n_classes(self) -> int:
        """C."""
        phase = self.phase
        return phase.n_classes if isinstance(phase, ClassWarmUp) else len(phase.counts)

    @property
    def n_features(self) -> int:
        """D."""
        phase = self.phase
        return phase.buffer.n_features if isinstance(phase, ClassWarmUp) else len(phase.scale)

    @property
    def mixtures(self) -> list[Mixture]:
        """One a class; none, as long as the scale is not known."""
        return [] if isinstance(self.phase, ClassWarmUp) else self.phase.mixtures

    def model(self) -> ClassMixtures:
        """What questions see: rows that are held back count as learnt."""
        return self.phase.model() if isinstance(self.phase, ClassWarmUp) else self.phase

    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows, each in the mixture of its class."""
        if isinstance(self.phase, ClassMixtures):
            self.phase.learn(rows, classes, weights)
        else:
            self.phase = self.phase.add(rows, classes, weights) or self.phase

    @property
    def frequencies(self) -> Array:
        """Weights of the classes, with rows that are held back, of shape (C,)."""
        return self.model().counts

    def add_classes(self, count: int) -> Self:
        """Add mixtures that have learnt nothing."""
        phase, settings = self.phase, self.settings
        if isinstance(phase, ClassWarmUp):
            wider = ClassWarmUp(phase.n_classes + count, settings, phase.buffer)
            return type(self)(settings, wider)
        new = ClassMixtures.new(count, phase.scale, settings)
        mixtures = [mixture.copy() for mixture in phase.mixtures] + new.mixtures
        counts = np.concatenate([phase.counts, new.counts])
        return type(self)(settings, ClassMixtures(mixtures, counts, phase.scale, settings))

    def consolidate(self) -> None:
        """Fit each class anew."""
        if isinstance(self.phase, ClassWarmUp) and len(self.phase.buffer) > 0:
            self.phase = self.phase.begin(self.phase.buffer, final=False)
        for mixture in self.mixtures:
            mixture.core.consolidate()

    def probabilities(self, rows: Array) -> Array:
        """Posteriors of the classes, of shape (N, C)."""
        if isinstance(self.phase, ClassWarmUp) and len(self.phase.buffer) == 0:
            return np.full((len(rows), self.n_classes), 1.0 / self.n_classes)
        return self.model().probabilities(rows)

    def is_configured(self, settings: dict[str, Any]) -> bool:
        """Whether new mixtures have these settings."""
        return self.settings == settings

    def reconfigure(self, settings: dict[str, Any]) -> None:
        """Change the settings of each class's mixture."""
        Mixture(self.n_features, **settings)  # refuses what no mixture would take
        for mixture in self.mixtures:
            mixture.reconfigure(**settings)
        phase, self.settings = self.phase, settings
        if isinstance(phase, ClassWarmUp):
            self.phase = ClassWarmUp(phase.n_classes, settings, phase.buffer)
        else:
            self.phase = ClassMixtures(phase.mixtures, phase.counts, phase.scale, settings)

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Those of all mixtures, with their numbers before the names of arrays."""
        phase = self.phase
        buffer = RowBuffer.none(self.n_features, np.int64)
        arrays: dict[str, AnyArray] = {}
        if isinstance(phase, ClassWarmUp):
            buffer, counts = phase.buffer, np.zeros(phase.n_classes)
        else:
            counts, arrays["scale"] = phase.counts, phase.scale
        arrays |= dict(zip(("rows", "columns", "weights"), buffer.arrays, strict=True))
        arrays["counts"] = counts
        parts = [mixture.to_state() for mixture in self.mixtures]
        for number, (_, part) in enumerate(parts):
            arrays |= {f"{number}/{name}": array for name, array in part.items()}
        mixtures = [settings for settings, _ in parts]
        own = {name: to_plain(value, name) for name, value in self.settings.items()}
        return {"settings": own, "mixtures": mixtures}, arrays

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Check that there is a mixture for each class, or none yet."""
        rows, classes = arrays["rows"], arrays["columns"]
        n_features, n_classes = rows.shape[1], len(arrays["counts"])
        own = {name: from_plain(value) for name, value in settings["settings"].items()}
        weights = as_weights(arrays["weights"], len(rows))
        counts = as_weights(arrays["counts"], n_classes)
        if classes.shape != (len(rows),) or not np.isin(classes, np.arange(n_classes)).all():
            raise ValueError("rows that are held back have no class")
        mixtures = [
            Mixture.from_state(part, part_of(arrays, str(number)))
            for number, part in enumerate(settings["mixtures"])
        ]
        if not mixtures:
            return cls(own, ClassWarmUp(n_classes, own, RowBuffer(rows, classes, weights)))
        if len(mixtures) != n_classes or {m.n_features for m in mixtures} != {n_features}:
            raise ValueError("the classes do not match their mixtures")
        scale = as_scale(arrays["scale"], n_features)
        return cls(own, ClassMixtures(mixtures, counts, scale, own))
