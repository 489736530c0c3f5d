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

from figmn.estimators import (
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from figmn.mixture import Conditional, Mixture
from figmn.storage import ModelFileError, load

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
