"""Classification."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from figmn._typing import AnyArray, Array, ArrayLike, Index
from figmn.estimators.base import MixtureEstimator
from figmn.mixture.validation import as_scale


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
        Over the columns of X, then an indicator a class, in order of first
        appearance.
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
            appear at any time, and take their place in ``classes_``.
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            first = not self._is_fitted()
            rows, labels = self._labelled(X, y, reset=first)
            if first:
                declared = classes is not None
                self._declare(_distinct(np.asarray(classes) if declared else labels), declared)
            elif classes is not None:
                self._compare(_distinct(np.asarray(classes)))
            unseen = np.setdiff1d(_distinct(labels), self.classes_)
            if len(unseen):
                self._extend(unseen)
            joint = np.hstack([rows, self._indicators(labels)])
            self._learn_more(joint, sample_weight, self._joint_scale(), first=first)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, of shape (N, C), in the order of ``classes_``.

        The conditional means of the indicators, with what falls below zero
        taken as zero, divided by their sum.
        """
        mixture = self._fitted()
        n_features = self.n_features_in_
        answer = mixture.infer(
            self._validated(X),
            known=np.arange(n_features),
            wanted=n_features + self._columns,
        )
        means = np.maximum(answer.mean(), 0.0)
        # Far from all data a linear extrapolation may leave nothing above
        # zero: the components' own shares of the classes stand in.
        lost = means.sum(axis=1) <= 0.0
        if lost.any():
            shares = np.maximum(mixture.means[:, n_features + self._columns], 0.0)
            means[lost] = answer.weights[lost] @ shares + np.finfo(float).tiny
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
        assert_all_finite(labels, input_name="y")
        check_consistent_length(rows, labels)
        check_classification_targets(labels)
        return rows, labels

    def _declare(self, classes: AnyArray, declared: bool) -> None:
        self.classes_ = classes
        self._declared = declared
        self._columns = np.arange(len(classes))

    def _compare(self, classes: AnyArray) -> None:
        if not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes={classes.tolist()} differ from those so far, "
                f"{self.classes_.tolist()}: give the same ones again, or none."
            )

    def _extend(self, unseen: AnyArray) -> None:
        """Make room for labels that appear for the first time."""
        if self._declared:
            raise ValueError(
                f"y holds labels that were not declared: {unseen.tolist()}. Name all labels in "
                "classes at the first call, or give no classes, to let them appear in time."
            )
        joined = _distinct(np.concatenate([self.classes_, unseen]))
        columns = np.empty(len(joined), dtype=np.intp)
        columns[np.searchsorted(joined, self.classes_)] = self._columns
        columns[np.searchsorted(joined, unseen)] = len(self.classes_) + np.arange(len(unseen))
        self.mixture_ = self.mixture_.copy().add_variables(
            len(unseen), _indicator_scale(len(joined))
        )
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


def _indicator_scale(n_classes: int) -> float:
    """Standard deviation of the indicator of one of several equally frequent classes."""
    share = 1.0 / max(n_classes, 2)
    return float(np.sqrt(share * (1.0 - share)))
