"""What the estimators share: input, the scale of columns, and files."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from figmn import storage
from figmn._typing import Array, ArrayLike, Index
from figmn.components.scale import moments_of, suggested_scale
from figmn.mixture import Conditional, Mixture
from figmn.mixture.choices import Choices
from figmn.mixture.validation import as_rows, as_weights

_PARAMETERS = """delta : float or "auto", default="auto"
        Width of a new component, in standard deviations of the columns.
    beta : float or "auto", default="auto"
        A row is novel, and starts a component, if its tail probability under
        every component is below this. With both left to themselves the model
        starts from EM on its first 2048 rows, which says how many components
        there are, and needs no tuning; if only one is given, the other is 1
        (``delta``) or 0.1 (``beta``).
    scale : array-like, float or None, default=None
        Standard deviations of the columns, such as sensor ranges. With None
        ``fit`` takes them from its data, and ``partial_fit`` estimates them
        as the stream runs. Unlike the other parameters, it cannot be changed
        between calls of ``partial_fit``.
    max_components : int or None, default=None
        Hard bound. At the bound a novel row updates the existing components.
    prune_age, prune_mass : int and float, default=0
        Components that have seen more than ``prune_age`` updates and hold a
        mass below ``prune_mass`` are removed.
    half_life : float or None, default=None
        For streams that drift: after so many rows a row counts half. With None
        nothing is forgotten."""


_BLOCK = 512  # rows to predict at a time


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


class MixtureEstimator(BaseEstimator):  # type: ignore[misc]
    """Estimator around one :class:`figmn.Mixture`, its attribute ``mixture_``."""

    mixture_: Mixture
    n_features_in_: int

    _kept: ClassVar[tuple[str, ...]] = ("_sklearn_output_config",)
    """Private attributes that a file keeps."""

    _learnt: ClassVar[str] = "mixture_"
    """The attribute that is there once something was learnt."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS)

    def __init__(
        self,
        *,
        delta: float | str = "auto",
        beta: float | str = "auto",
        scale: ArrayLike | None = None,
        max_components: int | None = None,
        prune_age: int = 0,
        prune_mass: float = 0.0,
        half_life: float | None = None,
    ) -> None:
        self.delta = delta
        self.beta = beta
        self.scale = scale
        self.max_components = max_components
        self.prune_age = prune_age
        self.prune_mass = prune_mass
        self.half_life = half_life

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
        names = ("delta", "beta", "max_components", "prune_age", "prune_mass", "half_life")
        return {name: getattr(self, name) for name in names}

    def _new_mixture(self, n_features: int, **settings: Any) -> Mixture:
        return Mixture(n_features, **self._mixture_settings(), **settings)

    def _fit_mixture(self, rows: Array, sample_weight: ArrayLike | None, scale: Any) -> Mixture:
        """A new mixture that has learnt the rows at the scale they show as a whole."""
        weights = as_weights(sample_weight, len(rows))
        rows = as_rows(rows, rows.shape[1])
        mixture = self._new_mixture(rows.shape[1], scale=scale)
        if not mixture.choices.start_from_batch:
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
        if not self._is_configured(mixture.choices):
            mixture.reconfigure(**self._mixture_settings())
        mixture._learn(rows, weights)

    def _is_configured(self, choices: Choices) -> bool:
        """Whether a mixture has the parameters of the estimator, which may be set anew."""
        return (
            choices.delta == self.delta
            and choices.beta == self.beta
            and choices.max_components == self.max_components
            and choices.prune_age == self.prune_age
            and choices.prune_mass == self.prune_mass
            and choices.half_life == self.half_life
        )

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

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        settings, arrays = self.mixture_._pack()
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
        public &= name not in ("mixture_", "views_")
        return (public or name in cls._kept) and not hasattr(cls, name)

    @classmethod
    def _unpack(cls, settings: dict[str, Any], arrays: dict[str, Any]) -> Self:
        parameters = {k: storage.from_plain(v) for k, v in settings["parameters"].items()}
        estimator = cls(**parameters)
        for name, value in settings["learnt"].items():
            if not cls._is_kept(name):
                raise ValueError(f"{name!r} is not a learnt attribute")
            setattr(estimator, name, storage.from_plain(value))
        estimator._unpack_learnt(settings, arrays)
        if estimator.n_components_ > 0:
            estimator._try_out()
        return estimator

    def _unpack_learnt(self, settings: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Take over the mixture, after the other attributes."""
        self.mixture_ = Mixture._unpack(settings["mixture"], arrays)
        if not 1 <= self.n_features_in_ <= self.mixture_.n_features:
            raise ValueError("the number of columns does not match the mixture")

    def _try_out(self) -> None:
        """Answer a question, so that attributes which do not fit together show now."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a row without column names
            self.predict(np.full((1, self.n_features_in_), np.nan))
