"""Mixtures without settings: EM on the first rows, and what follows from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.stats import kstest, multivariate_normal, norm
from sklearn.datasets import make_moons
from sklearn.metrics import homogeneity_score
from sklearn.mixture import GaussianMixture

import figmn
from figmn import IncrementalGaussianMixture, Mixture, MixtureRegressor
from figmn.batch import em, gaps, selection
from figmn.batch.slices import finished
from figmn.engines import factors
from figmn.engines.conditional import Conditional
from figmn.engines.rowwise import dense_state
from figmn.engines.rowwise.dense_components import DenseComponents
from figmn.estimators.calibration import Calibration
from figmn.kernels.sampling import uniform
from figmn.stream.retained_sample import RetainedSample
from helpers import assert_sound, clusters

held_either_way = pytest.mark.usefixtures("held")


def standard(rows):
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def skewed(n_rows, seed=0):
    """Rows along a curve, which take several components."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, n_rows)
    return np.column_stack(
        [x, np.sin(2 * x) + 0.1 * rng.normal(size=n_rows), rng.normal(size=n_rows)]
    )


# -- EM ----------------------------------------------------------------------


def test_em_without_shrinkage_is_that_of_scikit_learn():
    rows = standard(skewed(400))
    shares = np.eye(3)[np.digitize(rows[:, 0], [-0.5, 0.5])]
    batch = em.Batch(rows, np.ones(400))
    ours = finished(em.converged(batch, shares, em.Prior(0.0), tolerance=-1.0, rounds=20))
    first = em.maximised(batch.scatter(shares), em.Prior(0.0))
    theirs = GaussianMixture(
        3,
        weights_init=first.weights,
        means_init=first.means,
        precisions_init=np.linalg.inv(first.covariances),
        reg_covar=em.FLOOR,
        max_iter=20,
        tol=0.0,
    )
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(rows)
    # scikit-learn's twenty rounds end with an update, as ours do.
    assert_allclose(ours.means, theirs.means_, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.covariances, theirs.covariances_, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.weights, theirs.weights_, rtol=1e-6)
    assert_allclose(batch.log_density(ours), theirs.score_samples(rows), rtol=1e-6)


def test_a_round_of_em_is_the_weighted_formula():
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(60, 3)), rng.uniform(0.5, 2.0, 60)
    shares = rng.dirichlet([1.0, 1.0], 60)
    means, covariances, proportions = em.maximised(
        em.Batch(rows, weights).scatter(shares), em.Prior(2.5)
    )
    counts = weights @ shares
    squares = [
        np.cov(rows.T, aweights=weights * shares[:, k], ddof=0) * counts[k] for k in range(2)
    ]
    pooled = sum(squares) / counts.sum()
    target = 0.9 * pooled + 0.1 * np.diag(np.diag(pooled)) + em.FLOOR * np.eye(3)
    for k in range(2):
        assert_allclose(means[k], np.average(rows, axis=0, weights=weights * shares[:, k]))
        expected = (squares[k] + 2.5 * target) / (counts[k] + 2.5) + em.FLOOR * np.eye(3)
        assert_allclose(covariances[k], expected, rtol=1e-9, atol=1e-12)
    assert_allclose(proportions, counts / counts.sum())


@pytest.mark.parametrize("diagonal", [0.1, 0.6])
def test_an_infinite_prior_is_one_covariance_for_all(diagonal):
    rng = np.random.default_rng(1)
    rows, shares = rng.normal(size=(60, 3)), rng.dirichlet([1.0, 1.0], 60)
    fit = em.maximised(em.Batch(rows, np.ones(60)).scatter(shares), em.Prior(np.inf, diagonal))
    pooled = sum(np.cov(rows.T, aweights=w, ddof=0) * w.sum() for w in shares.T) / 60
    target = (1.0 - diagonal) * pooled + diagonal * np.diag(np.diag(pooled))
    for covariance in fit.covariances:
        assert_allclose(covariance, target + 2.0 * em.FLOOR * np.eye(3), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_features", [3, 300])
def test_densities_are_those_of_scipy(n_features):
    """Also beyond the size up to which triangles are inverted."""
    rng = np.random.default_rng(0)
    rows = standard(rng.normal(size=(400, n_features)) @ rng.normal(size=(n_features, n_features)))
    batch = em.Batch(rows, np.ones(400))
    fit = em.maximised(batch.scatter(rng.dirichlet([1.0, 1.0], 400)), em.Prior(50.0))
    parts = [
        np.log(weight) + multivariate_normal(mean, covariance).logpdf(rows)
        for mean, covariance, weight in zip(*fit, strict=True)
    ]
    assert_allclose(batch.log_joint(fit), np.transpose(parts), rtol=1e-8)


def test_without_room_for_all_products_the_moments_are_the_same(monkeypatch):
    rows = standard(skewed(300))
    whole = em.Batch(rows, np.ones(300))
    parameters = em.maximised(
        whole.scatter(np.eye(2)[(rows[:, 0] > 0).astype(int)]), em.Prior(1.0)
    )
    monkeypatch.setattr(em, "_MOST_PRODUCTS", 50)
    parts = em.Batch(rows, np.ones(300))
    assert_allclose(parts.log_joint(parameters), whole.log_joint(parameters), rtol=1e-12)
    shares = whole.posteriors(parameters)
    for ours, theirs in zip(parts.scatter(shares), whole.scatter(shares), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_components_without_rows_are_left_out():
    rows = standard(skewed(100))
    shares = np.column_stack([np.ones(100), np.full(100, 1e-6)])
    parameters = finished(em.converged(em.Batch(rows, np.ones(100)), shares, em.Prior(1.0)))
    assert len(parameters.weights) == 1
    assert_allclose(parameters.means[0], 0.0, atol=1e-9)


# -- Choosing ----------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_as_many_components_as_clusters(n_clusters):
    rows = standard(clusters(600, 3, n_clusters, spread=25.0))
    parameters = finished(selection.fitted(rows, np.ones(600), selection.Preferences())).parameters
    assert np.sum(parameters.weights > 0.01) == n_clusters


def test_the_values_of_a_discrete_variable_are_found():
    """Beside others that are as wide: the density is known."""

    def graded(n_rows, seed):
        rng = np.random.default_rng(seed)
        grade = rng.integers(0, 4, n_rows)
        return np.column_stack(
            [rng.normal(size=(n_rows, 3)), grade + 0.01 * rng.normal(size=n_rows)]
        )

    rows, others = graded(1000, 0), graded(2000, 1)
    apart = others[:, 3] - others[:, 3].round()
    truth = norm.logpdf(others[:, :3]).sum(axis=1) + norm.logpdf(apart, scale=0.01) - np.log(4)
    assert IncrementalGaussianMixture().fit(rows).score(others) > truth.mean() - 0.1


@pytest.mark.parametrize("far", [30.0, 1e3, 1e6])
def test_one_outlier_does_not_spoil_the_fit(far):
    rows, others = skewed(900), skewed(2000, seed=1)
    rows[17] = [0.0, far, 0.0]
    alone = IncrementalGaussianMixture().fit(np.delete(rows, 17, axis=0)).score(others)
    assert IncrementalGaussianMixture().fit(rows).score(others) > alone - 0.15


def test_clusters_of_one_shape_are_told_apart_in_many_variables():
    """Each has too few rows for a covariance of its own."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 60))
    which = rng.integers(0, 4, 600)
    rows = standard(centers[which] + rng.normal(size=(600, 60)))
    fit = finished(selection.fitted(rows, np.ones(600), selection.Preferences())).parameters
    found = em.Batch(rows, np.ones(600)).posteriors(fit).argmax(axis=1)
    assert 4 <= len(fit.weights) <= 6
    assert homogeneity_score(which, found) > 0.99


@pytest.mark.parametrize(("n_rows", "n_features"), [(60, 100), (300, 280), (2500, 280)])
def test_many_variables_need_no_settings_either(n_rows, n_features):
    """Rows of one Gaussian: no worse than without correlations, nor than as EM fits it."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    rows = rng.normal(size=(n_rows, n_features)) @ mixing
    others = rng.normal(size=(500, n_features)) @ mixing
    model = IncrementalGaussianMixture().fit(rows)
    assert model.n_components_ <= 4
    assert_sound(model.mixture_)
    apart = GaussianMixture(covariance_type="diag").fit(rows).score(others)
    together = GaussianMixture().fit(rows).score(others)
    assert model.score(others) > max(apart, together) - 0.01 * n_features


def test_no_worse_than_the_best_of_scikit_learn_on_rows_left_out():
    rows, others = skewed(900), skewed(2000, seed=1)
    best = max(
        GaussianMixture(k, random_state=0).fit(rows).score(others) for k in (1, 2, 4, 8, 16)
    )
    assert IncrementalGaussianMixture().fit(rows).score(others) > best - 0.15  # 0.05 a column


def test_the_order_of_rows_that_are_fitted_together_makes_no_difference():
    rows = skewed(500)
    order = np.argsort(rows[:, 0])
    one, other = (IncrementalGaussianMixture().fit(part) for part in (rows, rows[order]))
    assert_array_equal(one.score_samples(rows), other.score_samples(rows))


def test_parsimony_costs_components_and_little_else():
    rows = skewed(1500)
    known, others = rows[:1000], rows[1000:]
    fits = [Mixture(3, parsimony=p).learn(known).consolidate() for p in (0.0, 1.0, 100.0)]
    counts = [fit.n_components for fit in fits]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    scores = [fit.log_density(others).mean() for fit in fits]
    assert scores[1] > scores[0] - 0.1
    assert scores[2] < scores[1] - 0.2
    with pytest.raises(ValueError, match="parsimony"):
        Mixture(3, parsimony=-1.0)


def test_the_bound_holds_from_the_start():
    rows = skewed(500)
    for bound in (1, 2, 3):
        assert IncrementalGaussianMixture(max_components=bound).fit(rows).n_components_ <= bound


def test_an_outlier_is_improbable_but_not_impossible():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(400, 2)), 12.0 * rng.standard_cauchy(size=(12, 2))])
    model = IncrementalGaussianMixture().fit(rng.permutation(rows))
    far = model.score_samples([[60.0, -60.0]])[0]
    gauss = multivariate_normal(np.zeros(2), np.eye(2)).logpdf([60.0, -60.0])
    assert gauss < far < -5.0


# -- In the mixture ----------------------------------------------------------


@held_either_way
@pytest.mark.parametrize("sizes", [[1] * 60 + [540], [599, 1], [100, 500]])
def test_chunks_make_no_difference_in_the_warm_up(sizes):
    rows = skewed(600)
    whole = Mixture(3, warmup=300).learn(rows)
    cut = Mixture(3, warmup=300)
    for part in np.split(rows, np.cumsum(sizes)[:-1]):
        cut.learn(part)
    assert_allclose(cut.means, whole.means, rtol=1e-12)
    assert_allclose(cut.covariances, whole.covariances, rtol=1e-9, atol=1e-12)


def test_questions_in_the_warm_up_change_nothing():
    rows = skewed(200)
    asked, silent = Mixture(3), Mixture(3)
    for row in rows:
        asked.learn_one(row)
        silent.learn_one(row)
        assert np.isfinite(asked.log_density(row[np.newaxis])[0])
    assert_allclose(asked.log_density(rows), silent.log_density(rows), rtol=1e-9)


def test_partial_fit_is_nearly_as_good_as_fit_in_the_warm_up():
    rows, others = skewed(400), skewed(2000, seed=1)
    whole = IncrementalGaussianMixture().fit(rows)
    parts = IncrementalGaussianMixture()
    for part in np.array_split(rows, 9):
        parts.partial_fit(part)
    assert abs(parts.score(others) - whole.score(others)) < 0.15
    assert parts.mixture_.consolidate().log_density(others).mean() == pytest.approx(
        whole.score(others)
    )


@held_either_way
def test_the_stream_refines_what_the_start_has_found():
    rows, others = skewed(12_000), skewed(3000, seed=1)
    start = Mixture(3, warmup=500).learn(rows[:500])
    after = start.copy().learn(rows[500:])
    assert after.log_density(others).mean() > start.log_density(others).mean()
    assert after.n_components <= 2 * start.n_components + 16
    assert after.masses.sum() == pytest.approx(12_000)


@held_either_way
def test_a_new_cluster_after_the_start_gets_a_component():
    rng = np.random.default_rng(0)
    mixture = Mixture(2, warmup=200).learn(rng.normal(size=(300, 2)))
    mixture.learn(rng.normal(size=(300, 2)) + 40.0)
    assert mixture.log_density([[40.0, 40.0]])[0] > -6.0


def test_given_settings_mean_what_they_mean():
    rows = skewed(400)
    for settings in ({"delta": 1.0}, {"beta": 0.1}):
        given = Mixture(3, **settings).learn(rows)
        both = Mixture(3, delta=1.0, beta=0.1).learn(rows)
        assert_array_equal(given.means, both.means)


def test_weights_are_proportions():
    rows, rng = skewed(300), np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 300)
    one = Mixture(3).learn(rows, weights).consolidate()
    other = Mixture(3).learn(rows, 1e-6 * weights).consolidate()
    assert_allclose(one.means, other.means, rtol=1e-6, atol=1e-9)
    assert one.masses.sum() == pytest.approx(weights.sum())
    nearly = Mixture(3).learn(rows, np.where(rows[:, 0] > 0, 1.0, 1e-9)).consolidate()
    assert nearly.weights @ nearly.means[:, 0] > 1.0


@held_either_way
def test_old_rows_count_less_with_a_half_life():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(200, 1)), rng.normal(size=(200, 1)) + 8.0])
    mixture = Mixture(1, half_life=40.0).learn(rows).consolidate()
    assert mixture.weights @ mixture.means[:, 0] == pytest.approx(8.0, abs=0.7)


@held_either_way
def test_files_keep_the_warm_up_and_what_came_of_it(tmp_path):
    rows = skewed(300)
    for count in (50, 150, 300):
        mixture = Mixture(3, warmup=200).learn(rows[:count])
        if count == 50:
            mixture.consolidate()
        mixture.save(tmp_path / "model.figmn")
        loaded = figmn.load(tmp_path / "model.figmn")
        assert_array_equal(loaded.log_density(rows), mixture.log_density(rows))
        later = [each.learn(rows).log_density(rows) for each in (mixture, loaded)]
        assert_array_equal(*later)


@pytest.mark.parametrize("scale", [1e-120, 1e-6, 3.0, 1e6, 1e120])
def test_a_scale_far_off_does_no_harm(scale):
    rows, others = skewed(400), skewed(1000, seed=1)
    given = IncrementalGaussianMixture(scale=scale).fit(rows)
    assert_sound(given.mixture_)
    assert abs(given.score(others) - IncrementalGaussianMixture().fit(rows).score(others)) < 0.5


# -- Gaps --------------------------------------------------------------------


def test_draws_for_gaps_have_the_conditional_distribution():
    covariance = np.array([[2.0, 1.2, 0.3], [1.2, 1.0, 0.1], [0.3, 0.1, 1.5]])
    whiteners, variances = factors.factor(covariance[np.newaxis])
    components = DenseComponents(
        dense_state.from_factors(np.array([[1.0, 2.0, 3.0]]), whiteners, variances, np.ones(1))
    )
    rows = np.tile([2.5, np.nan, np.nan], (40_000, 1))
    drawn = finished(gaps.drawn(components, rows, np.random.default_rng(0)))
    assert_array_equal(drawn[:, 0], 2.5)
    slope = covariance[1:, 0] / covariance[0, 0]
    expected = covariance[1:, 1:] - np.outer(slope, covariance[0, 1:])
    assert_allclose(drawn[:, 1:].mean(axis=0), [2.0, 3.0] + slope * 1.5, atol=0.03)
    assert_allclose(np.cov(drawn[:, 1:].T), expected, atol=0.04)


def test_incomplete_rows_are_worth_their_known_entries():
    rows, others = skewed(600), skewed(2000, seed=1)
    holes = np.random.default_rng(2).random(rows.shape) < 0.15
    holed = IncrementalGaussianMixture().fit(np.where(holes, np.nan, rows)).score(others)
    complete = IncrementalGaussianMixture().fit(rows[~holes.any(axis=1)]).score(others)
    assert holed > complete - 0.3


# -- Whatever comes ----------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((50, 3)),
        np.ones((20, 2)) * 1e150,
        np.repeat(np.eye(3), 30, axis=0),
        np.column_stack([np.arange(100.0), np.arange(100.0), np.zeros(100)]),
        np.random.default_rng(0).normal(size=(40, 60)),
        np.random.default_rng(0).normal(size=(500, 2)) * [1e-150, 1e150],
        np.exp(20.0 * np.random.default_rng(0).normal(size=(300, 2))),
        np.random.default_rng(0).integers(0, 2, (300, 8)),
        np.where(np.random.default_rng(0).random((60, 3)) < 0.7, np.nan, 1.0),
        np.column_stack([np.full(40, np.nan), np.arange(40.0)]),
    ],
    ids=[
        "zeros", "huge", "repeated", "collinear", "wide", "scales", "skewed", "binary", "gaps",
        "unseen",
    ],
)  # fmt: skip
def test_nothing_explodes(rows):
    model = IncrementalGaussianMixture().fit(rows[~np.isnan(rows).all(axis=1)])
    assert_sound(model.mixture_)
    assert np.isfinite(model.score_samples(rows)).all()
    assert np.isfinite(model.sample(10, random_state=0)[0]).all()


# -- A stream that changes ---------------------------------------------------


def sorted_moons(n_rows, seed=0):
    """Two crescents, one after the other, and as many rows of both to judge by."""
    rows, labels = make_moons(2 * n_rows, noise=0.1, random_state=seed)
    known, others = rows[:n_rows], rows[n_rows:]
    return known[np.argsort(labels[:n_rows], kind="stable")], others


def test_a_stream_sorted_by_class_is_learnt_as_well_as_in_any_order():
    rows, others = sorted_moons(5000)
    mixed = np.random.default_rng(1).permutation(rows)
    scores = [Mixture(2).learn(r).log_density(others).mean() for r in (rows, mixed)]
    assert scores[0] > scores[1] - 0.1
    alone = Mixture(2).learn(rows[:2500]).log_density(others).mean()  # what one class is worth
    assert scores[0] > alone + 1.0


def test_a_stream_that_becomes_noisier_is_learnt_as_well_as_in_any_order():
    """Nearly no weight moves between components: one becomes wider."""

    def noisier(n_rows, seed):
        noise = np.repeat([0.01, 1.0], [4 * n_rows // 5, n_rows // 5])
        return noise[:, np.newaxis] * np.random.default_rng(seed).normal(size=(n_rows, 4))

    rows, others = noisier(6400, 0), noisier(1600, 1)
    mixed = np.random.default_rng(2).permutation(rows)
    scores = [Mixture(4).learn(r).log_density(others).mean() for r in (rows, mixed)]
    assert scores[0] > scores[1] - 0.1


@held_either_way
@pytest.mark.parametrize("sizes", [1, 7, 1000])
def test_chunks_make_no_difference_to_a_stream_that_changes(sizes):
    rows = sorted_moons(6000)[0][:4200]
    whole = Mixture(2).learn(rows)
    cut = Mixture(2)
    for first in range(0, len(rows), sizes):
        cut.learn(rows[first : first + sizes])
    assert_allclose(cut.means, whole.means, rtol=1e-9)
    assert_allclose(cut.covariances, whole.covariances, rtol=1e-9, atol=1e-12)


@held_either_way
def test_files_keep_the_sample_of_the_stream(tmp_path):
    rows, others = sorted_moons(6000)
    whole, begun = Mixture(2).learn(rows), Mixture(2).learn(rows[:3500])
    begun.save(tmp_path / "model.figmn")
    loaded = figmn.load(tmp_path / "model.figmn").learn(rows[3500:])
    assert_allclose(loaded.log_density(others), whole.log_density(others), rtol=1e-9)


def test_what_came_before_a_fit_anew_still_counts():
    rows, _ = sorted_moons(5000)
    mixture = Mixture(2).learn(rows)
    assert mixture.n_learnt == len(rows)
    assert mixture.masses.sum() == pytest.approx(len(rows))
    assert_allclose(mixture.weights @ mixture.means, rows.mean(axis=0), atol=0.05)


def test_a_merge_by_hand_is_not_undone():
    rows, _ = sorted_moons(5000)
    mixture = Mixture(2).learn(rows[:2100])
    count = mixture.n_components
    mixture.merge(0, 1).learn(rows[2100:]).consolidate()
    assert mixture.known_rows() is None
    assert mixture.n_components >= count - 1


def test_a_sample_stands_for_the_weight_of_the_stream():
    rng = np.random.default_rng(0)
    estimates = []
    for number in range(200):
        rows, weights = rng.normal(size=(3000, 1)), rng.pareto(1.5, size=3000) + 0.01
        # Another part of an endless stream each time, and so other random numbers.
        ranks = weights[:100] / rng.uniform(size=100)
        kept = rows[:100].copy(), weights[:100].copy()
        sample = RetainedSample(*kept, ranks, 0.0, 10_000 * number, 10**9, np.ones(1), np.zeros(1))
        sample.learn(rows[100:], weights[100:])
        held = sample.buffer()
        true = [weights.sum(), weights[rows[:, 0] > 1.0].sum()]
        estimated = [held.weights.sum(), held.weights[held.rows[:, 0] > 1.0].sum()]
        estimates.append(np.divide(estimated, true))
    errors = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(np.mean(estimates, axis=0) - 1.0) < 4.0 * errors)
    assert np.all(errors < 0.02)


def test_positions_give_uniform_numbers():
    numbers = np.array([uniform(i) for i in range(20_000)])
    assert kstest(numbers, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.03


# -- Quantiles ---------------------------------------------------------------


def test_quantiles_solve_the_mixture_distribution():
    rows = skewed(800)
    mixture = Mixture(3).learn(rows)
    answer = mixture.infer([[-1.0], [0.4], [np.nan]], [0], [1, 2])
    for probability in (0.01, 0.5, [0.2, 0.9]):
        values = answer.quantile(np.array(probability))
        spreads = np.sqrt(np.diagonal(answer.covariances, axis1=-2, axis2=-1))
        below = norm.cdf(values[:, np.newaxis], answer.means, spreads)
        expected = np.einsum("nk,nkm->nm", answer.weights, below)
        assert_allclose(expected, np.broadcast_to(probability, (3, 2)), atol=1e-9)
        assert_allclose(answer.probability_below(values), expected, rtol=1e-12)


@pytest.mark.parametrize("probability", [1e-12, 0.001, 0.3, 0.5, 0.9, 1.0 - 1e-9])
def test_quantiles_of_components_and_weights_of_all_sizes(probability):
    rng = np.random.default_rng(0)
    weights = 10.0 ** -(rng.random((200, 6)) * rng.choice([1.0, 10.0, 300.0], (200, 1)))
    weights[::9, 1:] = 0.0  # a single one
    weights /= weights.sum(axis=1, keepdims=True)
    means = rng.normal(size=(200, 6, 1)) * 10.0 ** rng.uniform(-3, 3, (200, 1, 1))
    deviations = 10.0 ** rng.uniform(-3, 2, (200, 6, 1))
    answer = Conditional(weights, means, deviations[..., np.newaxis] ** 2)
    for n, ours in enumerate(answer.quantile(probability)[:, 0]):
        center, width, shares = means[n, :, 0], deviations[n, :, 0], weights[n]
        ends = norm.ppf(probability, center, width)[shares > 0.0]
        if np.ptp(ends) == 0.0:
            assert_allclose(ours, ends[0], rtol=1e-12)
            continue
        low, high = ends.min() - width.max(), ends.max() + width.max()
        truth = brentq(
            lambda y, shares=shares, center=center, width=width: (
                shares @ norm.cdf(y, center, width) - probability
            ),
            low,
            high,
            xtol=1e-300,
            rtol=1e-14,
        )
        # Where next to nothing lies, rounding of the probability moves its quantile.
        density = shares @ norm.pdf(truth, center, width)
        rounding = 1e-14 * abs(truth) + 1e-15 / max(density, 1e-300)
        assert abs(ours - truth) < 1e-9 * width.min() + 10.0 * rounding


@pytest.mark.parametrize("n_rows", [300, 3000])
def test_intervals_hold_what_they_promise(n_rows):
    """Noise of two kinds, which Gaussian components alone would not get right."""
    rng = np.random.default_rng(n_rows)
    X = rng.uniform(-3, 3, (n_rows + 5000, 3))
    noise = rng.standard_t(2.5, n_rows + 5000)
    y = np.column_stack([np.sin(X[:, 0]) + 0.1 * noise, X.sum(axis=1) + noise])
    model = MixtureRegressor().fit(X[:n_rows], y[:n_rows])
    answers = model.predict_quantiles(X[n_rows:], [0.05, 0.95])
    assert answers.shape == (5000, 2, 2)
    inside = (answers[..., 0] < y[n_rows:]) & (y[n_rows:] < answers[..., 1])
    assert np.all(np.abs(inside.mean(axis=0) - 0.9) < (0.05 if n_rows < 1000 else 0.03))
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_quantiles(X, [1.0])


def test_learning_more_renews_the_calibration():
    rows = skewed(600)
    X, y = rows[:, :1], rows[:, 1]
    model = MixtureRegressor().partial_fit(X[:300], y[:300])
    before = model.predict_quantiles(X[:5])
    model.partial_fit(X[300:], y[300:])
    fresh = MixtureRegressor().partial_fit(X, y)
    assert_array_equal(model.predict_quantiles(X[:5]), fresh.predict_quantiles(X[:5]))
    assert not np.array_equal(model.predict_quantiles(X[:5]), before)


def test_calibration_inverts_the_shares_of_outcomes():
    levels = np.linspace(0.25, 0.75, 2001)[:, np.newaxis]  # intervals twice too wide
    calibration = Calibration(levels, np.ones(2001))
    assert_allclose(calibration.adjusted(0.05), [0.275], atol=0.005)
    assert_allclose(calibration.adjusted(0.5), [0.5], atol=1e-3)
    unknown = Calibration(np.full((3, 1), np.nan), np.ones(3))
    assert_allclose(unknown.adjusted(0.05), [0.05])
    beyond = Calibration(np.zeros((50, 1)), np.ones(50))
    assert 0.0 < beyond.adjusted(0.05)[0] < 1e-6


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("n_outliers", "size", "n_features", "n_rows"),
    [(5, 1e5, 20, 1000), (5, 1e4, 20, 1000), (2, 1e9, 2, 250), (1, 1e7, 20, 250)],
)
def test_few_rows_far_away_can_be_fitted(seed, n_outliers, size, n_features, n_rows):
    rows = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    clean = rows[n_outliers:].copy()
    rows[:n_outliers] *= size
    mixture = Mixture(n_features).learn(rows)
    assert np.all(np.isfinite(mixture.log_density(rows)))
    if size <= 1e5:  # the other rows are described nearly as well as without them
        truth = multivariate_normal(np.zeros(n_features)).logpdf(clean).mean()
        assert mixture.log_density(clean).mean() > truth - 0.1 * n_features


def test_a_stream_that_begins_with_outliers_goes_on():
    rows = np.random.default_rng(0).normal(size=(2500, 4))
    rows[:2] *= 1e9
    mixture = Mixture(4)
    for start in range(0, len(rows), 50):
        mixture.learn(rows[start : start + 50])
    assert mixture.n_learnt == len(rows)
    assert np.all(np.isfinite(mixture.log_density(rows)))
