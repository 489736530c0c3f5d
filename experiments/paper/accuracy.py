"""Experiment 1: equivalence of IGMN and FIGMN, accuracy, components, model sizes."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from paper import published
from paper.classifiers import OURS, PEERS, TITLES, classifier
from paper.datasets import NAMES, Dataset, load_dataset
from paper.experiment import (
    Check,
    Experiment,
    Figure,
    Plan,
    Result,
    Results,
    Section,
    Table,
    Unit,
)
from paper.plots import bars
from paper.statistics import SIGNIFICANT, TTest, paired_t_test, spread
from paper.text import plus_minus
from paper.typing import AnyArray, Array, Index

N_FOLDS: Final = 10
_OVERLAP: Final = 1.0 / (N_FOLDS - 1)  # rows to test over rows to train
_LARGEST_DIFFERENCE: Final = 1e-8
_PAPERS_MARK: Final = "● in the paper's columns: significantly worse than its random forest."


# -- Work ----------------------------------------------------------------------------------


def _shuffles(plan: Plan, model: str) -> int:
    """How many orders of the rows a model is judged on, the first of them shared by all."""
    if plan.full:
        return 5 if model == "igmn" else 10
    return 3 if model in OURS else 1  # three minutes are short


def _unit(plan: Plan, name: str, model: str, shuffle: int) -> Unit:
    settings = {"dataset": name, "model": model, "shuffle": plan.seed + shuffle}
    return Unit(f"{name}-{model}-{shuffle}", settings)


def units(plan: Plan) -> list[Unit]:
    """A unit for each data set, model and order of the rows; the slowest come first."""
    return [
        _unit(plan, name, model, shuffle)
        for model in ("igmn", *PEERS, *OURS)
        for name in sorted(NAMES, key=lambda name: -published.SHAPES[name].columns)
        for shuffle in range(_shuffles(plan, model))
    ]


def measure(dataset: str, model: str, shuffle: int, n_rows: int | None = None) -> Result:
    """Ten-fold cross-validation of one model on one data set in one order.

    Parameters
    ----------
    dataset, model : str
    shuffle : int
        Seed of the order of the rows.
    n_rows : int or None
        Take only the first of them; all by default.

    Returns
    -------
    dict
        For each fold the accuracy in per cent, the bytes of the model and, of
        mixtures, the components; for IGMN also FIGMN's components and the largest
        difference of an indicator's prediction between the two.
    """
    data = load_dataset(dataset)
    X, y = shuffled(data, shuffle)
    X, y = X[:n_rows], y[:n_rows]
    model_of_folds = classifier(model, data.nominal, shuffle)
    result: Result = {"accuracy": [], "bytes": []}
    with warnings.catch_warnings():
        # At its defaults the network may stop before it has converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for train, test in folds(y):
            fitted = clone(model_of_folds).fit(X[train], y[train])
            correct = fitted.predict(X[test]) == y[test]
            result["accuracy"].append(100.0 * float(np.mean(correct)))
            result["bytes"].append(model_bytes(fitted[-1]))
            if hasattr(fitted[-1], "n_components_"):
                result.setdefault("components", []).append(int(fitted[-1].n_components_))
            if model == "igmn":
                twin = classifier("nearest", data.nominal, shuffle).fit(X[train], y[train])
                inputs = fitted[0].transform(X[test])
                apart = np.abs(fitted[-1].indicators(inputs) - twin[-1].indicators(inputs))
                result.setdefault("difference", []).append(float(apart.max()))
                result.setdefault("figmn_components", []).append(int(twin[-1].n_components_))
    return result


def model_bytes(model: Any) -> int:
    """Size of a model as it would be kept: in a model file if it has one, else pickled."""
    keeper = getattr(model, "model_", model)
    if not hasattr(keeper, "save"):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        keeper.save(path)
        return path.stat().st_size


def shuffled(data: Dataset, seed: int) -> tuple[Array, AnyArray]:
    """Rows and labels in a random order."""
    order = np.random.default_rng(seed).permutation(len(data.target))
    return data.data[order], data.target[order]


def folds(y: AnyArray) -> Iterator[tuple[Index, Index]]:
    """Stratified folds, the rows of each in the order given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # soybean has a class of eight
        yield from StratifiedKFold(N_FOLDS).split(np.zeros(len(y)), y)


# -- What came out -------------------------------------------------------------------------


def _joined(plan: Plan, results: Results, name: str, model: str, what: str) -> Array:
    """The figures of all folds in all orders, of shape (shuffles * N_FOLDS,)."""
    parts = [
        results[_unit(plan, name, model, shuffle).name][what]
        for shuffle in range(_shuffles(plan, model))
    ]
    return np.concatenate(parts).astype(np.float64)


def averages(plan: Plan, results: Results) -> dict[str, float]:
    """Mean accuracy over the seven sets, in per cent, of each model."""
    return {
        model: float(
            np.mean([_joined(plan, results, name, model, "accuracy").mean() for name in NAMES])
        )
        for model in (*OURS, *PEERS)
    }


def compared(plan: Plan, results: Results, name: str, ours: str, peer: str) -> tuple[TTest, TTest]:
    """The plain t-test on the folds of the first order, and the corrected one on all."""
    first = _joined(plan, results, name, ours, "accuracy")
    second = _joined(plan, results, name, peer, "accuracy")
    shared = min(len(first), len(second))
    plain = paired_t_test(first[:N_FOLDS], second[:N_FOLDS])
    return plain, paired_t_test(first[:shared], second[:shared], _OVERLAP)


def _mark(test: TTest) -> str:
    if not test.is_significant:
        return ""
    return " ○" if test.difference > 0.0 else " ●"


def _papers(model: str, name: str) -> str:
    """The paper's accuracy, with its mark."""
    mark = " ●" if name in published.BELOW_FOREST[model] else ""
    return plus_minus(published.ACCURACY[model][name]) + mark


def accuracy_table(plan: Plan, results: Results) -> Table:
    """Accuracies, with the paper's beside the first of ours."""
    models = (*OURS, *PEERS)
    header = ("data set", "paper: FIGMN", *(TITLES[model] for model in models))
    rows = [
        (
            name,
            _papers("figmn", name),
            *(plus_minus(spread(_joined(plan, results, name, m, "accuracy"))) for m in models),
        )
        for name in NAMES
    ]
    mean = averages(plan, results)
    paper = published.AVERAGE_ACCURACY["figmn"]
    rows.append(("average", f"{paper:.1f}", *(f"{mean[model]:.1f}" for model in models)))
    return Table(
        "Accuracy in per cent, mean ± standard deviation over folds (paper: table 2)",
        header,
        rows,
        (
            f"Nearest variant: sigma² = 0.5 var, beta = 2e-6; the paper states "
            f"{published.SETTINGS}. Our defaults: MixtureClassifier() as it comes, one setting "
            "for all sets; gaps are left as they are.",
            _PAPERS_MARK,
            f"Orders of the rows, of ten folds each: {_shuffles(plan, 'nearest')} for ours, "
            f"{_shuffles(plan, 'forest')} for the others.",
        ),
    )


def peers_table(plan: Plan, results: Results) -> Table:
    """The batch models' accuracies beside those in the paper."""
    header = ("data set", *(f"{TITLES[p]}, {who}" for p in PEERS for who in ("paper", "here")))

    def cells(name: str) -> Iterator[str]:
        for peer in PEERS:
            yield _papers(peer, name)
            yield plus_minus(spread(_joined(plan, results, name, peer, "accuracy")))

    mean = averages(plan, results)
    rows = [(name, *cells(name)) for name in NAMES]
    both = [f"{value:.1f}" for p in PEERS for value in (published.AVERAGE_ACCURACY[p], mean[p])]
    rows.append(("average", *both))
    return Table(
        "The others: accuracy in per cent, as the paper reports it (Weka) and here "
        "(scikit-learn, at its defaults)",
        header,
        rows,
        (
            "The paper's network trains with dropout, 20 % of inputs and 50 % of hidden units; "
            "ours is MLPClassifier with as many hidden units, 100, and no dropout: rectified "
            "linear units, Adam, at most 200 passes.",
            "Here the inputs of all four are scaled, nominal columns one-hot, gaps filled.",
            _PAPERS_MARK,
        ),
    )


def tests_table(plan: Plan, results: Results, ours: str) -> Table:
    """Differences of accuracy from each of the others, with p-values."""

    def cell(name: str, peer: str) -> str:
        plain, corrected = compared(plan, results, name, ours, peer)
        return (
            f"{corrected.difference:+.1f} ({plain.p_value:.3f}{_mark(plain)} / "
            f"{corrected.p_value:.3f}{_mark(corrected)})"
        )

    rows = [(name, *(cell(name, peer) for peer in PEERS)) for name in NAMES]
    return Table(
        f"{TITLES[ours]}, against each of the others: points of accuracy (p-value of the plain "
        "paired t-test / of the corrected one)",
        ("data set", *(TITLES[peer] for peer in PEERS)),
        rows,
        (
            f"● significantly worse than the other, ○ significantly better, at p = {SIGNIFICANT}.",
            "Plain: Student's paired t-test on the ten folds of the first order, as the paper "
            "describes. Corrected: on the folds of all orders that both models have seen, with "
            "the variance of Nadeau and Bengio, since folds share training rows.",
        ),
    )


def accuracy_figure(plan: Plan, results: Results) -> Figure:
    """Bars of the paper's mixture and ours, and of the best batch model."""
    shown = ("nearest", "defaults", "forest")
    groups = {
        name: {
            "paper: FIGMN": published.ACCURACY["figmn"][name].mean,
            **{TITLES[m]: _joined(plan, results, name, m, "accuracy").mean() for m in shown},
        }
        for name in NAMES
    }
    return Figure(
        "accuracy",
        "Mean accuracy over folds, in per cent; the axis begins at 50 %.",
        bars(groups, "accuracy, %", start=50.0),
    )


def equivalence_table(plan: Plan, results: Results) -> Table:
    """Accuracies and components of both algorithms, and how far their predictions are apart."""
    rows = []
    for name in NAMES:
        ours, reference, apart = _twins(plan, results, name)
        slow = _joined(plan, results, name, "igmn", "accuracy")
        fast = _joined(plan, results, name, "nearest", "accuracy")[: len(slow)]
        rows.append(
            (
                name,
                plus_minus(spread(slow)),
                plus_minus(spread(fast)),
                plus_minus(published.COMPONENTS[name]),
                plus_minus(spread(reference)),
                plus_minus(spread(ours)),
                f"{int(np.sum(ours == reference))} of {len(ours)}",
                f"{apart.max():.0e}",
            )
        )
    return Table(
        "IGMN beside FIGMN on the same folds: accuracy and components created, mean ± standard "
        "deviation over folds (paper: table 3), and the largest difference of a prediction",
        (
            "data set",
            "IGMN, accuracy, %",
            "FIGMN, accuracy, %",
            "paper: components, both",
            "IGMN, components",
            "FIGMN, components",
            "folds with equal counts",
            "largest difference",
        ),
        rows,
        (
            "Both learn the nearest variant (see the next table). The predictions compared are "
            "the class indicators, which lie between 0 and 1.",
        ),
    )


def _twins(plan: Plan, results: Results, name: str) -> tuple[Array, Array, Array]:
    """Components of FIGMN and of IGMN, and differences of predictions, for each fold."""
    return (
        _joined(plan, results, name, "igmn", "figmn_components"),
        _joined(plan, results, name, "igmn", "components"),
        _joined(plan, results, name, "igmn", "difference"),
    )


def sizes_table(plan: Plan, results: Results) -> Table:
    """Kilobytes of pickled models."""
    models = (*OURS, *PEERS)

    def kilobytes(name: str, model: str) -> float:
        return float(_joined(plan, results, name, model, "bytes").mean()) / 1000.0

    sizes = {name: {model: kilobytes(name, model) for model in models} for name in NAMES}
    rows = [(name, *(f"{size:,.1f}" for size in sizes[name].values())) for name in NAMES]
    total = {model: sum(sizes[name][model] for name in NAMES) for model in models}
    rows.append(("in all", *(f"{total[model]:,.1f}" for model in models)))
    ratios = [sizes[name]["forest"] / sizes[name]["nearest"] for name in NAMES]
    return Table(
        "Size of the trained model in kB (1000 bytes), mean over folds",
        ("data set", *(TITLES[model] for model in models)),
        rows,
        (
            "Ours as model files, which hold a matrix and its rounding errors for each "
            "component; the others pickled.",
            f"The paper: the random forest takes {published.FOREST_OVER_IGMN_BYTES:.0f} times "
            "the memory of the mixture. Here, beside the nearest variant: "
            f"{min(ratios):.1f} to {max(ratios):.0f} times on single sets, "
            f"{total['forest'] / total['nearest']:.1f} times in all.",
        ),
    )


def _shapes_table(names: Sequence[str]) -> Table:
    def cells(name: str) -> tuple[str, ...]:
        data, paper = load_dataset(name), published.SHAPES[name]
        ours = (*data.data.shape, len(np.unique(data.target)))
        return (name, *(f"{theirs} / {here}" for theirs, here in zip(paper, ours, strict=True)))

    return Table(
        "Data sets, paper / here (paper: table 1)",
        ("data set", "rows", "columns", "classes"),
        [cells(name) for name in names],
        ("Of the seven classes that glass declares six occur.",),
    )


def checks(plan: Plan, results: Results) -> tuple[Check, ...]:
    """What must hold of accuracies and of the two algorithms."""
    mean = averages(plan, results)
    paper, forest = published.AVERAGE_ACCURACY["figmn"], published.AVERAGE_ACCURACY["forest"]
    twins = [_twins(plan, results, name) for name in NAMES]
    equal = sum(int(np.sum(ours == reference)) for ours, reference, _ in twins)
    count = sum(len(ours) for ours, _, _ in twins)
    apart = max(float(differences.max()) for _, _, differences in twins)
    return (
        Check(
            f"The nearest variant's average is within 1 point of the paper's {paper} %",
            f"{mean['nearest']:.2f} %",
            abs(mean["nearest"] - paper) <= 1.0,
        ),
        Check(
            f"Our defaults' average is at least the paper's best, its random forest: {forest} %",
            f"{mean['defaults']:.2f} % over {_shuffles(plan, 'defaults')} orders of the rows",
            mean["defaults"] >= forest,
        ),
        Check(
            "IGMN and FIGMN create as many components on every fold",
            f"on {equal} of {count} folds",
            equal == count,
        ),
        Check(
            f"IGMN and FIGMN predict the same, to {_LARGEST_DIFFERENCE:.0e}",
            f"largest difference {apart:.0e}",
            apart <= _LARGEST_DIFFERENCE,
        ),
    )


def present(plan: Plan, results: Results) -> Section:
    """Tables 1 to 3 of the paper, beside ours."""
    return Section(
        "Equivalence and accuracy",
        (
            "Seven small data sets, ten stratified folds. IGMN inverts covariances, FIGMN "
            "updates precisions by rank-one terms: they must agree in everything but time. "
            "Mixtures see each row once, in the order of the stream; the others are batch "
            "models.",
        ),
        (
            _shapes_table(NAMES),
            equivalence_table(plan, results),
            accuracy_table(plan, results),
            accuracy_figure(plan, results),
            *(tests_table(plan, results, ours) for ours in OURS),
            peers_table(plan, results),
            sizes_table(plan, results),
        ),
        checks(plan, results),
    )


EXPERIMENT: Final = Experiment(
    "accuracy",
    "IGMN and FIGMN agree; accuracy on seven data sets (tables 1 to 3)",
    units,
    measure,
    present,
    parallel=True,
    spared=("rl",),
)
