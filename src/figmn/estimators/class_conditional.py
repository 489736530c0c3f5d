"""The expert that has a mixture for each class."""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np

from figmn._typing import AnyArray, Array, Index
from figmn.engines.responsibilities import normalised
from figmn.engines.scale import moments_of, suggested_scale
from figmn.estimators.experts import Expert, part_of
from figmn.kernels.moments import absorb
from figmn.mixture import Mixture
from figmn.settings import is_auto
from figmn.storage import from_plain, to_plain
from figmn.stream.row_buffer import RowBuffer, last_step
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
    settings : dict
        Of the mixtures.
    scale : array of shape (D,) or None
        Of the columns. With None it follows from the first rows of all classes together.
    moments : array of shape (3, D) or None
        Weights, means and variances of the columns in these rows.
    n_seen : int
        How many of them there were so far.
    """

    def __init__(
        self,
        mixtures: list[Mixture],
        counts: Array,
        settings: dict[str, Any],
        scale: Array | None,
        moments: Array | None = None,
        n_seen: int = 0,
    ) -> None:
        self.mixtures = mixtures
        self.counts = counts
        self.scale = scale
        self.settings = settings
        self.n_features = mixtures[0].n_features
        self.moments = np.zeros((3, self.n_features)) if moments is None else moments
        self.n_seen = n_seen
        half_life = settings["half_life"]
        self._retention = 1.0 if half_life is None else 2.0 ** (-1.0 / half_life)

    @classmethod
    def new(
        cls, n_classes: int, n_features: int, settings: dict[str, Any], scale: Array | None
    ) -> Self:
        """Mixtures that have learnt nothing."""
        mixtures = [Mixture(n_features, scale=scale, **settings) for _ in range(n_classes)]
        return cls(mixtures, np.zeros(n_classes), settings, scale)

    def with_classes(self, count: int) -> ClassMixtures:
        """The same with further classes, of which nothing is known; these mixtures are copies."""
        new = ClassMixtures.new(count, self.n_features, self.settings, self.scale)
        return ClassMixtures(
            [mixture.copy() for mixture in self.mixtures] + new.mixtures,
            np.concatenate([self.counts, new.counts]),
            self.settings,
            self.scale,
            self.moments.copy(),
            self.n_seen,
        )

    def learn(self, rows: Array, classes: Index, weights: Array) -> None:
        """Learn rows, each in the mixture of its class."""
        if self.scale is None:
            count = self._find_scale(rows, weights)
            self._learn(rows[:count], classes[:count], weights[:count])
            if self.n_seen == _ROWS_FOR_SCALE:
                self.scale = suggested_scale(self.moments)
                for mixture in self.mixtures:
                    mixture.core.give_scale(self.scale)
            rows, classes, weights = rows[count:], classes[count:], weights[count:]
        self._learn(rows, classes, weights)

    def _find_scale(self, rows: Array, weights: Array) -> int:
        """Note rows that are to show the scale; how many it took, at most."""
        useful = np.flatnonzero((weights > 0.0) & ~np.isnan(rows).all(axis=1))
        useful = useful[: _ROWS_FOR_SCALE - self.n_seen]
        self.n_seen += len(useful)
        count = len(rows) if self.n_seen < _ROWS_FOR_SCALE else int(useful[-1]) + 1
        absorb(self.moments, rows, weights, 0, count)
        return count

    def _learn(self, rows: Array, classes: Index, weights: Array) -> None:
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
        return last_step(n_rows, 1)

    def begin(self, buffer: RowBuffer, *, final: bool) -> ClassMixtures:
        """Learn the rows at the scale that they show."""
        first = slice(self.step(len(buffer)) if final else len(buffer))
        scale = suggested_scale(moments_of(buffer.rows[first], buffer.weights[first]))
        begun = ClassMixtures.new(self.n_classes, len(scale), self.settings, scale)
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
        if scale is None and not _start_from_batch(settings):
            buffer = RowBuffer.none(n_features, np.int64)
            return cls(settings, ClassWarmUp(n_classes, settings, buffer))
        return cls(settings, ClassMixtures.new(n_classes, n_features, settings, scale))

    @property
    def n_classes(self) -> int:
        """C."""
        phase = self.phase
        return phase.n_classes if isinstance(phase, ClassWarmUp) else len(phase.counts)

    @property
    def n_features(self) -> int:
        """D."""
        phase = self.phase
        return phase.buffer.n_features if isinstance(phase, ClassWarmUp) else phase.n_features

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
        return type(self)(settings, phase.with_classes(count))

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
            self.phase = ClassMixtures(
                phase.mixtures, phase.counts, settings, phase.scale, phase.moments, phase.n_seen
            )

    def to_state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Those of all mixtures, with their numbers before the names of arrays."""
        phase = self.phase
        buffer = RowBuffer.none(self.n_features, np.int64)
        arrays: dict[str, AnyArray] = {}
        if isinstance(phase, ClassWarmUp):
            buffer, counts = phase.buffer, np.zeros(phase.n_classes)
        else:
            counts = phase.counts
            if phase.scale is not None:
                arrays["scale"] = phase.scale
            else:
                arrays["moments"], arrays["seen"] = phase.moments, np.array([phase.n_seen])
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
            expert = cls.new(n_features, n_classes, own, None)
            expert.learn(rows, classes, weights)
            return expert
        if len(mixtures) != n_classes or {m.n_features for m in mixtures} != {n_features}:
            raise ValueError("the classes do not match their mixtures")
        if "scale" in arrays:
            scale = as_scale(arrays["scale"], n_features)
            return cls(own, ClassMixtures(mixtures, counts, own, scale))
        moments, seen = arrays["moments"], arrays["seen"]
        if (
            moments.shape != (3, n_features)
            or not np.isfinite(moments).all()
            or np.any(moments[::2] < 0.0)
            or seen.shape != (1,)
            or not 0 <= seen[0] < _ROWS_FOR_SCALE
        ):
            raise ValueError("the moments of the first rows are none that learning makes")
        return cls(own, ClassMixtures(mixtures, counts, own, None, moments, int(seen[0])))


def _start_from_batch(settings: dict[str, Any]) -> bool:
    """Whether mixtures of these settings are fitted by EM, and can wait for their scale."""
    return is_auto(settings["delta"]) and is_auto(settings["beta"])
