"""Mixtures without settings: EM on the first rows, and what follows from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture

import figmn
from figmn import IncrementalGaussianMixture, Mixture, MixtureRegressor
from figmn.batch import em, gaps, selection
from figmn.components import factors, state
from figmn.components.plain import PlainComponents
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
    ours = em.converged(batch, shares, 0.0, tolerance=-1.0, rounds=20)
    first = em.maximised(batch, shares, 0.0)
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
    means, covariances, proportions = em.maximised(em.Batch(rows, weights), shares, 2.5)
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


def test_many_products_are_taken_in_parts(monkeypatch):
    rows = standard(skewed(300))
    whole = em.Batch(rows, np.ones(300))
    parameters = em.maximised(whole, np.eye(2)[(rows[:, 0] > 0).astype(int)], 1.0)
    monkeypatch.setattr(em, "_MOST_PRODUCTS", 50)
    parts = em.Batch(rows, np.ones(300))
    assert_allclose(parts.log_joint(parameters), whole.log_joint(parameters), rtol=1e-12)
    shares = whole.posteriors(parameters)
    for ours, theirs in zip(parts.scatter(shares), whole.scatter(shares), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_components_without_rows_are_left_out():
    rows = standard(skewed(100))
    shares = np.column_stack([np.ones(100), np.full(100, 1e-6)])
    parameters = em.converged(em.Batch(rows, np.ones(100)), shares, 1.0)
    assert len(parameters.weights) == 1
    assert_allclose(parameters.means[0], 0.0, atol=1e-9)


# -- Choosing ----------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_as_many_components_as_clusters(n_clusters):
    rows = standard(clusters(600, 3, n_clusters, spread=25.0))
    parameters = selection.fitted(rows, np.ones(600), None, None, final=True)
    assert np.sum(parameters.weights > 0.01) == n_clusters


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
    assert_allclose(one.score_samples(rows), other.score_samples(rows), rtol=1e-9)


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
    components = PlainComponents(
        state.from_factors(np.array([[1.0, 2.0, 3.0]]), whiteners, variances, np.ones(1))
    )
    rows = np.tile([2.5, np.nan, np.nan], (40_000, 1))
    drawn = gaps.drawn(components, rows, np.random.default_rng(0))
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


# -- Quantiles ---------------------------------------------------------------


def test_quantiles_solve_the_mixture_distribution():
    rows = skewed(800)
    model = MixtureRegressor().fit(rows[:, :1], rows[:, 1:])
    asked = np.array([[-1.0], [0.4], [np.nan]])
    answers = model.predict_quantiles(asked, [0.01, 0.5, 0.9])
    assert answers.shape == (3, 2, 3)
    for row, x in enumerate(asked):
        conditional = model.mixture_.condition(x, [0], [1, 2])
        spreads = np.sqrt(np.diagonal(conditional.covariances, axis1=1, axis2=2))
        for output in range(2):
            below = norm.cdf(
                answers[row, output][:, np.newaxis],
                conditional.means[:, output],
                spreads[:, output],
            )
            assert_allclose(below @ conditional.weights, [0.01, 0.5, 0.9], atol=1e-9)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_quantiles(asked, [1.0])
