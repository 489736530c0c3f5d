"""The slow truth: the incremental mixture in covariance form, O(D^3) a row.

As short as its equations, in plain NumPy, for tests and comparisons. It is
the "IGMN" of the paper's experiments; use :class:`figmn.Mixture` for work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import chi2

from figmn._typing import Array, ArrayLike


class IGMN:
    """Incremental Gaussian Mixture Network, as in section 2 of the paper.

    Parameters
    ----------
    scale : array-like of shape (D,)
        Standard deviations of the columns.
    delta, beta, prune_age, prune_mass, max_components
        As for :class:`figmn.Mixture`.
    update : {"exact", "paper"}, default="exact"
        ``"exact"``: S' = (1-w) S + w (1-w) e e'. ``"paper"``: the printed
        S' = (1-w) S + w e* e*' - (w e)(w e)' with e* = x - mu', which is not
        positive definite for every w.

    Examples
    --------
    >>> from figmn.reference import IGMN
    >>> IGMN(scale=[1.0, 1.0]).learn([[0.0, 0.0], [0.5, 0.0]]).means
    array([[0.25, 0.  ]])
    """

    def __init__(
        self,
        scale: ArrayLike,
        *,
        delta: float = 1.0,
        beta: float = 0.1,
        max_components: int | None = None,
        prune_age: int = 0,
        prune_mass: float = 0.0,
        update: str = "exact",
    ) -> None:
        self.initial = np.diag((delta * np.asarray(scale, dtype=np.float64)) ** 2)
        self.threshold = chi2.isf(beta, len(self.initial))
        self.max_components = np.inf if max_components is None else max_components
        self.prune_age, self.prune_mass, self.update = prune_age, prune_mass, update
        n_features = len(self.initial)
        self.means = np.empty((0, n_features))
        self.covariances = np.empty((0, n_features, n_features))
        self.masses = np.empty(0)
        self.ages = np.empty(0, dtype=np.int64)

    def learn(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> IGMN:
        """Learn rows of shape (N, D) in order."""
        rows = np.asarray(X, dtype=np.float64)
        weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight)
        for x, weight in zip(rows, weights, strict=True):
            self.learn_one(x, weight)
        return self

    def learn_one(self, x: Array, weight: float = 1.0) -> None:
        """Learn one row of shape (D,)."""
        distances = self.squared_distances(x)
        novel = not np.any(distances < self.threshold)
        if len(self.masses) == 0 or (novel and len(self.masses) < self.max_components):
            self._create(x, weight)
            return
        self.ages += 1
        for k, posterior in enumerate(self._posteriors(distances)):
            self.masses[k] += weight * posterior
            w = weight * posterior / self.masses[k]
            e = x - self.means[k]
            self.means[k] += w * e
            if self.update == "paper":
                e_star = x - self.means[k]
                change = w * np.outer(e_star, e_star) - np.outer(w * e, w * e)
            else:
                change = w * (1.0 - w) * np.outer(e, e)
            self.covariances[k] = (1.0 - w) * self.covariances[k] + change
        self._prune()

    def _create(self, x: Array, weight: float) -> None:
        initial = self.initial / max(weight, 1.0)
        self.means = np.vstack([self.means, x])
        self.covariances = np.concatenate([self.covariances, initial[np.newaxis]])
        self.masses = np.append(self.masses, weight)
        self.ages = np.append(self.ages, 1)

    def _prune(self) -> None:
        spurious = (self.ages > self.prune_age) & (self.masses < self.prune_mass)
        spurious[np.argmax(self.masses)] = False
        for name in ("means", "covariances", "masses", "ages"):
            setattr(self, name, getattr(self, name)[~spurious])

    def squared_distances(self, x: Array) -> Array:
        """Squared Mahalanobis distances to each component, of shape (K,)."""
        e = x - self.means
        distances: Array = np.einsum("ki,kij,kj->k", e, np.linalg.inv(self.covariances), e)
        return distances

    def posteriors(self, x: Array) -> Array:
        """Probabilities of the components given a row, of shape (K,)."""
        return self._posteriors(self.squared_distances(x))

    def _posteriors(self, distances: Array) -> Array:
        log_det = np.linalg.slogdet(self.covariances)[1]
        log_joint = np.log(self.masses) - 0.5 * (log_det + distances)
        likelihood = np.exp(log_joint - log_joint.max())
        posteriors: Array = likelihood / likelihood.sum()
        return posteriors

    def predict(self, x: Array, known: Any, wanted: Any) -> tuple[Array, Array]:
        """Conditional mean (M,) and covariance (M, M) of wanted given known values (I,)."""
        posteriors = self._marginal(known).posteriors(x)
        gains = [
            S[np.ix_(wanted, known)] @ np.linalg.inv(S[np.ix_(known, known)])
            for S in self.covariances
        ]
        means = np.array(
            [mu[wanted] + G @ (x - mu[known]) for mu, G in zip(self.means, gains, strict=True)]
        )
        parts = [
            S[np.ix_(wanted, wanted)] - G @ S[np.ix_(known, wanted)]
            for S, G in zip(self.covariances, gains, strict=True)
        ]
        mean = posteriors @ means
        covariance = sum(
            p * (C + np.outer(m - mean, m - mean))
            for p, C, m in zip(posteriors, parts, means, strict=True)
        )
        return mean, np.asarray(covariance)

    def _marginal(self, keep: Any) -> IGMN:
        marginal = IGMN(np.ones(len(keep)))
        marginal.means = self.means[:, keep]
        marginal.covariances = self.covariances[:, keep][:, :, keep]
        marginal.masses = self.masses
        return marginal
