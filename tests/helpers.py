"""Data and truths that several tests share."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from figmn import Mixture
from figmn.reference import IGMN


def clusters(n_rows, n_features, n_clusters=4, spread=15.0, seed=0):
    """Rows of well-separated Gaussian clusters with correlated columns."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_clusters, n_features)) * spread
    # At least `spread` apart along the first column, whatever the draw.
    centers[:, 0] = spread * np.arange(n_clusters)
    shapes = rng.normal(size=(n_clusters, n_features, n_features)) / np.sqrt(n_features)
    shapes += np.eye(n_features)
    which = rng.integers(n_clusters, size=n_rows)
    noise = rng.normal(size=(n_rows, n_features))
    return centers[which] + np.einsum("nij,nj->ni", shapes[which], noise)


def random_covariances(n_components, n_features, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_components, n_features, n_features))
    return roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(n_features)


def random_mixture(n_components, n_features, seed=0, **settings):
    rng = np.random.default_rng(seed)
    return Mixture.from_parameters(
        rng.normal(size=(n_components, n_features)) * 3.0,
        random_covariances(n_components, n_features, seed),
        rng.uniform(0.2, 1.0, n_components),
        mass=100.0,
        **settings,
    )


def reference_like(mixture, scale, **settings):
    """The reference implementation in the state of a mixture."""
    reference = IGMN(scale, **settings)
    reference.means = mixture.means
    reference.covariances = mixture.covariances
    reference.masses = mixture.masses
    reference.ages = mixture.ages
    return reference


def direct_log_density(mixture, rows):
    """Log density from the covariances, by scipy; NaN is integrated out by slicing."""
    answers = []
    for row in rows:
        known = np.flatnonzero(~np.isnan(row))
        parts = [
            np.log(weight)
            + (
                multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(
                    row[known]
                )
                if len(known)
                else 0.0
            )
            for weight, mean, covariance in zip(
                mixture.weights, mixture.means, mixture.covariances, strict=True
            )
        ]
        answers.append(np.logaddexp.reduce(parts))
    return np.array(answers)


def assert_sound(mixture):
    """Everything finite, every covariance symmetric and positive definite."""
    for values in (
        mixture.means,
        mixture.covariances,
        mixture.precisions,
        mixture.log_determinants,
        mixture.masses,
        mixture.weights,
    ):
        assert np.all(np.isfinite(values))
    assert np.all(mixture.masses > 0.0)
    for covariance in mixture.covariances:
        assert np.array_equal(covariance, covariance.T)
        diagonal = np.sqrt(np.diag(covariance))
        assert np.all(diagonal > 0.0)
        # On the scale of correlations, where units play no part.
        correlation = covariance / diagonal / diagonal[:, np.newaxis]
        np.linalg.cholesky(correlation)


def assert_equal_models(mixture, reference, rtol=1e-9):
    """A mixture is in the state of the reference implementation."""
    assert mixture.n_components == len(reference.masses)
    assert_allclose(mixture.masses, reference.masses, rtol=rtol)
    assert_array_scale(mixture.means, reference.means, rtol)
    precisions = np.linalg.inv(reference.covariances)
    for ours, theirs in zip(mixture.precisions, precisions, strict=True):
        assert_array_scale(ours, theirs, rtol)
    for ours, theirs in zip(mixture.covariances, reference.covariances, strict=True):
        assert_array_scale(ours, theirs, rtol)
    log_dets = np.linalg.slogdet(reference.covariances)[1]
    assert_allclose(mixture.log_determinants, log_dets, rtol=rtol, atol=rtol)
    assert mixture.ages.tolist() == reference.ages.tolist()


def assert_array_scale(ours, theirs, rtol):
    """Equal relative to the largest entry: small entries are differences of large ones."""
    assert_allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


def assert_equal_mixtures(ours, theirs, rtol=1e-9):
    """Two mixtures are in the same state, to rounding."""
    assert ours.n_learnt == theirs.n_learnt
    assert ours.ages.tolist() == theirs.ages.tolist()
    for name in ("masses", "log_determinants", "means", "covariances", "precisions"):
        truth = getattr(theirs, name)
        atol = rtol * np.abs(truth).max()
        assert_allclose(getattr(ours, name), truth, rtol=rtol, atol=atol, err_msg=name)
