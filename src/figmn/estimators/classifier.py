"""Classification."""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import Any, ClassVar, Final, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from figmn._typing import AnyArray, Array, ArrayLike, Index
from figmn.engines.scale import moments_of, suggested_scale
from figmn.estimators.base import MixtureEstimator
from figmn.estimators.class_conditional import ClassConditionalExpert
from figmn.estimators.experts import Expert, JointExpert, indicator_scale, part_of
from figmn.estimators.tracking_expert import TrackingExpert
from figmn.mixture import Mixture
from figmn.settings import is_auto
from figmn.validation import as_scale, as_weights, check_range

_WIDTHS: Final = (0.5, 2.0, 3.0)
_NOVEL: Final = 0.1
_MOST: Final = 256  # components an expert: in many variables nearly every row is novel
_TRACKING: Final[dict[str, Any]] = {"delta": 1.0, "beta": 0.01}
_SHRINKAGE: Final = 3.0  # density likes spikes that tell nothing of classes
_SIMPLE: Final = "biuU"  # kinds of labels that cannot be missing, or of several types
_EXPERTS: Final[dict[str, type[Expert]]] = {
    "class": ClassConditionalExpert,
    "joint": JointExpert,
    "tracking": TrackingExpert,
}


class MixtureClassifier(ClassifierMixin, MixtureEstimator):  # type: ignore[misc]
    """Classification by mixtures, which are averaged unless settings are given.

    Left to itself the classifier looks at the rows in four ways and averages the
    probabilities: by a mixture a class, and by mixtures over inputs and class
    indicators together, of narrow, wide and wider components. With ``delta`` or
    ``beta`` given there is one mixture over inputs and indicators, as in the
    paper: each class is a variable that is one for its members and zero for
    others, and the prediction is the conditional mean of these given the inputs.
    Inputs that are NaN are integrated out.

    With a ``half_life``, and left to itself otherwise, it tracks a stream that drifts:
    by a mixture a class that forgets, by which class follows which, and by both
    together, each trusted for how well it has predicted lately. Rows are learnt one by
    one then, and predictions are for the rows that come next.

    Parameters
    ----------
    {parameters}
        Given as an array, ``scale`` has one entry a column of X. Where there are
        several mixtures, ``max_components`` is the bound on each of them.

    Attributes
    ----------
    experts_ : list
        The ways to look at the rows, each with its mixtures.
    mixture_ : figmn.Mixture
        Over the columns of X, then an indicator a class: those that were
        declared or known to ``fit``, sorted, then others as they appeared. Left
        to itself, the one of narrow components.
    classes_ : array of shape (C,)
        Class labels, sorted.
    n_components_ : int
        Of all mixtures.
    n_features_in_ : int
    feature_names_in_ : array of shape (D,)
        If the columns had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from figmn import MixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    classes_: AnyArray = field(init=False)
    experts_: list[Expert] = field(init=False)
    _configured = None  # parameters that the experts have
    _learnt = "experts_"
    _kept = ("_class_numbers", "_declared")
    _renamed: ClassVar[dict[str, str]] = {"_columns": "_class_numbers"}

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : array-like of shape (N,)
            Labels of any kind that can be sorted.
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            rows, labels = self._labelled(X, y, reset=True)
            check_range(rows, "X")
            weights = as_weights(sample_weight, len(rows))
            self._declare(_distinct(labels), declared=False)
            numbers = self._numbers_of(labels)
            joint = np.hstack([rows, np.eye(len(self.classes_))[numbers]])
            self.experts_ = self._new_experts(moments_of(joint, weights))
            for expert in self.experts_:
                expert.learn(rows, numbers, weights)
                expert.consolidate()
            if self.n_components_ == 0:
                raise ValueError("There is nothing to learn from: all rows have weight zero.")
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn further rows. The sizes of the chunks make no difference.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : array-like of shape (N,)
        classes : array-like of shape (C,) or None
            All the labels that may occur. If they are never given, classes may
            appear at any time, and take their place in ``classes_``: a class is
            part of the model from its first row on.
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            first = not self._is_fitted()
            rows, labels = self._labelled(X, y, reset=first)
            # Everything is checked before the first stretch of rows is learnt.
            check_range(rows, "X")
            weights = as_weights(sample_weight, len(rows))
            if first:
                known = _distinct(np.asarray(labels[:1] if classes is None else classes))
                self._declare(known, declared=classes is not None)
                self.experts_ = self._new_experts(None)
            else:
                self._heed(classes)
            numbers = self._known_numbers(labels)
            segments = self._segments(labels) if numbers is None else []
            if not first:
                self._reconfigure()
            if numbers is None:
                self._learn_by_segments(rows, labels, weights, segments)
            else:
                self._learn(rows, numbers, weights)
        return self

    def _learn_by_segments(
        self, rows: Array, labels: AnyArray, weights: Array, segments: list[tuple[int, int]]
    ) -> None:
        """Learn rows some of whose classes may be new."""
        for start, stop in segments:
            self._extend(_distinct(labels[start : start + 1]))
            numbers = self._numbers_of(labels[start:stop])
            self._learn(rows[start:stop], numbers, weights[start:stop])

    def _learn(self, rows: Array, numbers: Index, weights: Array) -> None:
        for expert in self.experts_:
            expert.learn(rows, numbers, weights)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities for N rows, of shape (N, C), in the order of ``classes_``."""
        self._require_fit()
        rows = self._validated(X)
        check_range(rows, "X")
        total = self.experts_[0].probabilities(rows)
        for expert in self.experts_[1:]:
            total += expert.probabilities(rows)
        mean: Array = total[:, self._class_numbers]
        mean /= len(self.experts_)
        return mean

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each of N rows, of shape (N,)."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        labels: AnyArray = self.classes_[most_probable]
        return labels

    # -- Views ---------------------------------------------------------------

    @property  # type: ignore[misc]
    def mixture_(self) -> Mixture:  # type: ignore[override]
        """The first mixture over inputs and indicators."""
        for expert in self.__dict__.get("experts_", []):
            if isinstance(expert, JointExpert):
                return expert.mixture
        raise AttributeError("There is no mixture over inputs and indicators: see experts_.")

    @property
    def n_components_(self) -> int:
        """Number of components so far, of all mixtures."""
        self._require_fit()
        return sum(mixture.n_components for expert in self.experts_ for mixture in expert.mixtures)

    def _expert_settings(self) -> list[tuple[str, dict[str, Any]]]:
        """Kind and settings of each expert."""
        settings = self._mixture_settings()
        if not (is_auto(self.delta) and is_auto(self.beta)):
            return [("joint", settings)]
        if self.half_life is not None:
            return [("tracking", {**settings, **_TRACKING})]
        most = _MOST if self.max_components is None else self.max_components
        shared = {**settings, "beta": _NOVEL, "max_components": most}
        joint = [("joint", {**shared, "delta": width}) for width in _WIDTHS]
        return [("class", {**settings, "shrinkage": _SHRINKAGE}), *joint]

    def _new_experts(self, moments: Array | None) -> list[Expert]:
        """Views that have learnt nothing yet, at the scale of all rows if these are known."""
        n_features, n_classes = self.n_features_in_, len(self.classes_)
        self._configured = self._mixture_settings()
        scale = center = None
        if self.scale is not None:
            indicators = np.full(n_classes, indicator_scale(n_classes))
            scale = np.concatenate([as_scale(self.scale, n_features), indicators])
        elif moments is not None:
            scale = suggested_scale(moments)
        if moments is not None:
            center = moments[1]
        experts: list[Expert] = []
        for kind, settings in self._expert_settings():
            if kind == "joint":
                mixture = Mixture(n_features + n_classes, scale=scale, center=center, **settings)
                experts.append(JointExpert(mixture, n_classes))
                continue
            own = None if scale is None else scale[:n_features]
            expert = ClassConditionalExpert.new(n_features, n_classes, settings, own)
            experts.append(TrackingExpert(expert) if kind == "tracking" else expert)
        return experts

    def _reconfigure(self) -> None:
        """Take over parameters that were set anew."""
        if self._mixture_settings() == self._configured:
            return
        settings = self._expert_settings()
        if [_EXPERTS[kind] for kind, _ in settings] != [type(expert) for expert in self.experts_]:
            raise ValueError(
                "delta and beta cannot change from 'auto' to numbers or back, nor a half_life "
                "come or go beside 'auto', between calls of partial_fit: start afresh with fit."
            )
        for expert, (_, wanted) in zip(self.experts_, settings, strict=True):
            if not expert.is_configured(wanted):
                expert.reconfigure(wanted)
        self._configured = self._mixture_settings()

    # -- Labels --------------------------------------------------------------

    def _labelled(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, AnyArray]:
        self._require_targets(y)
        rows = self._validated(X, reset=reset)
        if type(y) is np.ndarray and y.shape == (len(rows),) and y.dtype.kind in _SIMPLE:
            return rows, y  # scikit-learn's checks take ten times as long as learning a row
        labels: AnyArray = column_or_1d(y, warn=True)
        if labels.dtype == object and any(label is None for label in labels):
            raise ValueError("y contains None: leave out rows without a label.")
        assert_all_finite(labels, input_name="y")
        check_consistent_length(rows, labels)
        _distinct(labels)  # says what is wrong with labels that cannot be sorted
        check_classification_targets(labels)
        return rows, labels

    def _known_numbers(self, labels: AnyArray) -> Index | None:
        """The number of each label's class of the experts, of shape (N,), if all are known."""
        if labels.dtype.kind != self.classes_.dtype.kind or labels.dtype.kind not in _SIMPLE:
            return None
        by_label = self._number_by_label
        numbers = [by_label.get(label, -1) for label in labels.tolist()]
        return None if -1 in numbers else np.array(numbers)

    def _declare(self, classes: AnyArray, declared: bool) -> None:
        self._declared = declared
        self._number(classes, np.arange(len(classes)))

    def _number(self, classes: AnyArray, numbers: Index) -> None:
        """Take these as the classes, of these numbers of the experts."""
        self.classes_, self._class_numbers = classes, numbers
        self._number_by_label = dict(zip(classes.tolist(), numbers.tolist(), strict=True))

    def _require_kind(self, labels: AnyArray) -> None:
        """Reject labels that cannot be sorted among those so far."""
        kinds = {_kind(self.classes_), _kind(labels)}
        if len(kinds) > 1:
            raise ValueError(
                f"Labels of different kinds, {' and '.join(sorted(kinds))}, cannot be sorted: "
                "use the same kind in all calls."
            )

    def _heed(self, classes: ArrayLike | None) -> None:
        """Take in the classes that a later call names."""
        if classes is None:
            return
        named = _distinct(np.asarray(classes))
        self._require_kind(named)
        missing = np.setdiff1d(self.classes_, named)
        if len(missing) or (self._declared and len(named) != len(self.classes_)):
            raise ValueError(
                f"classes={named.tolist()} differ from those so far, "
                f"{self.classes_.tolist()}: give the same ones again, or none."
            )
        self._extend(named)
        self._declared = True

    def _segments(self, labels: AnyArray) -> list[tuple[int, int]]:
        """Stretches of rows that each begin where a label first appears.

        A class is there from its first row on, wherever chunks begin.
        """
        self._require_kind(labels)
        unseen = np.setdiff1d(_distinct(labels), self.classes_)
        if len(unseen) and self._declared:
            raise ValueError(
                f"y holds labels that were not declared: {unseen.tolist()}. Name all labels in "
                "classes at the first call, or give no classes, to let them appear in time."
            )
        first_rows = [int(np.argmax(labels == label)) for label in unseen]
        bounds = sorted({0, *first_rows, len(labels)})
        return list(pairwise(bounds))

    def _extend(self, classes: AnyArray) -> None:
        """Make room for labels that appear for the first time."""
        unseen = np.setdiff1d(classes, self.classes_)
        if len(unseen) == 0:
            return
        joined = _distinct(np.concatenate([self.classes_, unseen]))
        numbers = np.empty(len(joined), dtype=np.intp)
        numbers[np.searchsorted(joined, self.classes_)] = self._class_numbers
        numbers[np.searchsorted(joined, unseen)] = len(self.classes_) + np.arange(len(unseen))
        self.experts_ = [expert.add_classes(len(unseen)) for expert in self.experts_]
        self._number(joined, numbers)

    def _numbers_of(self, labels: AnyArray) -> Index:
        """The number of each label's class of the experts, of shape (N,)."""
        numbers: Index = self._class_numbers[np.searchsorted(self.classes_, labels)]
        return numbers

    # -- Files ---------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything learnt, as plain values and arrays, for a file."""
        settings = self._pack_learnt()
        arrays: dict[str, AnyArray] = {}
        kinds = {cls: kind for kind, cls in _EXPERTS.items()}
        states = [expert.to_state() for expert in self.experts_]
        for number, (_, part) in enumerate(states):
            arrays |= {f"{number}/{name}": array for name, array in part.items()}
        settings["experts"] = [
            {"kind": kinds[type(expert)], **part}
            for expert, (part, _) in zip(self.experts_, states, strict=True)
        ]
        return settings, arrays

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        n_classes = len(self.classes_)
        self._number(self.classes_, self._class_numbers)
        parts = settings.get("experts", settings.get("views"))  # as they were called at first
        if parts is None:  # as it was kept before there were several
            settings = {**settings, "n_classes": n_classes}
            self.experts_ = [JointExpert.from_state(settings, arrays)]
        else:
            self.experts_ = [
                _EXPERTS[part["kind"]].from_state(part, part_of(arrays, str(number)))
                for number, part in enumerate(parts)
            ]
        if any(expert.n_classes != n_classes for expert in self.experts_):
            raise ValueError("the number of classes does not match the experts")
        if any(expert.n_features != self.n_features_in_ for expert in self.experts_):
            raise ValueError("the number of columns does not match the experts")


def _distinct(labels: AnyArray) -> AnyArray:
    try:
        distinct: AnyArray = np.unique(labels)
    except TypeError:
        raise ValueError(
            "Labels of different kinds cannot be sorted: use numbers or strings, not both."
        ) from None
    return distinct


def _kind(labels: AnyArray) -> str:
    """What labels are: text, numbers or booleans."""
    kinds = {"U": "text", "S": "text", "b": "booleans", "i": "numbers", "u": "numbers"}
    if labels.dtype.kind != "O":
        return kinds.get(labels.dtype.kind, "numbers")
    names = {"str": "text", "bool": "booleans", "int": "numbers", "float": "numbers"}
    found = {type(label).__name__ for label in labels}
    return " or ".join(sorted({names.get(name, name) for name in found}))
