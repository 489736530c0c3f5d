"""Classification."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from figmn._typing import AnyArray, Array, ArrayLike, Index
from figmn.estimators.base import MixtureEstimator
from figmn.mixture.validation import as_scale, as_weights, check_range


class MixtureClassifier(ClassifierMixin, MixtureEstimator):  # type: ignore[misc]
    """Classification by a mixture over inputs and class indicators together.

    As in the paper, each class is a variable that is one for its members and
    zero for others, and the prediction is the conditional mean of these given
    the inputs. Inputs that are NaN are integrated out.

    Parameters
    ----------
    {parameters}
        Given as an array, ``scale`` has one entry a column of X.

    Attributes
    ----------
    mixture_ : figmn.Mixture
        Over the columns of X, then an indicator a class: those that were
        declared or known to ``fit``, sorted, then others as they appeared.
    classes_ : array of shape (C,)
        Class labels, sorted.
    n_components_ : int
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

    classes_: AnyArray
    _kept = ("_columns", "_declared")

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
            self._declare(_distinct(labels), declared=False)
            joint = np.hstack([rows, self._indicators(labels)])
            self.mixture_ = self._fit_mixture(joint, sample_weight, self._joint_scale())
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
            self._require_kind(labels)
            if not first:
                self._heed(classes)
            for start, stop in self._segments(labels):
                self._extend(_distinct(labels[start : start + 1]))
                joint = np.hstack([rows[start:stop], self._indicators(labels[start:stop])])
                self._learn_more(joint, weights[start:stop], self._joint_scale(), first=first)
                first = False
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, of shape (N, C), in the order of ``classes_``.

        The conditional means of the indicators, with what falls below zero
        taken as zero, divided by their sum.
        """
        mixture = self._fitted()
        parts = [
            (answer.mean(), answer.weights) for answer in self._conditionals(X, self._columns)
        ]
        means: Array = np.maximum(np.concatenate([mean for mean, _ in parts]), 0.0)
        # Far from all data a linear extrapolation may leave nothing above
        # zero: the components' own shares of the classes stand in.
        lost = means.sum(axis=1) <= 0.0
        if lost.any():
            shares = np.maximum(mixture.means[:, self.n_features_in_ + self._columns], 0.0)
            weights = np.concatenate([weight for _, weight in parts])
            means[lost] = weights[lost] @ shares + np.finfo(float).tiny
        means /= means.max(axis=1, keepdims=True)
        probabilities: Array = means / means.sum(axis=1, keepdims=True)
        return probabilities

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row, of shape (N,)."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        labels: AnyArray = self.classes_[most_probable]
        return labels

    # -- Labels --------------------------------------------------------------

    def _labelled(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, AnyArray]:
        self._require_targets(y)
        rows = self._validated(X, reset=reset)
        labels: AnyArray = column_or_1d(y, warn=True)
        if labels.dtype == object and any(label is None for label in labels):
            raise ValueError("y contains None: leave out rows without a label.")
        assert_all_finite(labels, input_name="y")
        check_consistent_length(rows, labels)
        check_classification_targets(labels)
        return rows, labels

    def _declare(self, classes: AnyArray, declared: bool) -> None:
        self.classes_ = classes
        self._declared = declared
        self._columns = np.arange(len(classes))

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
        columns = np.empty(len(joined), dtype=np.intp)
        columns[np.searchsorted(joined, self.classes_)] = self._columns
        columns[np.searchsorted(joined, unseen)] = len(self.classes_) + np.arange(len(unseen))
        scale = _indicator_scale(len(joined))
        self.mixture_ = self.mixture_.copy().add_variables(len(unseen), scale)
        self.classes_, self._columns = joined, columns

    def _indicators(self, labels: AnyArray) -> Array:
        """Indicator columns of shape (N, C), in order of the mixture's variables."""
        codes: Index = self._columns[np.searchsorted(self.classes_, labels)]
        return np.eye(len(self.classes_))[codes]

    def _joint_scale(self) -> Array | None:
        if self.scale is None:
            return None
        n_classes = len(self.classes_)
        scale = as_scale(self.scale, self.n_features_in_)
        return np.concatenate([scale, np.full(n_classes, _indicator_scale(n_classes))])


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


def _indicator_scale(n_classes: int) -> float:
    """Standard deviation of the indicator of one of several equally frequent classes."""
    share = 1.0 / max(n_classes, 2)
    return float(np.sqrt(share * (1.0 - share)))
