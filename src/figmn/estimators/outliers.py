"""Outlier detection."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import gammaincc, gammaln, logsumexp
from sklearn.base import OutlierMixin

from figmn._typing import Array, ArrayLike, IntArray
from figmn.estimators.base import MixtureEstimator
from figmn.mixture.validation import check_number
from figmn.storage import storable


@storable
class MixtureOutlierDetector(OutlierMixin, MixtureEstimator):  # type: ignore[misc]
    """Flag rows that the mixture finds improbable.

    What is normal is described by the heaviest components that together hold
    all but ``false_alarm_rate`` of the mass: a few strange rows that formed a
    component of their own stay strange. The score of a row is the logarithm
    of the probability that a normal row lies as far out as it does, a
    chi-square tail of its distances. It means the same in any number of
    dimensions, so rows with missing entries are judged by what is known.

    Parameters
    ----------
    false_alarm_rate : float, default=0.01
        A row is an outlier if its tail probability is below this.
    {parameters}

    Attributes
    ----------
    offset_ : float
        ``log(false_alarm_rate)``, the threshold of the scores.
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

    def __init__(
        self,
        *,
        false_alarm_rate: float = 0.01,
        delta: float = 1.0,
        beta: float = 0.1,
        scale: ArrayLike | None = None,
        max_components: int | None = None,
        prune_age: int = 0,
        prune_mass: float = 0.0,
    ) -> None:
        super().__init__(
            delta=delta,
            beta=beta,
            scale=scale,
            max_components=max_components,
            prune_age=prune_age,
            prune_mass=prune_mass,
        )
        self.false_alarm_rate = false_alarm_rate

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : ignored
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            self.offset_ = self._threshold()
            rows = self._validated(X, reset=True)
            self.mixture_ = self._fit_mixture(rows, sample_weight, self.scale)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn further rows. The sizes of the chunks make no difference."""
        with self._unchanged_on_error():
            first = not self._is_fitted()
            self.offset_ = self._threshold()
            rows = self._validated(X, reset=first)
            self._learn_more(rows, sample_weight, self.scale, first=first)
        return self

    def score_samples(self, X: Any) -> Array:
        """Log probability that a normal row lies as far out, of shape (N,)."""
        mixture = self._fitted()
        rows = self._validated(X)
        normal = self._normal(mixture.weights)
        known = np.sum(~np.isnan(rows), axis=1)
        tails = log_chi_square_tail(mixture.squared_distances(rows)[:, normal], known[:, None])
        log_shares = np.log(mixture.posteriors(rows)[:, normal] + np.finfo(float).tiny)
        log_shares -= logsumexp(log_shares, axis=1, keepdims=True)
        scores: Array = logsumexp(log_shares + tails, axis=1)
        return np.minimum(scores, 0.0)

    def decision_function(self, X: Any) -> Array:
        """Score minus threshold, of shape (N,): negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> IntArray:
        """1 for normal rows and -1 for outliers, of shape (N,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1)

    def _threshold(self) -> float:
        rate = check_number(self.false_alarm_rate, "false_alarm_rate", 0.0, 1.0, open_low=True)
        return float(np.log(rate))

    def _normal(self, weights: Array) -> IntArray:
        """The heaviest components that hold all but the false alarm rate of the mass."""
        heaviest = np.argsort(-weights, kind="stable")
        lighter = 1.0 - np.cumsum(weights[heaviest]) + weights[heaviest]
        count = max(1, int(np.sum(lighter > self.false_alarm_rate)))
        return heaviest[:count]


def log_chi_square_tail(distances: Array, n_known: IntArray) -> Array:
    """Log of the chi-square survival function, without underflow.

    Parameters
    ----------
    distances : array of shape (N, K)
        Squared distances.
    n_known : int array of shape (N, 1)
        Degrees of freedom. With none, nothing is strange.
    """
    half = np.maximum(n_known, 1) / 2.0
    x = distances / 2.0
    tail = gammaincc(half, x)
    # Far out: the leading terms of the incomplete gamma function's expansion.
    far = tail < 1e-290
    distant = np.where(far, x, 1e3)
    expansion = (
        (half - 1.0) * np.log(distant)
        - distant
        - gammaln(half)
        + np.log1p(np.maximum((half - 1.0) / distant, -0.5))
    )
    logs = np.where(far, expansion, np.log(np.where(far, 1.0, tail)))
    return np.where(n_known > 0, logs, 0.0)
