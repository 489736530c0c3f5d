"""Experiment 2: one component on MNIST and CIFAR-10, time of IGMN and FIGMN."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from figmn import Mixture
from figmn.reference import IGMN
from paper import published
from paper.datasets import Images, load_images
from paper.experiment import Check, Experiment, Plan, Result, Results, Section, Table, Unit
from paper.text import seconds, times
from paper.timing import best_seconds, load_kernels, projected_seconds
from paper.typing import AnyArray, Array

SETS: Final = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
N_TRAIN: Final = {"mnist": 60_000, "cifar10": 50_000}
N_TEST: Final = 10_000
N_CLASSES: Final = 10
LEAST_SPEEDUP: Final = 500.0
_CHUNK: Final = 2_000  # rows made floating-point numbers at a time


# -- Work ----------------------------------------------------------------------------------


def units(plan: Plan) -> list[Unit]:
    """A unit for each data set and algorithm."""
    settings = {
        "synthetic": not plan.full,
        "seed": plan.seed,
        "igmn_budget": 60.0 if plan.full else 1.5,
    }
    return [
        Unit(f"{name}-{algorithm}", {"name": name, "algorithm": algorithm, **settings})
        for name in SETS
        for algorithm in ("figmn", "igmn")
    ]


def measure(name: str, algorithm: str, synthetic: bool, seed: int, igmn_budget: float) -> Result:
    """Time of learning the training images with their classes, and of classifying the others.

    Parameters
    ----------
    name : {"mnist", "cifar10"}
    algorithm : {"igmn", "figmn"}
    synthetic : bool
        Random numbers in the shape of the images, and fewer of them.
    seed : int
    igmn_budget : float
        Seconds for IGMN's training, and for its testing, from which the rest is projected.
    """
    images = random_images(name, seed) if synthetic else load_images(name, report=_be_silent)
    if algorithm == "igmn":
        return igmn_times(images, N_TRAIN[name], igmn_budget)
    return figmn_times(images, N_TRAIN[name])


def figmn_times(images: Images, n_train: int) -> Result:
    """FIGMN learns and classifies all images there are, in chunks, and is projected if few."""
    n_pixels = images.train.shape[1]
    load_kernels(n_pixels + N_CLASSES)
    mixture = Mixture(n_pixels + N_CLASSES, scale=joint_scale(images), delta=1.0, beta=0.0)
    start = time.perf_counter()
    for first in range(0, len(images.train), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        mixture.learn(joined(images.train[chunk], images.train_target[chunk]))
    training = time.perf_counter() - start
    known, wanted = np.arange(n_pixels), n_pixels + np.arange(N_CLASSES)
    correct = 0
    start = time.perf_counter()
    for first in range(0, len(images.test), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        answer = mixture.infer(images.test[chunk] / 255.0, known, wanted).mean()
        correct += int(np.sum(answer.argmax(axis=1) == images.test_target[chunk]))
    testing = time.perf_counter() - start
    return {
        "training": training / len(images.train) * n_train,
        "testing": testing / len(images.test) * N_TEST,
        "trained_rows": len(images.train),
        "tested_rows": len(images.test),
        "components": mixture.n_components,
        "accuracy": 100.0 * correct / len(images.test),
    }


def igmn_times(images: Images, n_train: int, budget: float) -> Result:
    """IGMN on as many rows as a budget allows: with one component all take the same time."""
    n_pixels = images.train.shape[1]
    rows = joined(images.train[:_CHUNK], images.train_target[:_CHUNK])
    igmn = IGMN(joint_scale(images), delta=1.0, beta=0.0).learn(rows[:1])
    training = projected_seconds(igmn.learn_one, rows[1:], n_train, budget)
    inversion = best_seconds(lambda: np.linalg.inv(igmn.covariances), 2)
    known, wanted = np.arange(n_pixels), n_pixels + np.arange(N_CLASSES)
    testing = projected_seconds(
        lambda row: igmn.predict(row, known, wanted),
        images.test[:_CHUNK] / 255.0,
        N_TEST,
        budget,
    )
    return {
        "training": training.seconds,
        "testing": testing.seconds,
        "trained_rows": training.n_timed,
        "tested_rows": testing.n_timed,
        "inversions": inversion * n_train,
        "components": len(igmn.masses),
    }


def joined(pixels: AnyArray, labels: AnyArray) -> Array:
    """Grey values from 0 to 1, then an indicator for each class."""
    return np.hstack([pixels / 255.0, np.eye(N_CLASSES)[labels]])


def joint_scale(images: Images) -> Array:
    """One deviation for all pixels, since many are constant, and one for all indicators."""
    pixels = float(images.train[:_CHUNK].std()) / 255.0
    share = 1.0 / N_CLASSES
    n_pixels = images.train.shape[1]
    return np.repeat([pixels, np.sqrt(share * (1.0 - share))], [n_pixels, N_CLASSES])


def random_images(name: str, seed: int) -> Images:
    """Random pixels and labels in the shape of a data set, and few of them."""
    n_pixels = published.SHAPES[name].columns
    n_train, n_test = n_pixels + 500, 500  # past the rows after which a component is dense
    rng = np.random.default_rng(seed)
    pixels = rng.integers(256, size=(n_train + n_test, n_pixels), dtype=np.uint8)
    labels = rng.integers(N_CLASSES, size=n_train + n_test, dtype=np.uint8)
    return Images(name, pixels[:n_train], labels[:n_train], pixels[n_train:], labels[n_train:])


def _be_silent(_: str) -> None:
    """The data was fetched before."""


# -- What came out -------------------------------------------------------------------------


def _speedup(results: Results, name: str, phase: str) -> float:
    return float(results[f"{name}-igmn"][phase] / results[f"{name}-figmn"][phase])


def _inversions(results: Results, name: str) -> str:
    """Time of one inversion for each training image, beside FIGMN's training."""
    slow, fast = results[f"{name}-igmn"]["inversions"], results[f"{name}-figmn"]["training"]
    return f"{seconds(slow)} for {SETS[name]}, {times(slow / fast)} times as long as FIGMN"


def _times_table(results: Results) -> Table:
    def cells(name: str, phase: str) -> tuple[str, ...]:
        slow, fast = results[f"{name}-igmn"][phase], results[f"{name}-figmn"][phase]
        paper = published.TIMES[name]
        their_slow = paper.igmn_training if phase == "training" else paper.igmn_testing
        their_fast = paper.figmn_training if phase == "training" else paper.figmn_testing
        return (
            f"{SETS[name]}, {phase}",
            "-" if their_slow is None else f"{their_slow:,.0f}",
            f"{their_fast:,.0f}",
            "-" if their_slow is None else times(their_slow / their_fast),
            f"{slow:,.0f}",
            f"{fast:,.1f}",
            times(slow / fast),
        )

    return Table(
        "Time of training and testing, in seconds (paper: table 4)",
        (
            "data set",
            "paper: IGMN, s",
            "paper: FIGMN, s",
            "paper: times faster",
            "IGMN, s",
            "FIGMN, s",
            "times faster",
        ),
        [cells(name, phase) for name in SETS for phase in ("training", "testing")],
        (
            *(
                f"{SETS[name]}: {N_TRAIN[name]:,} images to train, {N_TEST:,} to test. IGMN is "
                f"projected from {results[f'{name}-igmn']['trained_rows']:,} and "
                f"{results[f'{name}-igmn']['tested_rows']:,} of them, FIGMN has done "
                f"{results[f'{name}-figmn']['trained_rows']:,} and "
                f"{results[f'{name}-figmn']['tested_rows']:,}."
                for name in SETS
            ),
            "The paper projects IGMN's CIFAR-10 training from 100 images.",
            "IGMN inverts by LAPACK once for each image to learn, for novelty and posterior "
            "alike, and takes a determinant; the inversion alone takes "
            + " and ".join(_inversions(results, name) for name in SETS)
            + f". FIGMN learns and answers in chunks of {_CHUNK:,} images, with the same result "
            "as one by one.",
        ),
    )


def present(plan: Plan, results: Results) -> Section:
    """Table 4 of the paper, beside ours."""
    data = (
        "The standard splits of MNIST and CIFAR-10."
        if plan.full
        else "In this quick run the images are random numbers in the shape of MNIST and CIFAR-10, "
        "and fewer: times a row do not depend on the values, and are projected to the sizes of "
        "the real sets. Two are taken at a time, on one core each, which disturbs them."
    )
    accuracy = [
        f"{SETS[name]} {results[f'{name}-figmn']['accuracy']:.1f} %" for name in SETS if plan.full
    ]
    shown = f" A single Gaussian classifies: {', '.join(accuracy)} correct." if accuracy else ""
    return Section(
        "High dimensions",
        (
            f"{data} The mixture is over the pixels (784 and 3072) and ten class indicators, "
            f"delta = 1, beta = 0: one component for ever.{shown}",
        ),
        (_times_table(results),),
        tuple(
            Check(
                f"{SETS[name]}: FIGMN trains at least {LEAST_SPEEDUP:.0f} times faster than IGMN",
                f"{times(_speedup(results, name, 'training'))} times",
                _speedup(results, name, "training") >= LEAST_SPEEDUP,
            )
            for name in SETS
            if plan.full  # the claim is of real images, and of cores that do nothing else
        ),
    )


EXPERIMENT: Final = Experiment(
    "high",
    "MNIST and CIFAR-10 with one component, time of IGMN and FIGMN (table 4)",
    units,
    measure,
    present,
    images=("mnist", "cifar10"),
)
