"""Density estimation and clustering."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin

from figmn._typing import Array, ArrayLike, Index, RandomState
from figmn.estimators.base import MixtureEstimator


class IncrementalGaussianMixture(DensityMixin, MixtureEstimator):  # type: ignore[misc]
    """Gaussian mixture with full covariances that learns in one pass.

    It answers as :class:`sklearn.mixture.GaussianMixture` does, but needs no
    number of components, never goes back to a row, and can learn on for ever.
    NaN means unknown, in learning and in every answer.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    mixture_ : figmn.Mixture
        The model itself, for conditioning, merging and more.
    n_components_ : int
    weights_ : array of shape (K,)
    means_ : array of shape (K, D)
    covariances_, precisions_ : arrays of shape (K, D, D)
    n_features_in_ : int
    feature_names_in_ : array of shape (D,)
        If the columns had names.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import IncrementalGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(1, 1, (500, 2)), rng.normal(9, 1, (500, 2))])
    >>> model = IncrementalGaussianMixture(delta=0.3, beta=1e-6).fit(rng.permutation(X))
    >>> model.n_components_
    2
    >>> np.sort(model.means_[:, 0]).round().tolist()
    [1.0, 9.0]
    """

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : ignored
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            rows = self._validated(X, reset=True)
            self.mixture_ = self._fit_mixture(rows, sample_weight, self.scale)
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
            self._learn_more(rows, sample_weight, self.scale, first=first)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Index:
        """Fit, then give the most probable component of each row, of shape (N,)."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def predict(self, X: Any) -> Index:
        """Most probable component of each of N rows, of shape (N,)."""
        mixture = self._fitted()
        return mixture.assign(self._validated(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the components for each of N rows, of shape (N, K)."""
        mixture = self._fitted()
        return mixture.posteriors(self._validated(X))

    def score_samples(self, X: Any) -> Array:
        """Log density of the known entries of each of N rows, of shape (N,)."""
        mixture = self._fitted()
        return mixture.log_density(self._validated(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Index]:
        """Draw rows of shape (n_samples, D), and the component each came from."""
        return self._fitted().sample(n_samples, random_state)

    def bic(self, X: Any) -> float:
        """Bayesian information criterion on rows X: the lower the better."""
        scores = self.score_samples(X)
        return float(self._n_parameters() * np.log(len(scores)) - 2.0 * scores.sum())

    def aic(self, X: Any) -> float:
        """Akaike information criterion on rows X: the lower the better."""
        return float(2.0 * self._n_parameters() - 2.0 * self.score_samples(X).sum())

    def _n_parameters(self) -> int:
        n_features = self.n_features_in_
        each = n_features + n_features * (n_features + 1) // 2
        return self.n_components_ * (each + 1) - 1

    @property
    def weights_(self) -> Array:
        """Probabilities of the components, of shape (K,)."""
        return self._fitted().weights

    @property
    def means_(self) -> Array:
        """Means, of shape (K, D)."""
        return self._fitted().means

    @property
    def covariances_(self) -> Array:
        """Covariance matrices, of shape (K, D, D)."""
        return self._fitted().covariances

    @property
    def precisions_(self) -> Array:
        """Precision matrices, of shape (K, D, D)."""
        return self._fitted().precisions
