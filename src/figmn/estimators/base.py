"""What the estimators share: input, the scale of columns, and files."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from figmn import storage
from figmn._typing import Array, ArrayLike, Index
from figmn.engines.scale import moments_of, suggested_scale
from figmn.mixture import Conditional, Mixture
from figmn.settings import SETTINGS, SharedSettings, described, setting
from figmn.validation import as_rows, as_weights

_BLOCK = 512  # rows to predict at a time
_shared_settings = attrgetter(*SETTINGS)


class _Unchanged:
    """Context that restores attributes on an error; a generator would take longer."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self.attributes = attributes
        self.before = attributes.copy()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.attributes.clear()
            self.attributes.update(self.before)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, setting))
@dataclass(kw_only=True, eq=False, repr=False)
class MixtureEstimator(SharedSettings, BaseEstimator):  # type: ignore[misc]
    """Estimator around one :class:`figmn.Mixture`, its attribute ``mixture_``.

    An estimator is a dataclass: its parameters are fields, and its constructor does nothing
    but store them, as scikit-learn wants it.
    """

    scale: ArrayLike | None = setting(
        None,
        "array-like, float or None",
        """Standard deviations of the columns, such as sensor ranges. With None ``fit``
        takes them from its data, and ``partial_fit`` estimates them as the stream
        runs. Unlike the other parameters, it cannot be changed between calls of
        ``partial_fit``.""",
    )
    mixture_: Mixture = field(init=False)
    n_features_in_: int = field(init=False)

    _kept: ClassVar[tuple[str, ...]] = ("_sklearn_output_config",)
    """Private attributes that a file keeps."""

    _renamed: ClassVar[dict[str, str]] = {}
    """Names of such attributes in files of earlier versions, and what they are now."""

    _learnt: ClassVar[str] = "mixture_"
    """The attribute that is there once something was learnt."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", described(cls))

    def __copy__(self) -> Self:
        # What is learnt changes in place: a shallow copy would learn into the original.
        return copy.deepcopy(self)

    @property
    def n_components_(self) -> int:
        """Number of components so far."""
        return self._fitted().n_components

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, atomically; :func:`figmn.load` reads it."""
        self._require_fit()
        storage.save(self, path)

    # -- For the subclasses --------------------------------------------------

    def _mixture_settings(self) -> dict[str, Any]:
        return dict(zip(SETTINGS, _shared_settings(self), strict=True))

    def _new_mixture(self, n_features: int, **settings: Any) -> Mixture:
        return Mixture(n_features, **self._mixture_settings(), **settings)

    def _fit_mixture(self, rows: Array, sample_weight: ArrayLike | None, scale: Any) -> Mixture:
        """A new mixture that has learnt the rows at the scale they show as a whole."""
        weights = as_weights(sample_weight, len(rows))
        rows = as_rows(rows, rows.shape[1])
        mixture = self._new_mixture(rows.shape[1], scale=scale)
        if not mixture.settings.starts_from_batch:
            moments = moments_of(rows, weights)
            whole = suggested_scale(moments) if scale is None else scale
            mixture = self._new_mixture(rows.shape[1], scale=whole, center=moments[1])
        mixture.learn(rows, weights).consolidate()
        if mixture.n_components == 0:
            raise ValueError(
                "There is nothing to learn from: all rows have weight zero or no known entry."
            )
        return mixture

    def _learn_more(
        self, rows: Array, sample_weight: ArrayLike | None, scale: Any, *, first: bool
    ) -> None:
        """Learn rows, on top of what was learnt unless they are the first."""
        if first:
            self.mixture_ = self._new_mixture(rows.shape[1], scale=scale)
        mixture = self.mixture_
        rows = as_rows(rows, mixture.n_features)
        weights = as_weights(sample_weight, len(rows))
        if _shared_settings(self) != _shared_settings(mixture.settings):
            mixture.reconfigure(**self._mixture_settings())
        mixture.core.learn(rows, weights)

    def _conditionals(self, X: Any, targets: Index) -> Iterator[Conditional]:
        """Distributions of targets, numbered after the columns of X, for blocks of rows.

        Rows with different gaps have covariances of their own: in blocks, so
        that these need not all be held at once.
        """
        rows = self._validated(X)
        n_features = self.n_features_in_
        for start in range(0, len(rows), _BLOCK):
            yield self.mixture_.infer(
                rows[start : start + _BLOCK],
                known=np.arange(n_features),
                wanted=n_features + targets,
            )

    def _validated(self, X: Any, *, reset: bool = False) -> Array:
        """Rows as float64, with NaN allowed; the names and number of columns are checked."""
        if not reset and self._is_ready(X):
            return X  # type: ignore[no-any-return]
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        rows: Array = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_all_finite="allow-nan",
        )
        return rows

    def _is_ready(self, X: Any) -> bool:
        """Whether input needs no conversion, nor a message that scikit-learn would give.

        scikit-learn's own validation takes ten times as long as learning a row.
        """
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and X.shape[0] > 0
            and X.flags.c_contiguous
            and "feature_names_in_" not in self.__dict__
        )

    def _require_targets(self, y: Any) -> None:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )

    def _is_fitted(self) -> bool:
        return self._learnt in self.__dict__

    def _require_fit(self) -> None:
        if self._learnt not in self.__dict__:
            check_is_fitted(self, self._learnt)

    def _fitted(self) -> Mixture:
        self._require_fit()
        return self.mixture_

    def _unchanged_on_error(self) -> _Unchanged:
        """Put every attribute back if the body of the ``with`` statement raises."""
        return _Unchanged(self.__dict__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # -- Files ---------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Everything learnt, as plain values and arrays, for a file."""
        settings, arrays = self.mixture_.to_state()
        return {"mixture": settings, **self._pack_learnt()}, arrays

    def _pack_learnt(self) -> dict[str, Any]:
        """Parameters, and what was learnt beside the mixtures, as plain values."""
        parameters = self.get_params(deep=False)
        learnt = [name for name in vars(self) if self._is_kept(name)]
        return {
            "parameters": {name: storage.to_plain(parameters[name], name) for name in parameters},
            "learnt": {name: storage.to_plain(getattr(self, name), name) for name in learnt},
        }

    @classmethod
    def _is_kept(cls, name: str) -> bool:
        """Whether an attribute goes into a file, beside the parameters and the mixture."""
        public = name.endswith("_") and not name.startswith("_")
        public &= name not in ("mixture_", "experts_")
        return (public or name in cls._kept) and not hasattr(cls, name)

    @classmethod
    def from_state(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Self:
        """Inverse of :meth:`to_state`; raises ValueError on anything inconsistent."""
        parameters = {k: storage.from_plain(v) for k, v in settings["parameters"].items()}
        estimator = cls(**parameters)
        for name, value in settings["learnt"].items():
            name = cls._renamed.get(name, name)
            if not cls._is_kept(name):
                raise ValueError(f"{name!r} is not a learnt attribute")
            setattr(estimator, name, storage.from_plain(value))
        estimator._unpack_learnt(settings, arrays)
        if estimator.n_components_ > 0:
            estimator._try_out()
        return estimator

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take over the mixture, after the other attributes."""
        self.mixture_ = Mixture.from_state(settings["mixture"], arrays)
        if not 1 <= self.n_features_in_ <= self.mixture_.n_features:
            raise ValueError("the number of columns does not match the mixture")

    def _try_out(self) -> None:
        """Answer a question, so that attributes which do not fit together show now."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a row without column names
            self.predict(np.full((1, self.n_features_in_), np.nan))
