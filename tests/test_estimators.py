"""The estimators, against the mixture, scikit-learn and closed forms."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import figmn
from figmn import (
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureImputer,
    MixtureOutlierDetector,
    MixtureRegressor,
)
from figmn.mixture.tail import log_chi_square_tail
from helpers import clusters, direct_log_density

ALL = [
    IncrementalGaussianMixture,
    MixtureClassifier,
    MixtureRegressor,
    MixtureImputer,
    MixtureOutlierDetector,
]
ROWS = clusters(300, 3)
GAPS = ROWS.copy()
GAPS[::5, 0] = np.nan
GAPS[::7, 2] = np.nan


def fit(cls, rows, method="fit", **kwargs):
    targets = {
        MixtureClassifier: [np.arange(len(rows)) % 2],
        MixtureRegressor: [np.linspace(0, 1, len(rows))],
    }.get(cls, [])
    return getattr(cls(), method)(rows, *targets, **kwargs)


@pytest.mark.parametrize("cls", ALL)
def test_chunks_of_any_size_make_the_same_model(cls):
    rows = GAPS
    whole, chunked = fit(cls, rows, "partial_fit"), cls()
    labels, targets = np.arange(300) % 2, np.linspace(0, 1, 300)
    for start in range(0, 300, 13):
        part = slice(start, start + 13)
        extra = {MixtureClassifier: [labels[part]], MixtureRegressor: [targets[part]]}.get(cls, [])
        chunked.partial_fit(rows[part], *extra)
    assert np.array_equal(whole.mixture_.means, chunked.mixture_.means)
    assert np.array_equal(whole.mixture_.precisions, chunked.mixture_.precisions)


@pytest.mark.parametrize("cls", ALL)
def test_weights_are_heeded(cls):
    weights = np.where(np.arange(300) < 150, 1.0, 0.0)
    weighted = fit(cls, ROWS, sample_weight=weights)
    unweighted = fit(cls, ROWS)
    assert_allclose(weighted.mixture_.masses.sum(), 150.0, rtol=1e-9)
    assert_allclose(unweighted.mixture_.masses.sum(), 300.0, rtol=1e-9)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("cls", ALL)
def test_frames_go_in(cls, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({name: GAPS[:, i] for i, name in enumerate("abc")})
    model, plain = fit(cls, frame), fit(cls, GAPS)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(model.mixture_.means, plain.mixture_.means)
    method = "transform" if cls is MixtureImputer else "predict"
    ours = np.asarray(getattr(model, method)(frame))
    assert np.array_equal(ours, getattr(plain, method)(GAPS))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_out(library):
    pytest.importorskip(library)
    imputer = MixtureImputer().set_output(transform=library).fit(GAPS)
    frame = imputer.transform(GAPS)
    assert type(frame).__module__.split(".")[0] == library
    assert list(frame.columns) == ["x0", "x1", "x2"]
    assert_allclose(np.asarray(frame), imputer.mixture_.fill(GAPS))


@pytest.mark.parametrize("cls", ALL)
def test_sensor_ranges_set_the_scale(cls):
    scale = [1.0, 2.0, 3.0, 0.25] if cls is MixtureRegressor else [1.0, 2.0, 3.0]
    model = cls(scale=scale, delta=1.0)
    targets = {MixtureClassifier: [[1]], MixtureRegressor: [[0.0]]}.get(cls, [])
    model.partial_fit([[0.0, 0.0, 0.0]], *targets)
    variances = np.diag(model.mixture_.covariances[0])
    assert_allclose(variances[:3], [1.0, 4.0, 9.0])


def test_parameters_may_change_between_chunks():
    model = IncrementalGaussianMixture(scale=1.0, beta=0.0).partial_fit(ROWS[:100])
    assert model.n_components_ == 1
    model.set_params(beta=0.9, max_components=5).partial_fit(ROWS[100:])
    assert model.n_components_ == 5
    before = model.mixture_.means
    with pytest.raises(ValueError, match="beta"):
        model.set_params(beta=7.0).partial_fit(ROWS)
    assert np.array_equal(model.mixture_.means, before)


# -- Density -------------------------------------------------------------------------


def test_density_answers_as_gaussian_mixture_does():
    X, _ = make_blobs(2000, 3, centers=3, cluster_std=1.0, random_state=0)
    ours = IncrementalGaussianMixture(delta=0.3, beta=1e-7).fit(X)
    theirs = GaussianMixture(ours.n_components_, means_init=ours.means_).fit(X)
    assert ours.n_components_ == 3
    assert_allclose(ours.means_, theirs.means_, atol=0.15)
    assert_allclose(ours.weights_, theirs.weights_, atol=0.02)
    assert_allclose(ours.score(X), theirs.score(X), atol=0.02)
    assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-2)
    assert_allclose(ours.aic(X), theirs.aic(X), rtol=1e-2)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=0.2)
    assert_allclose(ours.precisions_, np.linalg.inv(ours.covariances_), rtol=1e-8)


def test_criteria_follow_their_definitions():
    model = IncrementalGaussianMixture(delta=0.3).fit(ROWS)
    likelihood = direct_log_density(model.mixture_, ROWS).sum()
    parameters = model.n_components_ * (1 + 3 + 6) - 1
    assert_allclose(model.bic(ROWS), parameters * np.log(300) - 2 * likelihood, rtol=1e-9)
    assert_allclose(model.aic(ROWS), 2 * parameters - 2 * likelihood, rtol=1e-9)


def test_unknown_entries_are_integrated_out():
    model = IncrementalGaussianMixture(delta=0.3).fit(ROWS)
    assert_allclose(model.score_samples(GAPS), direct_log_density(model.mixture_, GAPS), rtol=1e-9)
    assert_allclose(model.predict_proba([[np.nan] * 3])[0], model.weights_)


def test_samples_and_labels():
    model = IncrementalGaussianMixture(delta=0.3).fit(ROWS)
    rows, labels = model.sample(50, random_state=1)
    assert rows.shape == (50, 3)
    assert np.mean(model.predict(rows) == labels) > 0.8
    assert np.array_equal(model.fit_predict(ROWS), model.predict(ROWS))


# -- Classification --------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], [10, 20, 30], [-1.0, 0.0, 1.0], np.array(["x", "y", "z"], dtype=object)],
)
def test_labels_of_any_kind(names):
    X, y = load_iris(return_X_y=True)
    labels = np.asarray(names)[y]
    model = MixtureClassifier().fit(X, labels)
    assert model.classes_.tolist() == sorted(names)
    assert model.score(X, labels) > 0.95
    assert np.array_equal(model.predict_proba(X), MixtureClassifier().fit(X, y).predict_proba(X))
    two = MixtureClassifier().fit(X[:100], y[:100] == 1)
    assert two.predict(X[:100]).dtype == bool


def test_probabilities_are_the_conditional_indicator_means():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier(beta=1e-6).fit(X, y)
    answer = model.mixture_.infer(X, known=range(4), wanted=[4, 5, 6]).mean()
    assert_allclose(answer.sum(axis=1), 1.0, rtol=1e-6)  # indicators always sum to one
    clipped = np.maximum(answer, 0.0)
    clipped /= clipped.sum(axis=1, keepdims=True)
    # Of components with less than exp(-45) of a row, no part is taken.
    assert_allclose(model.predict_proba(X), clipped, atol=1e-18)


def test_far_from_all_data_probabilities_stay_valid():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier().fit(X, y)
    for far in (1e3, 1e10, 1e100, -1e150):
        proba = model.predict_proba(np.full((1, 4), far))
        assert np.all(proba >= 0.0)
        assert_allclose(proba.sum(), 1.0)


def test_classes_may_appear_later():
    X, y = load_iris(return_X_y=True)
    order = np.argsort(np.random.default_rng(0).random(150) + (y == 0) * 1.0)
    X, labels = X[order], np.array(["setosa", "versicolor", "virginica"])[y[order]]
    model = MixtureClassifier()
    for start in range(0, 150, 10):
        model.partial_fit(X[start : start + 10], labels[start : start + 10])
        if start == 50:
            assert "setosa" not in model.classes_
            assert model.predict_proba(X).shape == (150, 2)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(X, labels) > 0.9


@pytest.mark.parametrize("size", [1, 7, 50, 600])
def test_classes_that_appear_later_do_so_at_their_first_row(size):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(c * 1.5, 1.0, (100, 3)) for c in range(6)])
    X[::9, 1] = np.nan
    y = np.repeat(["d", "b", "f", "a", "e", "c"], 100)
    whole, chunked = MixtureClassifier().partial_fit(X, y), MixtureClassifier()
    for start in range(0, 600, size):
        chunked.partial_fit(X[start : start + size], y[start : start + size])
    assert chunked.classes_.tolist() == whole.classes_.tolist() == list("abcdef")
    assert np.array_equal(chunked.mixture_.means, whole.mixture_.means)
    assert np.array_equal(chunked.predict_proba(X), whole.predict_proba(X))


def test_classes_may_be_declared_after_the_first_call():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier().partial_fit(X[:60], y[:60])
    model.partial_fit(X[60:80], y[60:80], classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="not declared"):
        model.partial_fit(X[:1], [7])


def test_a_declared_class_may_never_occur():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier().partial_fit(X, y, classes=[0, 1, 2, 3])
    assert model.predict_proba(X).shape == (150, 4)
    assert model.score(X, y) > 0.9


def test_unknown_inputs_leave_the_prior():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[:50, 50:75]
    model = MixtureClassifier(beta=0.0).fit(X[keep], y[keep])
    proba = model.predict_proba(np.full((1, 4), np.nan))[0]
    assert_allclose(proba, [50 / 75, 25 / 75], rtol=1e-6)
    assert cross_val_score(MixtureClassifier(), X, y).mean() > 0.9


# -- Regression -------------------------------------------------------------------------


@pytest.mark.parametrize("n_outputs", [None, 1, 2])
def test_one_component_is_linear_regression(n_outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = X @ rng.normal(size=(3, n_outputs or 1)) + 0.3 * rng.normal(size=(5000, n_outputs or 1))
    y = y[:, 0] if n_outputs is None else y
    model = MixtureRegressor(beta=0.0).fit(X, y)
    truth = LinearRegression().fit(X, y)
    mean, std = model.predict(X[:50], return_std=True)
    assert mean.shape == std.shape == y[:50].shape
    assert_allclose(mean, truth.predict(X[:50]), atol=5e-3)
    assert_allclose(std, np.std(y - truth.predict(X)), rtol=0.02)
    cov = model.predict(X[:50], return_cov=True)[1]
    if n_outputs is None:
        assert_allclose(cov, std**2, rtol=1e-9)
    else:
        assert cov.shape == (50, n_outputs, n_outputs)
        assert_allclose(np.diagonal(cov, axis1=1, axis2=2), std**2, rtol=1e-9)


def test_predictive_moments_are_those_of_samples():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (3000, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=3000)
    model = MixtureRegressor(delta=0.2, beta=0.05).fit(X, y)
    mean, std = model.predict([[0.4]], return_std=True)
    draws, _ = model.mixture_.condition([0.4], known=[0]).sample(200_000, random_state=0)
    assert_allclose(mean[0], draws.mean(), atol=0.005)
    assert_allclose(std[0], draws.std(), rtol=0.01)
    inside = np.abs(y - model.predict(X)) < 1.645 * model.predict(X, return_std=True)[1]
    assert 0.85 < inside.mean() < 0.97
    with pytest.raises(ValueError, match="not both"):
        model.predict(X, return_std=True, return_cov=True)


def test_regression_with_unknown_inputs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    y = X[:, 0] + X[:, 1]
    model = MixtureRegressor(beta=0.0).fit(X, y)
    mean, std = model.predict([[1.0, np.nan], [np.nan, np.nan], [1.0, 1.0]], return_std=True)
    assert_allclose(mean, [1.0, 0.0, 2.0], atol=0.06)
    assert_allclose(std[:2], [1.0, np.sqrt(2)], rtol=0.05)
    assert std[2] < 0.1


# -- Imputation and outliers ----------------------------------------------------------------


def test_imputation_beats_the_column_mean():
    rng = np.random.default_rng(0)
    X = clusters(1500, 4, spread=6.0)
    gaps = X.copy()
    missing = rng.random(X.shape) < 0.2
    missing[missing.all(axis=1)] = False
    gaps[missing] = np.nan
    filled = MixtureImputer(delta=0.4).fit_transform(gaps)
    assert np.array_equal(filled[~missing], X[~missing])
    plain = np.broadcast_to(np.nanmean(gaps, axis=0), X.shape)
    ours = np.sqrt(np.mean((filled - X)[missing] ** 2))
    theirs = np.sqrt(np.mean((plain - X)[missing] ** 2))
    assert ours < 0.6 * theirs


def test_a_column_never_seen_is_filled_with_a_warning():
    imputer = MixtureImputer().fit([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    with pytest.warns(UserWarning, match="no known value"):
        filled = imputer.transform([[1.5, np.nan]])
    assert_allclose(filled, [[1.5, 0.0]], atol=1e-12)
    imputer.partial_fit([[2.0, 5.0]])
    assert np.isfinite(imputer.transform([[1.5, np.nan]])).all()


def test_imputation_in_a_pipeline():
    X, y = load_iris(return_X_y=True)
    X[::6, 1] = np.nan
    pipeline = make_pipeline(MixtureImputer(), StandardScaler(), MixtureClassifier())
    assert cross_val_score(clone(pipeline), X, y).mean() > 0.9


def test_outliers_are_found_and_the_rate_is_kept():
    rng = np.random.default_rng(0)
    normal, strange = rng.normal(size=(4000, 3)), rng.uniform(5, 9, (200, 3))
    fitted = MixtureOutlierDetector(contamination=0.05).fit(normal)
    assert np.sum(fitted.predict(normal) == -1) == 200
    streamed = MixtureOutlierDetector(contamination=0.05, beta=0.0).partial_fit(normal)
    assert 0.03 < np.mean(streamed.predict(normal) == -1) < 0.07
    for detector in (fitted, streamed):
        assert np.mean(detector.predict(strange) == -1) > 0.99
        scores = detector.score_samples(np.vstack([normal, strange]))
        assert roc_auc_score(np.repeat([1, 0], [4000, 200]), scores) > 0.99
        decisions = detector.decision_function(normal)
        assert_allclose(decisions, detector.score_samples(normal) - detector.offset_)


def test_tail_scores_mean_the_same_with_entries_unknown():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20000, 4))
    detector = MixtureOutlierDetector(beta=0.0).partial_fit(rows)
    rows[:, 1:3] = np.nan
    tails = np.exp(detector.score_samples(rows))
    assert_allclose(np.quantile(tails, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 100])
def test_log_chi_square_tail(degrees):
    x = np.array([[0.0, 0.5, 3.0, 50.0, 300.0, 1000.0]])
    ours = log_chi_square_tail(x, np.array([[degrees]]))
    assert_allclose(ours, chi2.logsf(x, degrees), rtol=1e-9, atol=1e-14)
    # Beyond the range of the survival function it goes on without a jump.
    edge = 1330.0 + 4.0 * degrees
    beyond = log_chi_square_tail(np.array([[edge, edge + 1.0]]), np.array([[degrees]]))
    assert_allclose(np.diff(beyond)[0], -0.5, atol=0.05)
    assert np.isfinite(log_chi_square_tail(np.array([[1e300]]), np.array([[degrees]]))).all()


# -- Views -------------------------------------------------------------------


def labelled_stream(n_rows, seed=0):
    """Rows of two classes that take turns in long stretches, and move."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(n_rows) // 40) % 2
    rows = rng.normal(size=(n_rows, 2)) + np.arange(n_rows)[:, np.newaxis] / 100.0
    return rows + 1.5 * labels[:, np.newaxis] * [1.0, -1.0], np.array(["a", "b"])[labels]


def test_class_probabilities_are_those_of_bayes_rule():
    rows, labels = labelled_stream(400)
    model = MixtureClassifier().fit(rows, labels)
    first = model.experts_[0]
    joint = [
        np.log(first.frequencies[k]) + direct_log_density(first.mixtures[k], rows[:20])
        for k in range(2)
    ]
    expected = np.exp(np.array(joint) - np.logaddexp(*joint)).T
    assert_allclose(first.probabilities(rows[:20]), expected, rtol=1e-9, atol=1e-12)
    every = [expert.probabilities(rows) for expert in model.experts_]
    assert_allclose(model.predict_proba(rows), np.mean(every, axis=0), rtol=1e-12)


@pytest.mark.parametrize("half_life", [None, 100.0])
def test_chunks_make_no_difference_to_any_view(half_life):
    rows, labels = labelled_stream(300)
    whole = MixtureClassifier(half_life=half_life).partial_fit(rows, labels)
    cut = MixtureClassifier(half_life=half_life)
    for start, stop in [(0, 1), (1, 7), (7, 130), (130, 131), (131, 300)]:
        cut.partial_fit(rows[start:stop], labels[start:stop])
        cut.predict(rows[:3])
    assert_allclose(cut.predict_proba(rows), whole.predict_proba(rows), rtol=1e-6, atol=1e-9)


def test_a_drifting_stream_is_tracked():
    rows, labels = labelled_stream(600)
    right = {}
    for half_life in (None, 100.0):
        model = MixtureClassifier(half_life=half_life, max_components=20)
        hits = []
        for t in range(600):
            part = slice(t, t + 1)
            if half_life is not None or t % 20 == 0:  # the other is slow, and need not be asked
                hits.append(t > 100 and model.predict(rows[part])[0] == labels[t])
            model.partial_fit(rows[part], labels[part])
        right[half_life] = np.mean(hits[len(hits) // 3 :])
    assert right[100.0] > max(right[None], 0.9)


def test_experts_survive_a_file(tmp_path):
    rows, labels = labelled_stream(300)
    for half_life in (None, 100.0):
        for count in (30, 300):  # before and after the scale is known
            model = MixtureClassifier(half_life=half_life).partial_fit(
                rows[:count], labels[:count]
            )
            model.save(tmp_path / "model.figmn")
            loaded = figmn.load(tmp_path / "model.figmn")
            assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
            later = [m.partial_fit(rows[:50], labels[:50]) for m in (model, loaded)]
            assert_array_equal(*(m.predict_proba(rows) for m in later))


def test_settings_cannot_change_between_one_mixture_and_several():
    rows, labels = labelled_stream(50)
    model = MixtureClassifier().partial_fit(rows, labels)
    for changed in ({"delta": 1.0}, {"half_life": 100.0}):
        with pytest.raises(ValueError, match="start afresh"):
            copy.deepcopy(model).set_params(**changed).partial_fit(rows, labels)
    tracking = MixtureClassifier(half_life=100.0).partial_fit(rows, labels)
    with pytest.raises(ValueError, match="start afresh"):
        tracking.set_params(delta=1.0).partial_fit(rows, labels)


def test_a_half_life_may_change_along_the_stream():
    rows, labels = labelled_stream(200)
    model = MixtureClassifier(half_life=100.0).partial_fit(rows, labels)
    model.set_params(half_life=10.0).partial_fit(rows, labels)
    assert {mixture.settings.half_life for mixture in model.experts_[0].mixtures} == {10.0}


def test_a_stream_is_predicted_by_which_class_follows_which():
    """Inputs of pure noise, and labels that stay nine times out of ten."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 2))
    labels = np.cumsum(rng.uniform(size=1500) < 0.1) % 3
    model = MixtureClassifier(half_life=500.0).partial_fit(rows[:1], labels[:1], classes=[0, 1, 2])
    hits = []
    for t in range(1, 1500):
        hits.append(model.predict(rows[t : t + 1])[0] == labels[t])
        model.partial_fit(rows[t : t + 1], labels[t : t + 1])
    assert np.mean(hits[500:]) == pytest.approx(0.9, abs=0.02)
    view = model.experts_[0]
    followers = view.followers[view.latest] / view.followers[view.latest].sum()
    assert followers[labels[-1]] == pytest.approx(0.9, abs=0.04)
    assert followers.argmin() == (labels[-1] + 2) % 3  # which never follows


def two_classes():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    return rows, np.arange(60) % 2


@pytest.mark.parametrize("half_life", [None, 100.0])
def test_a_classifier_is_kept_as_it_is_not_as_it_was_told_to_become(half_life, tmp_path):
    rows, labels = two_classes()
    model = MixtureClassifier(half_life=half_life).fit(rows, labels).set_params(delta=1.0)
    model.save(tmp_path / "model")
    loaded = figmn.load(tmp_path / "model")
    assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
    assert loaded.delta == 1.0
    for each in (model, loaded):
        with pytest.raises(ValueError, match="start afresh with fit"):
            each.partial_fit(rows, labels)


@pytest.mark.parametrize(
    "settings", [{"max_components": np.int64(5)}, {"half_life": np.float32(50.0)}]
)
def test_numbers_of_numpy_as_parameters_are_kept(settings, tmp_path):
    rows, labels = two_classes()
    model = MixtureClassifier(**settings).fit(rows, labels)
    model.save(tmp_path / "model")
    assert_array_equal(
        figmn.load(tmp_path / "model").predict_proba(rows), model.predict_proba(rows)
    )


def test_a_refused_setting_leaves_no_trace():
    rows, labels = two_classes()
    model = MixtureClassifier().partial_fit(rows, labels).partial_fit(rows[:9], labels[:9])
    model.set_params(max_components=0)
    with pytest.raises(ValueError, match="max_components"):
        model.partial_fit(rows, labels)
    model.set_params(max_components=None).partial_fit(rows, labels)
    # Nor do settings that come with labels which are refused.
    declared = MixtureClassifier().partial_fit(rows, labels, classes=[0, 1])
    declared.set_params(max_components=3)
    with pytest.raises(ValueError, match="not declared"):
        declared.partial_fit(rows[:1], [7])
    assert declared.mixture_.settings.max_components != 3


def test_settings_changed_after_fit_are_heeded():
    rows, labels = two_classes()
    model = MixtureClassifier().partial_fit(rows, labels).partial_fit(rows, labels)
    model.set_params(max_components=5).fit(rows, labels)
    assert model.mixture_.settings.max_components == 5
    model.set_params(max_components=7).partial_fit(rows, labels)
    assert model.mixture_.settings.max_components == 7


def test_a_changed_contamination_is_heeded():
    rows, _ = two_classes()
    detector = MixtureOutlierDetector(contamination=0.01).partial_fit(rows)
    assert detector.offset_ == np.log(0.01)
    detector.set_params(contamination=0.2).partial_fit(rows)
    assert detector.offset_ == np.log(0.2)


def test_labels_of_mixed_kinds_are_refused_with_a_reason():
    rows, _ = two_classes()
    mixed = np.array(["a", 1] * 30, dtype=object)
    with pytest.raises(ValueError, match="use numbers or strings, not both"):
        MixtureClassifier().fit(rows, mixed)
