"""Densities, conditionals, marginals, samples and merges, against direct formulas."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, kstest, multivariate_normal

from figmn import Mixture
from helpers import (
    assert_sound,
    direct_log_density,
    random_covariances,
    random_mixture,
    reference_like,
)

# Everything here holds however the components are held.
pytestmark = pytest.mark.usefixtures("held")


def splits(n_features):
    """Every pair of disjoint known and wanted variables, with some wanted."""
    for assignment in np.ndindex(*[3] * n_features):
        known = [i for i, role in enumerate(assignment) if role == 0]
        wanted = [i for i, role in enumerate(assignment) if role == 1]
        if wanted:
            yield known, wanted


def test_every_split_of_six_variables_equals_the_direct_formulas():
    mixture = random_mixture(3, 6, seed=0)
    row = np.random.default_rng(1).normal(size=6) * 2.0
    reference = reference_like(mixture, np.ones(6))
    count = 0
    for known, wanted in splits(6):
        answer = mixture.infer(row[np.newaxis, known], known, wanted)
        if known:
            mean, covariance = reference.predict(row[known], known, wanted)
            posteriors = reference._marginal(known).posteriors(row[known])
            partial = np.full(6, np.nan)
            partial[known] = row[known]
            likelihood = mixture.log_density([partial])
            assert_allclose(likelihood, direct_log_density(mixture, [partial]), rtol=1e-10)
        else:
            posteriors = mixture.weights
            mean = posteriors @ mixture.means[:, wanted]
            apart = mixture.means[:, wanted] - mean
            parts = mixture.covariances[:, wanted][:, :, wanted]
            covariance = np.tensordot(posteriors, parts, 1) + (apart.T * posteriors) @ apart
        assert_allclose(answer.weights[0], posteriors, rtol=1e-9, atol=1e-13)
        assert_allclose(answer.mean()[0], mean, rtol=1e-9, atol=1e-11)
        assert_allclose(answer.covariance()[0], covariance, rtol=1e-9, atol=1e-11)
        assert_allclose(answer.std()[0], np.sqrt(np.diag(covariance)), rtol=1e-9)
        count += 1
    assert count == 3**6 - 2**6


def test_component_conditionals_are_schur_complements():
    mixture = random_mixture(2, 5, seed=3)
    known, wanted = [4, 1], [2, 0]
    row = np.array([0.3, -0.7])
    answer = mixture.infer([row], known, wanted)
    for k, (mean, S) in enumerate(zip(mixture.means, mixture.covariances, strict=True)):
        gain = S[np.ix_(wanted, known)] @ np.linalg.inv(S[np.ix_(known, known)])
        assert_allclose(answer.means[0, k], mean[wanted] + gain @ (row - mean[known]), rtol=1e-9)
        schur = S[np.ix_(wanted, wanted)] - gain @ S[np.ix_(known, wanted)]
        assert_allclose(answer.covariances[k], schur, rtol=1e-9, atol=1e-12)


def test_log_density_is_that_of_scipy_with_and_without_gaps():
    mixture = random_mixture(4, 5, seed=2)
    rows = np.random.default_rng(0).normal(size=(40, 5)) * 4.0
    assert_allclose(mixture.log_density(rows), direct_log_density(mixture, rows), rtol=1e-10)
    rows[np.random.default_rng(1).random(rows.shape) < 0.4] = np.nan
    rows[0] = np.nan
    assert_allclose(
        mixture.log_density(rows), direct_log_density(mixture, rows), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("n_features", [15, 16, 40])
@pytest.mark.parametrize("n_rows", [31, 32, 1100])
def test_matrix_products_and_the_loop_agree(n_features, n_rows):
    mixture = random_mixture(3, n_features, seed=2)
    rows = np.random.default_rng(0).normal(size=(n_rows, n_features)) * 3.0
    rows[5, 3] = np.nan
    together = mixture.log_density(rows)
    one_by_one = np.concatenate([mixture.log_density(row[np.newaxis]) for row in rows])
    assert_allclose(together, one_by_one, rtol=1e-10)
    sample = slice(0, 20)
    assert_allclose(together[sample], direct_log_density(mixture, rows[sample]), rtol=1e-9)
    far = np.full((40, n_features), 1e150)
    assert np.all(np.isfinite(mixture.log_density(far)))


@pytest.mark.parametrize("n_rows", [31, 32, 300, 600])
@pytest.mark.parametrize(("n_known", "n_wanted"), [(1, 1), (3, 2), (13, 1), (26, 3)])
def test_means_given_leading_variables_are_those_of_all_components(n_rows, n_known, n_wanted):
    """Components that cannot matter to a row are left out, and others must not be."""
    mixture = random_mixture(40, n_known + n_wanted, seed=n_known)
    rows = np.random.default_rng(0).normal(size=(n_rows, n_known)) * 3.0
    rows[3], rows[7] = 100.0, 1e4  # far from all components
    ours, log_density = mixture.core.mean_given_first(rows)
    means, covariances = mixture.means, mixture.covariances
    log_joint, expected = [], []
    for k in range(40):
        inner, across = np.split(covariances[k][:, :n_known], [n_known])
        own = multivariate_normal(means[k, :n_known], inner)
        log_joint.append(np.log(mixture.weights[k]) + own.logpdf(rows))
        slopes = np.linalg.solve(inner, across.T)
        expected.append(means[k, n_known:] + (rows - means[k, :n_known]) @ slopes)
    total = np.logaddexp.reduce(log_joint)
    truth = np.einsum("kn,knm->nm", np.exp(log_joint - total), expected)
    assert_allclose(log_density, total, rtol=1e-9)
    units = np.abs(truth).max(axis=1, keepdims=True)
    assert_allclose(ours / units, truth / units, rtol=1e-8, atol=1e-8)
    alone = np.vstack([mixture.core.mean_given_first(row[np.newaxis])[0] for row in rows[:20]])
    assert_allclose(ours[:20] / units[:20], alone / units[:20], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 40])
def test_tails_are_those_of_chi_square(n_rows):
    mixture = random_mixture(5, 4, seed=3)
    rows = np.random.default_rng(0).normal(size=(n_rows, 4)) * 6.0
    rows[0, 2] = np.nan
    known = np.sum(~np.isnan(rows), axis=1)[:, np.newaxis]
    density = direct_log_density(mixture, rows)[:, np.newaxis]
    distances, log_joint = mixture.core.components().evaluated(rows)
    excess = np.maximum(2.0 * (log_joint + 0.5 * distances - density), 0.0)
    tails = np.logaddexp.reduce(np.log(mixture.weights) + chi2.logsf(excess, known), axis=1)
    assert_allclose(mixture.log_tail(rows), np.minimum(tails, 0.0), rtol=1e-10, atol=1e-12)


def test_posteriors_and_assignments_belong_together():
    mixture = random_mixture(4, 3, seed=2)
    rows = np.random.default_rng(0).normal(size=(200, 3)) * 4.0
    posteriors = mixture.posteriors(rows)
    assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-12)
    joint = np.array(
        [
            w * multivariate_normal(m, c).pdf(rows)
            for w, m, c in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
        ]
    ).T
    assert_allclose(posteriors, joint / joint.sum(axis=1, keepdims=True), rtol=1e-8, atol=1e-13)
    assert np.array_equal(mixture.assign(rows), posteriors.argmax(axis=1))


def test_distances_of_a_component_follow_chi_square():
    mixture = random_mixture(1, 6, seed=5)
    rows, _ = mixture.sample(2000, random_state=0)
    distances = mixture.squared_distances(rows)[:, 0]
    assert kstest(distances, chi2(6).cdf).pvalue > 0.01
    rows[:, [1, 4]] = np.nan
    assert kstest(mixture.squared_distances(rows)[:, 0], chi2(4).cdf).pvalue > 0.01


@pytest.mark.parametrize("keep", [[0], [3, 1], [2, 0, 3], [0, 1, 2, 3]])
def test_marginals_are_slices_of_the_covariances(keep):
    mixture = random_mixture(3, 4, seed=6)
    marginal = mixture.marginalize(keep)
    assert_allclose(marginal.means, mixture.means[:, keep])
    assert_allclose(marginal.covariances, mixture.covariances[:, keep][:, :, keep], rtol=1e-9)
    assert_allclose(marginal.weights, mixture.weights)
    dets = np.linalg.slogdet(marginal.covariances)[1]
    assert_allclose(marginal.log_determinants, dets, rtol=1e-9, atol=1e-10)


def test_conditions_and_marginals_compose():
    mixture = random_mixture(3, 5, seed=7)
    x = {0: 0.4, 2: -1.1, 4: 0.9}
    at_once = mixture.condition(list(x.values()), list(x), [1, 3])
    # 1, 3, 4 remain after the first step, so 4 is then number 2.
    in_steps = mixture.condition([x[0], x[2]], [0, 2], [1, 3, 4]).condition([x[4]], [2], [0, 1])
    assert_allclose(at_once.means, in_steps.means, rtol=1e-9)
    assert_allclose(at_once.covariances, in_steps.covariances, rtol=1e-9)
    assert_allclose(at_once.weights, in_steps.weights, rtol=1e-9)
    bayes = mixture.log_density([[0.4, 0.1, -1.1, 0.2, 0.9]]) - mixture.marginalize(
        [0, 2, 4]
    ).log_density([[0.4, -1.1, 0.9]])
    assert_allclose(at_once.log_density([[0.1, 0.2]]), bayes, rtol=1e-9)


def test_conditioning_agrees_with_inference_and_gaps_count_as_unknown():
    mixture = random_mixture(3, 4, seed=8)
    answer = mixture.infer([[0.5, np.nan], [0.5, 1.0]], known=[1, 3], wanted=[0, 2])
    for row, given, known in ((0, [0.5], [1]), (1, [0.5, 1.0], [1, 3])):
        conditional = mixture.condition(given, known, [0, 2])
        mean = conditional.weights @ conditional.means
        assert_allclose(answer.mean()[row], mean, rtol=1e-9)
        assert_allclose(answer.covariances[row], conditional.covariances, rtol=1e-9)


def test_filling_is_the_conditional_mean():
    mixture = random_mixture(3, 4, seed=9)
    rows = np.random.default_rng(0).normal(size=(30, 4))
    for missing in (m for size in (1, 2, 3) for m in combinations(range(4), size)):
        gaps = rows.copy()
        gaps[:, missing] = np.nan
        known = np.setdiff1d(range(4), missing)
        filled = mixture.fill(gaps)
        mean = mixture.infer(rows[:, known], known, missing).mean()
        assert_allclose(filled[:, missing], mean, rtol=1e-8, atol=1e-10)
        assert np.array_equal(filled[:, known], rows[:, known])
    assert_allclose(mixture.fill([[np.nan] * 4])[0], mixture.weights @ mixture.means)


def test_samples_have_the_moments_of_the_mixture():
    mixture = random_mixture(3, 3, seed=10)
    rows, labels = mixture.sample(200_000, random_state=0)
    mean = mixture.weights @ mixture.means
    apart = mixture.means - mean
    covariance = np.tensordot(mixture.weights, mixture.covariances, 1)
    covariance += (apart.T * mixture.weights) @ apart
    assert_allclose(rows.mean(axis=0), mean, atol=0.05)
    assert_allclose(np.cov(rows.T), covariance, atol=0.02 * np.abs(covariance).max())
    assert_allclose(np.bincount(labels) / len(labels), mixture.weights, atol=0.01)
    again, _ = mixture.sample(200_000, random_state=0)
    assert np.array_equal(rows, again)


@pytest.mark.parametrize("n_features", [1, 2, 7])
def test_merging_keeps_the_moments(n_features):
    mixture = random_mixture(3, n_features, seed=11)
    w = mixture.masses[[0, 2]] / mixture.masses[[0, 2]].sum()
    mean = w @ mixture.means[[0, 2]]
    apart = mixture.means[[0, 2]] - mean
    covariance = np.tensordot(w, mixture.covariances[[0, 2]], 1) + (apart.T * w) @ apart
    mass = mixture.masses[[0, 2]].sum()
    other = mixture.means[1]
    mixture.merge(2, 0)
    assert mixture.n_components == 2
    merged = 1  # it took the place of 2, and 0 before it is gone
    assert_allclose(mixture.means[merged], mean, rtol=1e-10)
    assert_allclose(mixture.covariances[merged], covariance, rtol=1e-9, atol=1e-12)
    assert_allclose(mixture.masses[merged], mass)
    assert_allclose(mixture.means[0], other)
    log_det = np.linalg.slogdet(covariance)[1]
    assert_allclose(mixture.log_determinants[merged], log_det, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("condition", [1e2, 1e8, 1e12])
def test_merging_works_in_any_units(condition):
    rng = np.random.default_rng(0)
    units = 10.0 ** np.array([-90.0, 0.0, 95.0, -20.0, 40.0])
    turns = np.linalg.qr(rng.normal(size=(2, 5, 5)))[0]
    matrices = turns * np.geomspace(1.0, 1.0 / condition, 5) @ turns.transpose(0, 2, 1)
    matrices = (matrices + matrices.transpose(0, 2, 1)) / 2.0
    means = rng.normal(size=(2, 5))
    mixture = Mixture.from_parameters(
        means * units, matrices * units * units[:, np.newaxis], [0.3, 0.7]
    ).merge(0, 1)
    shift = means[1] - means[0]
    expected = 0.3 * matrices[0] + 0.7 * matrices[1] + 0.21 * np.outer(shift, shift)
    assert_allclose(mixture.covariances[0] / units / units[:, np.newaxis], expected, rtol=1e-12)
    assert_sound(mixture)


@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
@pytest.mark.parametrize("ratio", [1.0, 1e6, 1e12, 1e30])
def test_merging_keeps_the_moments_of_a_light_component(pair, ratio):
    shift = np.sqrt(ratio)  # so that both matter to the variance
    mixture = Mixture.from_parameters(
        [[shift], [0.0]], [[[1.0]], [[1.0]]], [1.0, ratio], mass=1.0 + ratio
    ).merge(*pair)
    light, heavy = 1.0 / (1.0 + ratio), ratio / (1.0 + ratio)
    assert_allclose(mixture.means[0], [light * shift], rtol=1e-12)
    assert_allclose(mixture.covariances[0], [[1.0 + light * heavy * ratio]], rtol=1e-12)


def test_given_parameters_come_back():
    covariances = random_covariances(2, 3)
    means = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    mixture = Mixture.from_parameters(means, covariances, [1.0, 3.0], mass=8.0)
    assert_allclose(mixture.means, means)
    assert_allclose(mixture.covariances, covariances, rtol=1e-10)
    assert_allclose(mixture.precisions, np.linalg.inv(covariances), rtol=1e-9)
    assert_allclose(mixture.masses, [2.0, 6.0])
    assert_allclose(mixture.weights, [0.25, 0.75])
    assert_allclose(mixture.log_determinants, np.linalg.slogdet(covariances)[1], rtol=1e-10)
    # It can learn on: new components are as wide as the others, or, if asked to
    # be as wide as delta says, have the scale of the whole.
    within = mixture.weights @ np.diagonal(covariances, axis1=1, axis2=2)
    mean = mixture.weights @ mixture.means
    spread = mixture.weights @ (mixture.means - mean) ** 2
    fixed = Mixture.from_parameters(means, covariances, [1.0, 3.0], mass=8.0, delta=1.0)
    mixture.learn_one([1e3, 0.0, 0.0])
    fixed.learn_one([1e3, 0.0, 0.0])
    assert_allclose(np.diag(mixture.covariances[-1]), within, rtol=1e-9)
    assert_allclose(np.diag(fixed.covariances[-1]), within + spread, rtol=1e-9)


def test_rounding_does_not_make_covariances_asymmetric():
    turn = np.kron(np.eye(3), [[0.6, -0.8], [0.8, 0.6]])
    covariance = turn @ (1.37 * np.eye(6)) @ turn.T
    mixture = Mixture.from_parameters(np.zeros((1, 6)), [covariance])
    assert_allclose(mixture.covariances[0], 1.37 * np.eye(6), atol=1e-12)


def test_answers_are_kept_for_few_sets_of_variables_only():
    mixture = random_mixture(2, 8)
    rows = np.random.default_rng(0).normal(size=(200, 7))
    rows[np.random.default_rng(1).random(rows.shape) < 0.4] = np.nan
    mixture.infer(rows, range(7))
    assert len(mixture.core._regressions) <= 16


def test_answers_follow_learning():
    mixture = random_mixture(2, 3, seed=1)
    before = mixture.infer([[0.0, 0.0]], [0, 1]).mean()
    mixture.learn(np.full((50, 3), 0.7))
    after = mixture.infer([[0.0, 0.0]], [0, 1]).mean()
    fresh = mixture.copy().infer([[0.0, 0.0]], [0, 1]).mean()
    assert not np.allclose(before, after)
    assert np.array_equal(after, fresh)


def test_a_row_alone_gets_the_answer_it_gets_among_others(held):
    mixture = random_mixture(3, 4, seed=1)
    rows = np.random.default_rng(0).normal(size=(50, 4))
    rows[::3, 2] = np.nan
    together = mixture.log_density(rows)
    alone = np.concatenate([mixture.log_density(row[np.newaxis]) for row in rows])
    if held == "dense":
        assert np.array_equal(together, alone)
    assert_allclose(together, alone, rtol=1e-13)


def test_predictions_between_the_ends_of_the_range_of_scales():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = 3.0 * x + 0.1 * rng.normal(size=2000)
    plain = Mixture(2, beta=0.0).learn(np.column_stack([x, y]))
    extreme = Mixture(2, beta=0.0).learn(np.column_stack([x * 1e-150, y * 1e150]))
    for known, units in ((0, (1e-150, 1e150)), (1, (1e150, 1e-150))):
        ours = extreme.infer([[0.7 * units[0]]], [known])
        regression = extreme.core.regression(np.array([known]), np.array([1 - known]))
        many, _ = regression.mean(np.full((40, 1), 0.7 * units[0]))
        truth = plain.infer([[0.7]], [known])
        assert_allclose(ours.mean() / units[1], truth.mean(), rtol=1e-9)
        assert_allclose(many / units[1], np.repeat(truth.mean(), 40, axis=0), rtol=1e-9)
        assert_allclose(ours.std() / units[1], truth.std(), rtol=1e-9)
