"""Files of earlier versions: a model goes on as it would have in the version that wrote it.

A model without settings is fitted provisionally in its first rows, each version in its own
way: there a model from a file has to answer about as well.

The only tests against recorded output: that later versions answer as that version did
is what is asked of them. ``data/make_files.py`` tells how the files were made.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import figmn
from data.make_files import ask, go_on, models

FILES = sorted(Path(__file__).parent.glob("data/*/*.figmn"))
# A BLAS for another processor, or rows that differ in their last bit, change answers by less
# than 1e-12: no fit or choice in these files is on a knife's edge.
ROUNDING_OF_ANSWERS = 1e-9
ROUNDING_OF_LEARNING = 1e-8


# Without settings, and in their first rows when they were written, or at the end of these.
PROVISIONAL = {
    "0.1.0": {
        "classifier",
        "classifier-new-class-later",
        "density",
        "density-fitted",
        "detector",
        "detector-fitted",
        "imputer",
        "mixture-ends-warm-up",
        "mixture-in-warm-up",
        "mixture-of-260-in-warm-up",
        "mixture-with-gaps-in-warm-up",
        "regressor",
    }
}


def parts_of(recorded, start):
    """Arrays whose names start so, by the rest of their names."""
    return {
        name.removeprefix(start): recorded[name] for name in recorded if name.startswith(start)
    }


def assert_same(answers, recorded, rounding):
    """Relative to each answer, and for those near zero to a thousandth of the largest."""
    assert set(answers) == set(recorded)
    for name, expected in recorded.items():
        near_zero = 1e-3 * np.abs(expected).max(initial=0.0)
        np.testing.assert_allclose(
            answers[name], expected, rtol=rounding, atol=rounding * near_zero, err_msg=name
        )


def assert_alike(answers, recorded, _):
    """In the middle of the answers, to a fifth or half of how much they differ.

    Logarithms to a few tenths a column, of which there are up to 260.
    """
    assert set(answers) == set(recorded)
    for name, expected in recorded.items():
        if name in ("components", "posteriors"):  # there may be others now
            continue
        tolerated = np.std(expected) / 2.0 + np.median(np.abs(expected)) / 5.0
        if name.startswith("log"):
            tolerated = 80.0
        assert np.median(np.abs(answers[name] - expected)) <= tolerated, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_file_goes_on_as_in_the_version_that_wrote_it(path):
    if path.stem.endswith("agent"):
        pytest.importorskip("gymnasium")
    with np.load(path.with_suffix(".npz")) as file:
        recorded = dict(file)
    provisional = path.stem in PROVISIONAL.get(path.parent.name, ())
    compared = assert_alike if provisional else assert_same
    model, asked = figmn.load(path), recorded["asked"]
    before, after = parts_of(recorded, "before_"), parts_of(recorded, "after_")
    if before:  # a model without rows has no answers yet
        compared(ask(model, asked), before, ROUNDING_OF_ANSWERS)
    go_on(model, parts_of(recorded, "further_"))
    compared(ask(model, asked), after, ROUNDING_OF_LEARNING)


def test_there_are_files_of_every_kind_of_model():
    assert {path.stem for path in FILES if path.parent.name == "0.1.0"} == set(models())
