"""Where the paper is wrong as printed: each formula fails, and ours agrees with the truth.

The numbers are those of ``docs/errata.md``.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, multivariate_normal

from figmn import Mixture
from figmn.reference import IGMN
from helpers import random_covariances, random_mixture, reference_like


def printed_coefficient(w):
    return w * (1.0 + w * (w - 3.0))


def printed_precision(precision, e, w):
    """Equation figmn-sherman3 and algorithm "update", to the letter."""
    y = precision @ e
    factor = w * (1 - 3 * w + w**2) / ((w - 1) ** 2 * (w**2 - 2 * w - 1))
    return precision / (1 - w) + factor * np.outer(y, y)


def printed_covariance(covariance, e, w):
    """Equations igmn-enew and igmn-C: with e* = x - new mean = (1 - w) e."""
    e_star = (1 - w) * e
    return (1 - w) * covariance + w * np.outer(e_star, e_star) - np.outer(w * e, w * e)


def test_01_printed_precision_update_is_not_the_inverse_of_the_printed_covariance_update():
    rng = np.random.default_rng(0)
    n_features, steps = 3, 12
    rows = rng.normal(size=(steps + 20, n_features))
    start = Mixture(n_features, scale=1.0, beta=0.0, update="paper").learn(rows[:20])
    covariance, precision = start.covariances[0], start.precisions[0]
    mass, mean = 20.0, start.means[0]

    w = 1.0 / (mass + 1.0)
    e = rows[20] - mean
    truth = np.linalg.inv(printed_covariance(covariance, e, w))
    error = np.linalg.norm(printed_precision(precision, e, w) - truth) / np.linalg.norm(truth)
    assert error > 1e-3
    ours = start.copy().learn_one(rows[20]).precisions[0]
    assert_allclose(ours, truth, rtol=1e-9, atol=1e-12)

    # From a fresh component, where w is large, it is soon not even definite.
    indefinite = 0
    for trial in range(50):
        trial_rng = np.random.default_rng(trial)
        mean, mass, precision = trial_rng.normal(size=n_features), 1.0, np.eye(n_features)
        for _ in range(steps):
            x = trial_rng.normal(size=n_features)
            mass += 1.0
            e = x - mean
            precision = printed_precision(precision, e, 1.0 / mass)
            mean = mean + e / mass
            if np.linalg.eigvalsh(precision).min() <= 0.0:
                indefinite += 1
                break
    assert indefinite > 25


def test_02_printed_covariance_update_goes_indefinite_at_a_second_point():
    assert printed_coefficient(0.381) > 0.0 > printed_coefficient(0.383)
    for distance, definite in ((3.9, True), (4.1, False)):
        x = np.array([np.sqrt(distance), 0.0])
        reference = IGMN([1.0, 1.0], beta=0.0, update="paper").learn([[0.0, 0.0], x])
        assert (np.linalg.eigvalsh(reference.covariances[0]).min() > 0.0) == definite
        for update in ("exact", "paper"):
            ours = Mixture(2, scale=1.0, beta=0.0, update=update).learn([[0.0, 0.0], x])
            assert np.linalg.eigvalsh(ours.covariances[0]).min() > 0.0
    # The exact rule is the moments of the points, and the initial share.
    rows = np.random.default_rng(0).normal(size=(10, 2))
    exact = Mixture(2, scale=1.0, beta=0.0).learn(rows)
    assert_allclose(exact.covariances[0], np.cov(rows.T, bias=True) + np.eye(2) / 10, rtol=1e-12)
    printed = IGMN([1.0, 1.0], beta=0.0, update="paper").learn(rows)
    assert not np.allclose(printed.covariances[0], exact.covariances[0], rtol=0.05)


def test_03_printed_determinant_belongs_to_the_printed_covariance_not_the_printed_precision():
    covariance = random_covariances(1, 4)[0]
    precision = np.linalg.inv(covariance)
    e, w = np.random.default_rng(1).normal(size=4), 0.1
    factor = 1 + printed_coefficient(w) / (1 - w) * (e @ precision @ e)
    printed = (1 - w) ** 4 * np.linalg.det(covariance) * factor
    assert_allclose(printed, np.linalg.det(printed_covariance(covariance, e, w)), rtol=1e-10)
    implied = 1.0 / np.linalg.det(printed_precision(precision, e, w))
    assert abs(implied / printed - 1.0) > 0.005


def test_04_raw_determinants_underflow():
    n_features = 400
    assert np.prod(np.full(n_features, 0.1**2)) == 0.0
    mixture = Mixture(n_features, scale=0.1, delta=1.0, beta=0.1).learn(np.zeros((1, n_features)))
    assert_allclose(mixture.log_determinants, n_features * np.log(0.01), rtol=1e-12)
    assert np.isfinite(mixture.log_density(np.zeros((1, n_features)))[0])


def test_05_printed_loop_never_creates_a_first_component():
    def printed_decision(distances, threshold):
        return "update" if len(distances) == 0 or np.any(distances < threshold) else "create"

    assert printed_decision(np.empty(0), 1.0) == "update"  # of no component at all
    assert Mixture(1, scale=1.0, delta=1.0, beta=0.1).learn([[0.0]]).n_components == 1


def test_06_initial_precision_is_the_inverse_variance():
    sigma = np.array([0.5, 4.0])
    mixture = Mixture(2, scale=sigma, delta=1.0).learn([[0.0, 0.0]])
    assert_allclose(mixture.precisions[0], np.diag(sigma**-2), rtol=1e-12)
    printed = np.diag(1.0 / sigma)
    assert not np.allclose(printed @ mixture.covariances[0], np.eye(2))


def test_07_the_printed_beta_is_no_threshold_unless_taken_as_a_tail():
    beta = 5e-324  # the smallest positive number, printed as 4.9E-324
    assert np.isinf(chi2.ppf(1.0 - beta, 3))
    threshold = chi2.isf(beta, 3)
    assert 1400.0 < threshold < 1600.0
    mixture = Mixture(3, scale=1.0, beta=beta).learn([[0.0, 0.0, 0.0]])
    assert mixture.copy().learn_one([np.sqrt(threshold) * 0.99, 0.0, 0.0]).n_components == 1
    assert mixture.copy().learn_one([np.sqrt(threshold) * 1.01, 0.0, 0.0]).n_components == 2
    # What was run, 1 - beta clipped to 0.999998, is another threshold by far: that of 2e-6.
    clipped = chi2.ppf(min(1.0 - beta, 0.999998), 3)
    assert_allclose(clipped, chi2.isf(2e-6, 3), rtol=1e-9)
    assert clipped < 0.03 * threshold
    as_run = Mixture(3, scale=1.0, beta=2e-6).learn([[0.0, 0.0, 0.0]])
    assert as_run.copy().learn_one([np.sqrt(clipped) * 0.99, 0.0, 0.0]).n_components == 1
    assert as_run.copy().learn_one([np.sqrt(clipped) * 1.01, 0.0, 0.0]).n_components == 2


def test_08_printed_reconstruction_matrix_is_transposed():
    mixture = random_mixture(1, 5, seed=1)
    precision, mean = mixture.precisions[0], mixture.means[0]
    known, wanted = [0, 1, 2], [3, 4]
    x = np.array([0.5, -1.0, 2.0])
    printed = precision[np.ix_(known, wanted)] @ np.linalg.inv(precision[np.ix_(wanted, wanted)])
    assert printed.shape == (3, 2)
    with pytest.raises(ValueError, match="mismatch"):
        printed @ (x - mean[known])
    answer = mixture.infer([x], known, wanted).mean()[0]
    assert_allclose(answer, mean[wanted] - printed.T @ (x - mean[known]), rtol=1e-9)
    direct, _ = reference_like(mixture, np.ones(5)).predict(x, known, wanted)
    assert_allclose(answer, direct, rtol=1e-9)
    # With as many wanted as known it computes, but something else.
    known, wanted = [0, 1], [2, 3]
    four = mixture.marginalize([0, 1, 2, 3])
    precision, mean = four.precisions[0], four.means[0]
    printed = precision[np.ix_(known, wanted)] @ np.linalg.inv(precision[np.ix_(wanted, wanted)])
    direct, _ = reference_like(four, np.ones(4)).predict(x[:2], known, wanted)
    assert not np.allclose(mean[wanted] - printed @ (x[:2] - mean[known]), direct, rtol=1e-3)


def test_09_the_block_of_the_precision_is_a_conditional_not_the_marginal():
    mixture = random_mixture(2, 4, seed=2)
    known = [0, 1]
    x = np.array([0.3, 0.8])
    partial = np.array([[0.3, 0.8, np.nan, np.nan]])
    covariances, means = mixture.covariances, mixture.means
    marginal = [
        weight * multivariate_normal(mean[known], S[np.ix_(known, known)]).pdf(x)
        for weight, mean, S in zip(mixture.weights, means, covariances, strict=True)
    ]
    assert_allclose(mixture.log_density(partial), np.log(np.sum(marginal)), rtol=1e-10)
    assert_allclose(mixture.posteriors(partial)[0], marginal / np.sum(marginal), rtol=1e-9)
    block = [
        weight
        * np.exp(-0.5 * (x - mean[known]) @ L[np.ix_(known, known)] @ (x - mean[known]))
        / np.sqrt(np.linalg.det(2 * np.pi * S))
        for weight, mean, S, L in zip(
            mixture.weights, means, covariances, mixture.precisions, strict=True
        )
    ]
    assert not np.allclose(block / np.sum(block), marginal / np.sum(marginal), rtol=0.1)


def test_10_every_component_is_updated_by_its_posterior():
    mixture = random_mixture(2, 2, seed=3, beta=0.0)
    x = mixture.means.mean(axis=0)
    posteriors = mixture.posteriors([x])[0]
    assert posteriors.min() > 1e-4
    reference = reference_like(mixture, np.ones(2), beta=0.0).learn([x])
    masses, means = mixture.masses.copy(), mixture.means.copy()
    mixture.learn_one(x)
    assert_allclose(mixture.masses - masses, posteriors, rtol=1e-9)
    assert_allclose(mixture.masses, reference.masses, rtol=1e-9)
    assert_allclose(mixture.means, reference.means, rtol=1e-9)
    # The published program: one component takes the whole row, and the others nothing.
    one, other = np.argmax(posteriors), np.argmin(posteriors)
    assert not np.allclose(np.eye(2)[one], reference.masses - masses, atol=1e-3)
    assert not np.allclose(means[other], reference.means[other], rtol=1e-6)
