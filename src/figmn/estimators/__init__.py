"""scikit-learn estimators: thin shells that validate, translate and delegate.

====================  =======================================================
``base``              what they share: input, scale, files
``density``           :class:`IncrementalGaussianMixture`
``classifier``        :class:`MixtureClassifier`
``experts``           ways for mixtures to tell classes apart: the interface, and the joint one
``class_conditional`` the expert with a mixture a class
``tracking_expert``   the one for streams that drift
``blending``          its compiled loops
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
