"""The command line, with good input and bad."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

import figmn
from paper import __main__, plots, registry
from paper.command import paper
from paper.datasets import images
from paper.experiment import Check, Experiment, Figure, Section, Table, Unit
from paper.screen import WorkProgress


def tiny_units(plan):
    return [Unit(f"{i}", {"shuffle": plan.seed + i + 40}) for i in range(2)]


def tiny_section(plan, results):
    rows = [(name, f"{result['shuffle']:.2f}") for name, result in results.items()]
    table = Table("Orders", ("order", "seed"), rows)
    figure = Figure(
        "orders",
        "Orders",
        plots.curves({"": [plots.Curve("seed", [0, 1], [40, 41])]}, "order", "seed"),
    )
    checks = (Check("it ran", "it did", True),)
    return Section("Tiny", ("Nothing much.",), (table, figure), checks)


@pytest.fixture
def call(monkeypatch, tmp_path):
    """Run the command on a tiny experiment, in an empty folder."""
    # Its work is to give back the settings.
    tiny = Experiment("tiny", "", tiny_units, dict, tiny_section, images=("mnist",))
    monkeypatch.setattr(registry, "EXPERIMENTS", {"tiny": tiny})
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(paper, ["--workers", "1", *arguments])


def test_help_and_version():
    outcome = CliRunner().invoke(paper, ["--help"])
    assert outcome.exit_code == 0
    for expected in ("--quick", "--full", "--output", "--seed", "accuracy", "dimensions"):
        assert expected in outcome.output
    assert figmn.__version__ in CliRunner().invoke(paper, ["--version"]).output


def test_a_run_that_is_interrupted_and_taken_up(call, tmp_path, monkeypatch):
    def interrupt(_progress, _name, done, _total):
        if done == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(WorkProgress, "advance", interrupt)
        outcome = call("tiny")
    assert outcome.exit_code == 130
    assert "the same command continues" in outcome.stderr
    (kept,) = (tmp_path / "output" / "results" / "tiny").iterdir()
    written = kept.stat().st_mtime_ns
    assert not (tmp_path / "output" / "report.html").exists()

    outcome = call("--markdown", "docs/results.md")
    assert outcome.exit_code == 0, outcome.output
    assert kept.stat().st_mtime_ns == written
    assert len(list(kept.parent.iterdir())) == 2
    assert "| 1     | 41.00 |" in outcome.stdout
    assert "| it ran |   it did |   yes |" in outcome.stdout
    page = (tmp_path / "output" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "output" / "orders.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "docs" / "images" / "results-orders.svg").exists()
    text = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    for report in (page, text):
        assert "python -m paper --quick --seed 0 --threads 1" in report
        assert "41.00" in report


def test_an_unknown_experiment_is_named(call):
    outcome = call("acuracy")
    assert outcome.exit_code == 2
    assert "no experiment 'acuracy': choose from tiny" in outcome.stderr


@pytest.mark.parametrize("seed", ["-1", "one"])
def test_a_bad_seed_is_refused(call, seed):
    outcome = call("--seed", seed)
    assert outcome.exit_code == 2
    assert "--seed" in outcome.stderr


def test_an_output_that_is_no_folder_is_named_before_any_work(call, tmp_path):
    (tmp_path / "taken").touch()
    for folder in ("taken", "taken/inside"):
        outcome = call("--output", folder)
        assert outcome.exit_code == 1
        assert "choose another --output" in outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_cache_that_cannot_be_read_is_named_before_any_work(call, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    (cache / "mnist.npz").mkdir(parents=True)
    monkeypatch.setenv("FIGMN_DATA", str(cache))
    outcome = call("--full")
    assert outcome.exit_code == 1
    assert "mnist.npz cannot be read" in outcome.stderr
    assert not (tmp_path / "output" / "results").exists()


def test_data_that_cannot_be_had_is_named_before_any_work(call, tmp_path, monkeypatch):
    def out_of_reach(_source):
        raise OSError("no network")

    monkeypatch.setenv("FIGMN_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(images, "_from_openml", out_of_reach)
    monkeypatch.setattr(images, "_from_npm", out_of_reach)
    outcome = call("--full")
    assert outcome.exit_code == 1
    assert "could not get mnist" in outcome.stderr
    assert "--quick" in outcome.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("missing", ["click", "rich", "matplotlib"])
def test_what_to_install_is_said(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit, match=rf"need {missing}: .*pip install '\.\[experiments\]'"):
        __main__.main()
