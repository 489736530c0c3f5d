"""scikit-learn estimators: thin shells that validate, translate and delegate.

====================  =======================================================
``base``              what they share: input, scale, files
``density``           :class:`IncrementalGaussianMixture`
``classifier``        :class:`MixtureClassifier`
``views``             ways for mixtures to tell classes apart
``tracking``          the one for streams that drift
``regressor``         :class:`MixtureRegressor`
``calibration``       its intervals, as wide as they should be
``imputer``           :class:`MixtureImputer`
``outliers``          :class:`MixtureOutlierDetector`
====================  =======================================================
"""

from figmn.estimators.classifier import MixtureClassifier
from figmn.estimators.density import IncrementalGaussianMixture
from figmn.estimators.imputer import MixtureImputer
from figmn.estimators.outliers import MixtureOutlierDetector
from figmn.estimators.regressor import MixtureRegressor

__all__ = [
    "IncrementalGaussianMixture",
    "MixtureClassifier",
    "MixtureImputer",
    "MixtureOutlierDetector",
    "MixtureRegressor",
]
