"""scikit-learn's own checks of every estimator."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from figmn import (
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)


@parametrize_with_checks(
    [
        IncrementalGaussianMixture(),
        MixtureClassifier(),
        MixtureRegressor(),
        MixtureImputer(),
        MixtureOutlierDetector(),
    ],
)
def test_follows_conventions(estimator, check):
    check(estimator)
