"""Experiment 4: clustering digits in one pass, beside batch EM."""

from __future__ import annotations

import time
import warnings
from typing import Any, Final

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from figmn import Mixture
from paper import published
from paper.datasets import load_images
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
from paper.memory import peak_bytes
from paper.plots import images
from paper.text import seconds, times
from paper.timing import load_kernels
from paper.typing import AnyArray, Array

_CHUNK: Final = 1_000
_FLOOR: Final = 0.01  # added to all variances, for a second look at held-out digits
_N_HELD_OUT: Final = 2_000
_SHOWN: Final = 10  # means to show

FULL: Final = {
    "digits": "mnist",
    "delta": 1.6,
    "beta": 0.01,
    "em_components": published.CLUSTERING_COMPONENTS,
}
QUICK: Final = {"digits": "scikit-learn", "delta": 1.3, "beta": 0.01, "em_components": 11}
SCALE: Final = 0.3  # deviation of a grey value, which lies between 0 and 1


# -- Work ----------------------------------------------------------------------------------


def units(plan: Plan) -> list[Unit]:
    """One pass, and one iteration."""
    shared = {**(FULL if plan.full else QUICK), "seed": plan.seed}
    return [Unit(way, {"way": way, **shared}) for way in ("one-pass", "em")]


def measure(
    way: str, digits: str, delta: float, beta: float, em_components: int, seed: int
) -> Result:
    """Cluster the training digits one way or the other, and judge the result on others.

    Parameters
    ----------
    way : {"one-pass", "em"}
    digits : {"mnist", "scikit-learn"}
    delta, beta : float
        Of the mixture that learns in one pass.
    em_components : int
    seed : int
        Of EM's start.
    """
    train, test = _digits(digits)
    test = test[:_N_HELD_OUT]
    if way == "em":
        return batch_em(train, test, em_components, seed)
    return one_pass(train, test, delta, beta)


def _digits(name: str) -> tuple[AnyArray, AnyArray]:
    """Digits as whole numbers up to 255, to train and to test."""
    if name == "mnist":
        mnist = load_images("mnist", report=lambda _: None)
        return mnist.train, mnist.test
    pixels = load_digits().data * (255.0 / 16.0)
    return pixels[:1500], pixels[1500:]


def one_pass(train: AnyArray, test: AnyArray, delta: float, beta: float) -> Result:
    """One pass of FIGMN, in chunks: no more than one of them is held as numbers."""
    load_kernels(train.shape[1])
    before = peak_bytes()
    mixture = Mixture(train.shape[1], scale=SCALE, delta=delta, beta=beta)
    start = time.perf_counter()
    for first in range(0, len(train), _CHUNK):
        mixture.learn(train[first : first + _CHUNK] / 255.0)
    spent = time.perf_counter() - start
    memory = peak_bytes() - before
    heaviest = np.argsort(-mixture.masses)[:_SHOWN]
    return {
        "components": mixture.n_components,
        "seconds": spent,
        "bytes": memory,
        "rows": len(train),
        "held_out_rows": len(test),
        "means": np.round(mixture.means[heaviest], 3).tolist(),
        "masses": np.round(mixture.masses[heaviest], 1).tolist(),
        **_judged(mixture.means, mixture.covariances, mixture.weights, test),
    }


def batch_em(train: AnyArray, test: AnyArray, n_components: int, seed: int) -> Result:
    """One iteration of scikit-learn's EM from the centres that k-means finds.

    Neither k-means nor the memory of the start counts.
    """
    before = peak_bytes()
    rows = train / 255.0
    em = _started(rows, n_components, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        em.fit(rows)
    spent = time.perf_counter() - start
    memory = peak_bytes() - before - em.precisions_init.nbytes
    held_out = test / 255.0
    start = time.perf_counter()
    em.score_samples(held_out)
    evaluation = (time.perf_counter() - start) / len(held_out) * len(rows)
    return {
        "components": n_components,
        # After its only iteration, fit evaluates all rows once more.
        "seconds": spent - evaluation,
        "bytes": memory,
        "rows": len(rows),
        "held_out_rows": len(test),
        **_judged(em.means_, em.covariances_, em.weights_, test),
    }


def _started(rows: Array, n_components: int, seed: int) -> Any:
    """EM for one iteration, from round components about the centres of k-means."""
    n_features = rows.shape[1]
    centers = (
        MiniBatchKMeans(n_components, n_init=1, batch_size=4096, random_state=seed)
        .fit(rows)
        .cluster_centers_
    )
    return GaussianMixture(
        n_components,
        max_iter=1,
        weights_init=np.full(n_components, 1.0 / n_components),
        means_init=centers,
        precisions_init=np.repeat([np.eye(n_features) / rows.var()], n_components, axis=0),
        random_state=seed,
    )


def _judged(means: Array, covariances: Array, weights: Array, test: AnyArray) -> Result:
    """Mean log density of other digits: as learnt, and with a floor under the variances."""
    scores = []
    for floor in (0.0, _FLOOR):
        # In place, since these may be gigabytes.
        covariances += floor * np.eye(covariances.shape[1])
        judge = Mixture.from_parameters(means, covariances, weights)
        scores.append(float(judge.log_density(test / 255.0).mean()))
    return {"held_out": scores[0], "held_out_with_floor": scores[1]}


# -- What came out -------------------------------------------------------------------------


def _table(plan: Plan, results: Results) -> Table:
    ours, em = results["one-pass"], results["em"]
    paper = (
        (f"{published.CLUSTERING_COMPONENTS}", f"{published.CLUSTERING_COMPONENTS}"),
        (
            f"{published.CLUSTERING_HOURS} h",
            f"{published.EM_ITERATION_HOURS} h, on 4 cores",
        ),
    )
    none = ("-", "-")
    both = (ours, em)
    lines = [
        ("components", *paper[0], *(f"{r['components']}" for r in both)),
        ("time of one pass / of one iteration", *paper[1], *(seconds(r["seconds"]) for r in both)),
        ("memory beside the digits, MB", *none, *(f"{r['bytes'] / 1e6:,.0f}" for r in both)),
        (
            "held-out log-likelihood, nats a digit",
            *none,
            *(f"{r['held_out']:,.0f}" for r in both),
        ),
        (
            f"the same with {_FLOOR} added to all variances",
            *none,
            *(f"{r['held_out_with_floor']:,.0f}" for r in both),
        ),
    ]
    return Table(
        f"Clustering {ours['rows']:,} digits: one pass of FIGMN beside one iteration of batch EM",
        ("what", "paper: FIGMN", "paper: EM (Weka)", "FIGMN", "EM (scikit-learn)"),
        lines,
        (
            "Memory: the peak of a process of its own, less what it held before. EM holds all "
            "digits as numbers and a probability for each and each component; FIGMN holds "
            f"{_CHUNK:,} digits at a time. The paper's figures are for MNIST.",
            f"Held out: {ours['held_out_rows']:,} other digits, grey values from 0 to 1. EM "
            "starts at the centres of k-means, whose time and memory are not counted; a "
            "component that has seen fewer digits than there are pixels has directions without "
            "variance, so the floor matters.",
        ),
    )


def _figure(results: Results) -> Figure:
    ours = results["one-pass"]
    return Figure(
        "clusters",
        "Means of the heaviest components after one pass, each under the number of digits that "
        "it stands for.",
        images(np.array(ours["means"]), [f"{mass:.0f}" for mass in ours["masses"]], _SHOWN),
    )


def present(plan: Plan, results: Results) -> Section:
    """The comparison with EM in the paper's text."""
    ours, em = results["one-pass"], results["em"]
    what = (
        "The 60,000 training digits of MNIST, 784 pixels each, without their classes."
        if plan.full
        else "In this quick run: 1,500 of scikit-learn's bundled digits, 64 pixels each, without "
        "their classes. They are not MNIST, and few."
    )
    settings = FULL if plan.full else QUICK
    return Section(
        "Clustering digits, beside batch EM",
        (
            f"{what} FIGMN (delta = {settings['delta']}, beta = {settings['beta']}, scale "
            f"{SCALE}) finds the number of components in its one pass; EM is told.",
        ),
        (_table(plan, results), _figure(results)),
        (
            Check(
                "MNIST: one pass takes less time than one iteration of EM",
                f"{times(em['seconds'] / ours['seconds'])} times less",
                ours["seconds"] < em["seconds"],
            ),
        )
        if plan.full
        else (),
    )


EXPERIMENT: Final = Experiment(
    "clustering",
    "clustering MNIST in one pass, beside an iteration of batch EM",
    units,
    measure,
    present,
    apart=True,
    images=("mnist",),
)
