"""Regression with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final, Self, cast

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length

from figmn import storage
from figmn._typing import Array, ArrayLike
from figmn.estimators.base import MixtureEstimator
from figmn.estimators.calibration import Calibration, calibrated
from figmn.stream.start import HeldOut
from figmn.validation import check_number, check_range

_SHRINKAGE: Final = 1.0


class MixtureRegressor(RegressorMixin, MultiOutputMixin, MixtureEstimator):  # type: ignore[misc]
    """Regression of one or many outputs by a mixture over inputs and outputs together.

    The prediction is the conditional distribution of the outputs given the
    inputs: its mean, its standard deviation, its covariance. Inputs that are
    NaN are integrated out.

    Parameters
    ----------
    {parameters}
        Given as an array, it has one entry a column of X, then one an output.

    Attributes
    ----------
    mixture_ : figmn.Mixture
        Over the columns of X, then the outputs.
    n_components_ : int
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : array of shape (D,)
        If the columns had names.

    Examples
    --------
    >>> import numpy as np
    >>> from figmn import MixtureRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (1000, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=1000)
    >>> model = MixtureRegressor(delta=0.2, beta=0.05).fit(X, y)
    >>> mean, std = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.1), bool(0.05 < std[0] < 0.2)
    (True, True)
    """

    n_outputs_: int = field(init=False)
    _kept = ("_single",)
    _calibration = None
    _held_out = cast(tuple[HeldOut, ...], ())  # rows that the calibration follows from

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in the order given, forgetting all that was learnt before.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : array-like of shape (N,) or (N, M)
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            rows = self._joint(X, y, reset=True)
            self.mixture_ = self._fit_mixture(rows, sample_weight, self.scale)
            self._calibration, self._held_out = None, ()
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn further rows. The sizes of the chunks make no difference.

        Parameters
        ----------
        X : array-like of shape (N, D)
        y : array-like of shape (N,) or (N, M)
            As many outputs as in the first call.
        sample_weight : array-like of shape (N,) or None
        """
        with self._unchanged_on_error():
            first = not self._is_fitted()
            rows = self._joint(X, y, reset=first)
            self._learn_more(rows, sample_weight, self.scale, first=first)
        return self

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False
    ) -> Array | tuple[Array, Array]:
        """Conditional mean of the outputs, and how far to trust it.

        Parameters
        ----------
        X : array-like of shape (N, D)
        return_std : bool
            Give the standard deviations of the predictive mixture too.
        return_cov : bool
            Give the covariances of the outputs under it too.

        Returns
        -------
        mean : array of shape (N,) or (N, M)
        std : array of shape (N,) or (N, M), if asked for
        cov : array of shape (N,), of variances, or (N, M, M), if asked for
        """
        if return_std and return_cov:
            raise ValueError(
                "Ask for return_std or return_cov, not both: cov holds the variances."
            )
        self._fitted()
        answers = list(self._conditionals(X, np.arange(self.n_outputs_)))
        mean = self._shaped(np.concatenate([answer.mean() for answer in answers]))
        if return_std:
            return mean, self._shaped(np.concatenate([answer.std() for answer in answers]))
        if return_cov:
            covariance = np.concatenate([answer.covariance() for answer in answers])
            return mean, covariance[:, 0, 0] if self._single else covariance
        return mean

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of the outputs: intervals of any probability.

        They are those of the predictive mixtures, calibrated: a model that starts from EM
        keeps some rows, and sees with them how often outcomes stay below what was
        predicted. In the first rows each is judged by a model that has not seen it.

        Parameters
        ----------
        X : array-like of shape (N, D)
        quantiles : sequence of float
            Each between 0 and 1.

        Returns
        -------
        array of shape (N, Q) or (N, M, Q)

        Examples
        --------
        >>> import numpy as np
        >>> from figmn import MixtureRegressor
        >>> x = np.linspace(0, 1, 50)
        >>> y = x + np.tile([-0.1, 0.1], 25)
        >>> low, high = MixtureRegressor().fit(x[:, None], y).predict_quantiles(
        ...     [[0.5]], [0.05, 0.95])[0]
        >>> bool(low < 0.5 < high)
        True
        """
        self._fitted()
        if np.ndim(quantiles) != 1 or len(quantiles) == 0:
            raise ValueError(
                f"quantiles must be a sequence such as [0.05, 0.95], not {quantiles}."
            )
        wanted = [check_number(q, "a quantile", 0.0, 1.0) for q in quantiles]
        if not all(0.0 < q < 1.0 for q in wanted):
            raise ValueError(f"quantiles must lie between 0 and 1, not {list(quantiles)}.")
        calibration = self._current_calibration()
        asked = [np.full(self.n_outputs_, q) for q in wanted]
        if calibration is not None:
            asked = [calibration.adjusted(q) for q in wanted]
        parts = [
            np.stack([answer.quantile(q) for q in asked], axis=-1)
            for answer in self._conditionals(X, np.arange(self.n_outputs_))
        ]
        return self._shaped(np.concatenate(parts))

    def _current_calibration(self) -> Calibration | None:
        """Made anew when it is first asked for after other rows were held out."""
        held_out = self.mixture_.core.held_out()
        if held_out is not self._held_out:
            self._held_out = held_out
            self._calibration = calibrated(held_out, self.n_outputs_) or self._calibration
        return self._calibration

    def _pack_learnt(self) -> dict[str, Any]:
        calibration = self._current_calibration()
        learnt = {} if calibration is None else calibration._asdict()
        plain = {name: storage.to_plain(values.tolist(), name) for name, values in learnt.items()}
        return {**super()._pack_learnt(), "calibration": plain}

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        super()._unpack_learnt(settings, arrays)
        plain = settings.get("calibration")
        if plain:
            levels, weights = (
                np.array(storage.from_plain(plain[name]), dtype=np.float64)
                for name in ("levels", "weights")
            )
            self._calibration = Calibration.checked(levels, weights, self.n_outputs_)

    def _mixture_settings(self) -> dict[str, Any]:
        # What predicts best is not the density with the sharpest spikes, nor the simplest.
        return {**super()._mixture_settings(), "shrinkage": _SHRINKAGE, "parsimony": 0.0}

    def _joint(self, X: Any, y: Any, *, reset: bool) -> Array:
        self._require_targets(y)
        rows = self._validated(X, reset=reset)
        targets: Array = check_array(
            y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_min_samples=0
        )
        check_consistent_length(rows, targets)
        if targets.ndim not in (1, 2):
            raise ValueError(f"y has {targets.ndim} axes: give one value, or one row, a row of X.")
        check_range(targets, "y")
        single = targets.ndim == 1
        n_outputs = 1 if single else targets.shape[1]
        if reset:
            self._single = single
            self.n_outputs_ = n_outputs
        elif n_outputs != self.n_outputs_:
            raise ValueError(
                f"y has {n_outputs} outputs, but this model has learnt {self.n_outputs_}: "
                "give as many, or start afresh with fit."
            )
        return np.hstack([rows, targets.reshape(len(rows), n_outputs)])

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._single else values
