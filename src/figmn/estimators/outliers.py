"""Outlier detection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from figmn._typing import Array, ArrayLike, IntArray
from figmn.estimators.base import MixtureEstimator
from figmn.settings import setting
from figmn.validation import as_weights, check_number


class MixtureOutlierDetector(OutlierMixin, MixtureEstimator):  # type: ignore[misc]
    """Flag rows that the mixture finds improbable.

    The score of a row is the logarithm of the probability that the mixture
    brings forth a row of lower density (an upper bound, attained where
    components do not overlap). It means the same in any number of
    dimensions, so rows with missing entries are judged by what is known.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    offset_ : float
        The threshold of the scores.
    mixture_ : figmn.Mixture
    n_components_ : int
    n_features_in_ : int
    feature_names_in_ : array of shape (D,)
        If the columns had names.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import MixtureOutlierDetector
    >>> rng = np.random.default_rng(0)
    >>> detector = MixtureOutlierDetector().fit(rng.normal(size=(1000, 2)))
    >>> detector.predict([[0.5, -0.5], [5.0, 5.0], [np.nan, 9.0]])
    array([ 1, -1, -1])
    """

    contamination: float = setting(
        0.01,
        "float",
        """The share of rows to flag. ``fit`` sets the threshold so that this share of its
        rows lies below it. In a stream that starts with ``partial_fit`` the model sets
        it: rows are flagged if rows of lower density are less probable than this,
        which flags this share of normal rows or less.""",
    )
    _kept = ("_heeded",)  # the contamination that the threshold follows from

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : ignored
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            share = self._share()
            rows = self._validated(X, reset=True)
            self.mixture_ = self._fit_mixture(rows, sample_weight, self.scale)
            weights = as_weights(sample_weight, len(rows))
            self.offset_ = _threshold(self.mixture_.log_tail(rows), weights, share)
            self._heeded = share
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn further rows. The sizes of the chunks make no difference.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : ignored
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            first = not self._is_fitted()
            rows = self._validated(X, reset=first)
            share = self._share()
            # A model from before this was noted heeds the share that it has.
            if first or share != getattr(self, "_heeded", share):
                self.offset_ = float(np.log(share))
            self._heeded = share
            self._learn_more(rows, sample_weight, self.scale, first=first)
        return self

    def score_samples(self, X: Any) -> Array:
        """Log probability of a row of lower density, for each of N rows, of shape (N,)."""
        mixture = self._fitted()
        return mixture.log_tail(self._validated(X))

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold, of shape (N,): negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 for normal rows and -1 for outliers, of shape (N,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _share(self) -> float:
        return check_number(self.contamination, "contamination", 0.0, 0.5, open_low=True)


def _threshold(scores: Array, weights: Array, share: float) -> float:
    """Midway between the scores of the lowest rows, up to a share of all weight, and the rest."""
    order = np.argsort(scores)
    order = order[weights[order] > 0.0]
    below = np.cumsum(weights[order]) <= share * weights.sum() * (1.0 + 1e-9)
    count = min(int(below.sum()), len(order) - 1)
    return float(0.5 * (scores[order[max(count - 1, 0)]] + scores[order[count]]))
