"""Each experiment on a tiny slice, against closed forms, scipy and scikit-learn."""

from __future__ import annotations

import importlib.util
import re
import sys
from itertools import count

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_score

from paper import (
    accuracy,
    clustering,
    digits,
    dimensions,
    high,
    reinforcement,
    stream,
    timing,
)
from paper.classifiers import OURS, PEERS, PaperClassifier, classifier
from paper.datasets import NAMES, Images, load_dataset
from paper.experiment import Figure, Plan, Table
from paper.registry import EXPERIMENTS, chosen
from paper.surroundings import surroundings

QUICK, FULL = Plan(full=False), Plan(full=True)


def rows_of(table):
    return {row[0]: row[1:] for row in table.rows}


@pytest.mark.parametrize("plan", [QUICK, FULL, Plan(seed=3)])
@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_units_have_names_of_their_own_that_fit_files(experiment, plan):
    units = experiment.units(plan)
    names = [unit.name for unit in units]
    assert len(set(names)) == len(names)
    assert not any(set(name) & set("/\\: ") for name in names)
    settings = [unit.settings for unit in units]
    assert all(settings.count(one) == 1 for one in settings)


def test_experiments_are_chosen_by_name_in_their_order():
    assert [e.name for e in chosen([])] == list(EXPERIMENTS)
    assert [e.name for e in chosen(["dimensions", "accuracy"])] == ["accuracy", "dimensions"]
    with pytest.raises(ValueError, match=r"no experiment 'acuracy': choose from .*accuracy"):
        chosen(["accuracy", "acuracy"])


def test_the_surroundings_name_machine_and_versions():
    around = surroundings()
    assert around["numpy"] == np.__version__
    assert around["Python"] == ".".join(map(str, sys.version_info[:3]))
    assert "cores" in around["machine"]
    assert around == surroundings()


# -- Accuracy ------------------------------------------------------------------------------


def test_both_algorithms_agree_on_every_fold():
    result = accuracy.measure("iris", "igmn", shuffle=0, n_rows=80)
    fast = accuracy.measure("iris", "nearest", shuffle=0, n_rows=80)
    assert len(result["accuracy"]) == accuracy.N_FOLDS
    assert max(result["difference"]) < 1e-8
    assert result["components"] == result["figmn_components"] == fast["components"]
    assert result["accuracy"] == fast["accuracy"]


def test_accuracies_are_those_of_cross_validation():
    data = load_dataset("glass")
    X, y = accuracy.shuffled(data, 5)
    X, y = X[:100], y[:100]
    model = classifier("rbf-svm", data.nominal, 5)
    with pytest.warns(UserWarning, match="least populated"):
        truth = 100.0 * cross_val_score(model, X, y, cv=StratifiedKFold(accuracy.N_FOLDS))
    result = accuracy.measure("glass", "rbf-svm", shuffle=5, n_rows=100)
    assert result["accuracy"] == pytest.approx(truth)
    assert len(result["bytes"]) == accuracy.N_FOLDS


@pytest.mark.parametrize("name", [*OURS, *PEERS])
def test_every_classifier_takes_gaps_and_nominal_columns(name):
    result = accuracy.measure("labor-neg-data", name, shuffle=0)
    assert np.mean(result["accuracy"]) > 70.0
    assert min(result["bytes"]) > 100
    assert ("components" in result) == (name in OURS)


def test_indicators_are_conditional_means():
    """Each component's regression of the classes on the inputs, weighted by its posterior."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + 2.0 * y[:, np.newaxis]
    model = PaperClassifier().fit(X, y)
    mixture = model.model_
    assert mixture.n_components > 1
    posteriors, regressions = [], []
    for mean, covariance, weight in zip(
        mixture.means, mixture.covariances, mixture.weights, strict=True
    ):
        inputs = covariance[:3, :3]
        posteriors.append(weight * stats.multivariate_normal(mean[:3], inputs).pdf(X))
        gain = covariance[3:, :3] @ np.linalg.inv(inputs)
        regressions.append(mean[3:] + (X - mean[:3]) @ gain.T)
    shares = np.array(posteriors) / np.sum(posteriors, axis=0)
    expected = np.einsum("kn,knc->nc", shares, regressions)
    np.testing.assert_allclose(model.indicators(X), expected, atol=1e-9)
    assert np.array_equal(model.predict(X), expected.argmax(axis=1))


def test_tables_of_accuracy():
    """Every figure of the tables, recomputed from the folds."""
    rng = np.random.default_rng(0)
    results = {
        unit.name: {
            "accuracy": rng.normal(85.0, 5.0, 10).tolist(),
            "bytes": [2000] * 10,
            "components": [3] * 10,
            "figmn_components": [3] * 10,
            "difference": [1e-14] * 10,
        }
        for unit in accuracy.units(QUICK)
    }
    folds = {
        (name, model): [
            value
            for shuffle in range(5)
            for value in results.get(f"{name}-{model}-{shuffle}", {"accuracy": []})["accuracy"]
        ]
        for name in NAMES
        for model in (*OURS, *PEERS)
    }
    table = rows_of(accuracy.accuracy_table(QUICK, results))
    iris = folds["iris", "defaults"]
    assert table["iris"][2] == f"{np.mean(iris):.1f} ± {np.std(iris, ddof=1):.1f}"
    assert table["iris"][0] == "97.3 ± 3.4"
    assert table["glass"][0] == "65.4 ± 4.9 ●"
    average = np.mean([np.mean(folds[name, "nearest"]) for name in NAMES])
    assert table["average"][1] == f"{average:.1f}"

    tests = rows_of(accuracy.tests_table(QUICK, results, "nearest"))
    pairs = folds["glass", "nearest"][:10], folds["glass", "forest"]
    truth = stats.ttest_rel(*pairs)
    difference, plain, _ = re.split(r" \(| / ", tests["glass"][0])
    assert float(difference) == pytest.approx(np.mean(pairs[0]) - np.mean(pairs[1]), abs=0.051)
    assert float(plain.split()[0]) == pytest.approx(truth.pvalue, abs=5.1e-4)
    assert ("●" in plain or "○" in plain) == (truth.pvalue < 0.05)

    results["iris-igmn-0"]["components"] = [3] * 9 + [4]
    results["iris-igmn-0"]["difference"] = [1e-3] * 10
    claims = {check.claim: check for check in accuracy.checks(QUICK, results)}
    broken = [claim for claim, check in claims.items() if "IGMN and" in claim and not check.holds]
    assert len(broken) == 2
    section = accuracy.present(QUICK, results)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert len(tables) == len(section.blocks) - 1
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)


# -- Time ----------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Every look at the clock comes a second after the one before."""
    ticks = count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(ticks)))


@pytest.mark.usefixtures("clock")
def test_time_is_projected_from_the_rows_that_a_budget_allows():
    done = []
    rows = np.arange(10.0).reshape(5, 2)
    assert timing.projected_seconds(done.append, rows, 100, budget=3.0) == (100.0, 3)
    assert np.array_equal(done, rows[:3])
    assert timing.projected_seconds(done.append, rows, 100, budget=1e9) == (100.0, 5)
    assert timing.projected_seconds(done.append, rows, 7, budget=0.5) == (7.0, 1)
    assert timing.best_seconds(lambda: None, repeats=3) == 1.0


def test_dimensions_are_timed_and_shown():
    result = dimensions.measure(n_inputs=2, budget=1e-9, seed=0, repeats=1)
    assert (result["igmn_trained_rows"], result["igmn_tested_rows"]) == (2, 1)
    assert all(
        result[f"{a}_{b}"] > 0.0 for a in ("igmn", "figmn") for b in ("training", "testing")
    )
    results = {
        f"{d}": {
            **result,
            "igmn_training": 1e-6 * d**3,
            "figmn_training": 1e-7 * d**2,
            "igmn_testing": 1e-6 * d**3,
            "figmn_testing": 1e-8 * d,
        }
        for d in dimensions.DIMENSIONS
    }
    section = dimensions.present(QUICK, results)
    (check,) = section.checks
    assert check.holds
    assert "2.0 and 3.0" in check.outcome
    figure, table = section.blocks
    assert figure.drawing.svg.startswith("<svg")
    assert rows_of(table)["1024"][2] == "10,240"


def test_high_dimensions_against_the_closed_form():
    """One Gaussian over pixels and indicators classifies as regression on its moments does."""
    pixels, target = load_digits(return_X_y=True)
    pixels = (pixels * (255.0 / 16.0)).astype(np.uint8)
    data = Images("small", pixels[:300], target[:300], pixels[300:400], target[300:400])
    result = high.figmn_times(data, n_train=300)
    assert (result["trained_rows"], result["tested_rows"]) == (300, 100)
    assert result["components"] == 1
    joint = high.joined(data.train, data.train_target)
    scatter = np.cov(joint.T, bias=True) + np.diag(high.joint_scale(data) ** 2) / 300
    gain = scatter[64:, :64] @ np.linalg.inv(scatter[:64, :64])
    answer = joint[:, 64:].mean(axis=0) + (data.test / 255.0 - joint[:, :64].mean(axis=0)) @ gain.T
    assert result["accuracy"] == 100.0 * np.mean(answer.argmax(axis=1) == data.test_target)

    slow = high.igmn_times(data, n_train=300, budget=1e-9)
    assert (slow["trained_rows"], slow["tested_rows"]) == (1, 1)
    assert min(slow["training"], slow["testing"], slow["inversions"]) > 0.0
    results = {
        f"{name}-{algorithm}": {**(slow if algorithm == "igmn" else result), "training": seconds}
        for name in high.SETS
        for algorithm, seconds in (("igmn", 5000.0), ("figmn", 10.0))
    }
    section = high.present(QUICK, results)
    assert all(check.holds and check.outcome == "500 times" for check in section.checks)
    assert rows_of(section.blocks[0])["CIFAR-10, testing"][0] == "-"
    assert "random numbers" in section.text[0]


def test_random_images_have_the_shape_of_the_real_ones():
    images = high.random_images("cifar10", 0)
    assert images.train.shape[1] == images.test.shape[1] == 3072
    assert len(images.train) == len(images.train_target) > 3072


# -- Digits --------------------------------------------------------------------------------


def clusters(n_rows, seed):
    rng = np.random.default_rng(seed)
    return 255.0 * (rng.normal(size=(n_rows, 3)) * 0.1 + rng.integers(2, size=(n_rows, 1)))


def test_clustering_is_judged_by_densities():
    train, test = clusters(400, 0), clusters(50, 1)
    result = clustering.batch_em(train, test, n_components=2, seed=0)
    with pytest.warns(Warning, match="did not converge"):
        em = clustering._started(train / 255.0, 2, 0).fit(train / 255.0)
    assert result["held_out"] == pytest.approx(em.score(test / 255.0), rel=1e-9)
    densities = [
        weight * stats.multivariate_normal(mean, covariance + 0.01 * np.eye(3)).pdf(test / 255.0)
        for mean, covariance, weight in zip(em.means_, em.covariances_, em.weights_, strict=True)
    ]
    truth = np.log(np.sum(densities, axis=0)).mean()
    assert result["held_out_with_floor"] == pytest.approx(truth, rel=1e-9)

    ours = clustering.one_pass(train, test, delta=1.0, beta=1e-3)
    assert ours["components"] >= 2
    assert ours["held_out"] == pytest.approx(result["held_out"], abs=1.0)
    assert sum(ours["masses"]) == pytest.approx(400.0, abs=0.1 * len(ours["masses"]))


def test_small_digits_are_clustered_and_shown():
    results = {u.name: clustering.measure(**u.settings) for u in clustering.units(QUICK)}
    section = clustering.present(QUICK, results)
    table, figure = section.blocks
    assert rows_of(table)["components"][0] == "208"
    assert isinstance(figure, Figure)
    assert "not MNIST" in section.text[0]


def test_classes_are_learnt_alike_in_chunks_of_any_sizes():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(120, 5)), rng.integers(3, size=120)
    settings = {"n_components": 2, "noise": 0.1, "floor": 0.2}
    settings |= {"width": 0.5, "beta": 0.01, "seed": 1}
    whole = digits.ClassMixtures(5, 3, **settings)
    whole.learn(rows, labels)
    parts = digits.ClassMixtures(5, 3, **settings)
    for chunk in (slice(0, 7), slice(7, 100), slice(100, 120)):
        parts.learn(rows[chunk], labels[chunk])
    queries = rng.normal(size=(50, 5))
    for one, other in zip(whole.mixtures, parts.mixtures, strict=True):
        assert np.array_equal(one.log_density(queries), other.log_density(queries))
    assert np.array_equal(whole.predict(queries), parts.predict(queries))


def test_one_gaussian_a_class_is_quadratic_discriminant_analysis():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [2000, 1000])
    rows = rng.normal(size=(3000, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]]) + labels[:, np.newaxis]
    model = digits.ClassMixtures(
        2, 2, n_components=1, noise=1e-4, floor=0.0, width=0.1, beta=1e-3, seed=0
    )
    model.learn(rows, labels)
    queries = rng.normal(size=(2000, 2)) * 2.0
    truth = QuadraticDiscriminantAnalysis().fit(rows, labels).predict(queries)
    assert np.mean(model.predict(queries) == truth) > 0.995
    model.floor = 5.0
    floored = [
        np.log(np.mean(labels == label))
        + stats.multivariate_normal(
            rows[labels == label].mean(axis=0), np.cov(rows[labels == label].T) + 5.0 * np.eye(2)
        ).logpdf(queries)
        for label in (0, 1)
    ]
    assert np.mean(model.predict(queries) == np.argmax(floored, axis=0)) > 0.995


def test_small_digits_are_classified_and_shown():
    results = {u.name: digits.measure(**u.settings) for u in digits.units(QUICK)}
    assert results["test-own"]["accuracy"] > 93.0
    assert results["test-own"]["trained_rows"] == 1500
    assert results["validation-5-0.005-0.01"]["trained_rows"] == 1200
    best = max(r["accuracy"] for name, r in results.items() if name.startswith("validation"))
    assert results["validation-5-0.005-0.01"]["accuracy"] == best
    section = digits.present(QUICK, results)
    assert section.checks == ()
    assert "not MNIST" in section.text[0]
    full = {u.name: results["test-own"] for u in digits.units(FULL)}
    assert len(digits.present(FULL, full).checks) == 1


# -- The rest ------------------------------------------------------------------------------


def test_learning_along_a_stream():
    results = {
        u.name: stream.measure(**{**u.settings, **({"n_rows": 60} if u.name in NAMES else {})})
        for u in stream.units(QUICK)
        if u.name != "regression"
    }
    results["regression"] = {
        "rows": 442,
        "inside": 90.0,
        "errors": {name: [1.0, 3.0] for name in ("ours", "ridge", "forest")},
    }
    assert results["iris"]["accuracy"] > 70.0
    weights = results["growth"]["moments"][-1]["weights"]
    assert np.sum(weights) == pytest.approx(1.0)
    figure, streams, regression = stream.present(QUICK, results).blocks
    assert figure.drawing.svg.startswith("<svg")
    assert rows_of(streams)["iris"][0] == "60"
    assert rows_of(regression)["root mean squared error"][0] == "2.0 ± 1.4"


def test_a_quick_run_shows_a_few_episodes_of_every_task():
    units = reinforcement.units(QUICK)
    assert {unit.settings["problem"] for unit in units} == set(reinforcement.PROBLEMS)
    assert {unit.settings["contestant"] for unit in units} == {"planning"}
    results = {u.name: reinforcement.measure(**{**u.settings, "episodes": 2}) for u in units}
    section = reinforcement.present(QUICK, results)
    assert section.checks == ()  # a few episodes prove nothing
    assert "make results" in section.text[0]
    ours, papers = section.blocks
    for unit in units:
        returns = results[unit.name]["returns"]
        threshold, shown, late = rows_of(ours)[unit.settings["problem"]]
        assert [float(value) for value in shown.split(", ")] == returns  # whole numbers
        assert late == f"{returns[1]:.1f}"
        assert float(threshold) == reinforcement.PROBLEMS[unit.settings["problem"]].threshold
    assert not any("agent" in heading for heading in papers.header)


def test_agents_are_run_with_gymnasium_alone(monkeypatch):
    seeds = {unit.settings["seed"] for unit in reinforcement.units(FULL)}
    assert seeds == set(range(2000, 2010))
    assert not seeds & {u.settings["seed"] for u in reinforcement.units(Plan(full=True, seed=1))}
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert reinforcement.units(FULL) == reinforcement.units(QUICK) == []
    section = reinforcement.present(FULL, {})
    assert "pip install 'figmn[rl]'" in section.text[0]
    assert rows_of(section.blocks[0])["Mountain Car"] == (
        "403.8 ± 79.2",
        "1872.5 ± 6.0",
        "4064.0 ± 246.2",
        "-",
    )


@pytest.mark.parametrize("contestant", reinforcement.CONTESTANTS)
def test_every_agent_learns_for_as_many_episodes_as_it_is_given(contestant):
    result = reinforcement.measure(contestant, "Cart-Pole", seed=7, episodes=2)
    assert result["solved"] is None
    assert len(result["returns"]) == 2
    assert result["steps"] == sum(result["returns"])  # a reward of one for each step


def made_up_runs(solved):
    """Results whose runs are solved after so many episodes, or not at all."""
    results = {}
    for unit in reinforcement.units(FULL):
        settings = unit.settings
        after = solved if settings["contestant"] == "planning" else None
        n_episodes = settings["episodes"] if after is None else after + 100
        results[unit.name] = {
            **{name: settings[name] for name in ("contestant", "problem", "seed")},
            "solved": after,
            "returns": [-1.0] * n_episodes,
            "steps": 1000,
            "seconds": 0.5,
        }
    return results


def test_runs_that_were_not_solved_are_reported_and_counted():
    section = reinforcement.present(FULL, made_up_runs(solved=8))
    assert [check.holds for check in section.checks] == [True] * 4
    main, figure, runs, replaced = section.blocks
    assert rows_of(main)["Acrobot"][-2:] == ("8.0 ± 0.0", "unsolved after 1500")
    assert figure.drawing.svg.startswith("<svg")
    assert rows_of(runs)["Q-learning agent, Cart-Pole"] == (
        "2000 to 2009",
        ", ".join(["unsolved"] * 10),
        "-1.0 ± 0.0",
        "0.50",
    )
    assert rows_of(replaced)["planning agent, Cart-Pole"][:2] == (
        "8.0 ± 0.0",
        "unsolved after 200",
    )


def test_one_run_that_was_not_solved_breaks_the_claim():
    results = made_up_runs(solved=8)
    one = results["planning-cart-pole-2003"]
    one["solved"], one["returns"] = None, [-1.0] * 500
    section = reinforcement.present(FULL, results)
    assert [check.holds for check in section.checks] == [False, True, True, True]
    mean = (9 * 8 + 500) / 10
    assert f"{mean:.1f} ±" in rows_of(section.blocks[0])["Cart-Pole"][-2]
    assert "1 of 10 unsolved" in rows_of(section.blocks[0])["Cart-Pole"][-2]
