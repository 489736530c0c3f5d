"""Filling in what is missing."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from figmn._typing import AnyArray, Array, ArrayLike
from figmn.estimators.base import MixtureEstimator
from figmn.validation import as_weights


class MixtureImputer(OneToOneFeatureMixin, TransformerMixin, MixtureEstimator):  # type: ignore[misc]
    """Replace NaN by what the row's known values lead one to expect.

    It learns from incomplete rows too: a missing entry counts as its
    conditional distribution given the known ones, as in the EM algorithm.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    mixture_ : figmn.Mixture
    n_components_ : int
    n_features_in_ : int
    feature_names_in_ : array of shape (D,)
        If the columns had names.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import MixtureImputer
    >>> x = np.linspace(0, 1, 200)
    >>> imputer = MixtureImputer().fit(np.column_stack([x, 2 * x]))
    >>> imputer.transform([[0.25, np.nan]]).round(2).tolist()
    [[0.25, 0.5]]
    """

    _kept = ("_seen", "_sklearn_output_config")

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
            NaN marks what is missing.
        y : ignored
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            rows = self._validated(X, reset=True)
            self.mixture_ = self._fit_mixture(rows, sample_weight, self.scale)
            self._seen = _known_columns(rows, sample_weight)
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
            seen = _known_columns(rows, sample_weight)
            self._seen = seen if first else self._seen | seen
            self._learn_more(rows, sample_weight, self.scale, first=first)
        return self

    def transform(self, X: Any) -> Array:
        """Rows of shape (N, D) with NaN replaced by conditional means.

        A column without a single known value so far is filled with zeros, and
        a warning says so.
        """
        mixture = self._fitted()
        rows = self._validated(X)
        blind = np.flatnonzero(~self._seen & np.isnan(rows).any(axis=0))
        if len(blind):
            warnings.warn(
                f"Columns {blind.tolist()} have had no known value so far: "
                "their missing entries are filled with zeros.",
                stacklevel=2,
            )
        return mixture.fill(rows)

    def _try_out(self) -> None:
        self.mixture_.fill(np.where(self._seen, np.nan, 0.0).reshape(1, self.n_features_in_))


def _known_columns(rows: Array, sample_weight: ArrayLike | None) -> AnyArray:
    """Which columns have a known entry in a row that counts, of shape (D,)."""
    counted = as_weights(sample_weight, len(rows)) > 0.0
    return np.asarray((~np.isnan(rows[counted])).any(axis=0))
