"""Gaussian mixtures that learn from streams, in one pass.

=================================  ==========================================
:class:`Mixture`                   the model itself, on NumPy arrays
:class:`IncrementalGaussianMixture`  density estimation and clustering
:class:`MixtureClassifier`         classification
:class:`MixtureRegressor`          regression with error bars
:class:`MixtureImputer`            filling in what is missing
:class:`MixtureOutlierDetector`    outlier detection
:func:`load`                       read a saved model
=================================  ==========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from figmn.mixture import Conditional, Mixture
from figmn.storage import ModelFileError, load

if TYPE_CHECKING:
    from figmn.estimators import (
        IncrementalGaussianMixture,
        MixtureClassifier,
        MixtureImputer,
        MixtureOutlierDetector,
        MixtureRegressor,
    )

__version__ = "0.1.0"

__all__ = [
    "Conditional",
    "IncrementalGaussianMixture",
    "Mixture",
    "MixtureClassifier",
    "MixtureImputer",
    "MixtureOutlierDetector",
    "MixtureRegressor",
    "ModelFileError",
    "load",
]


def __getattr__(name: str) -> Any:
    """Import the estimators when first asked for: scikit-learn takes a second."""
    if name in __all__:
        from figmn import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
