"""Results on disk, and runs that are taken up again."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
import threadpoolctl
from sklearn.datasets import load_iris

from paper.experiment import Experiment, Plan, Section, Unit
from paper.runner import Cores, _pool, run
from paper.store import Record, Store, write_atomically

UNIT = Unit("iris-0", {"dataset": "iris", "shuffle": 0})


def test_what_is_saved_is_loaded(tmp_path):
    store = Store(tmp_path, {"numpy": "2"})
    record = Record({"accuracy": [0.1, 97.3], "name": "±"}, 1.5)
    assert store.load("accuracy", UNIT) is None
    store.save("accuracy", UNIT, record)
    assert store.load("accuracy", UNIT) == record
    (path,) = tmp_path.rglob("*.json")
    kept = json.loads(path.read_text())
    assert kept["settings"] == UNIT.settings
    assert kept["surroundings"] == {"numpy": "2"}


def test_other_settings_or_surroundings_are_other_results(tmp_path):
    store = Store(tmp_path, {"numpy": "2"})
    store.save("accuracy", UNIT, Record({}, 0.0))
    changed = Unit(UNIT.name, {**UNIT.settings, "shuffle": 1})
    assert store.load("accuracy", changed) is None
    assert store.load("digits", UNIT) is None
    assert Store(tmp_path, {"numpy": "3"}).load("accuracy", UNIT) is None
    assert Store(tmp_path, {"numpy": "2"}).load("accuracy", UNIT) is not None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"result": {}}', '{"seconds": 1}'])
def test_a_damaged_file_counts_as_none(content, tmp_path):
    store = Store(tmp_path, {})
    store.save("accuracy", UNIT, Record({}, 0.0))
    (path,) = tmp_path.rglob("*.json")
    path.write_text(content)
    assert store.load("accuracy", UNIT) is None


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_atomically(path, "before")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def tiny_units(plan):
    return [Unit(f"order-{i}", {"shuffle": plan.seed + i}) for i in range(3)]


# Its work is to give back the settings: done in an instant, in another process as well.
TINY = Experiment("tiny", "", tiny_units, dict, lambda *_: Section("tiny", ()), parallel=True)


def test_an_interrupted_run_is_taken_up(tmp_path):
    store = Store(tmp_path, {})

    def interrupt(_name, done, _total):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(TINY, Plan(), store, Cores(1, 1), advance=interrupt)
    (first,) = tmp_path.rglob("*.json")
    written = first.stat().st_mtime_ns

    said = []
    outcome = run(TINY, Plan(), store, Cores(2, 1), advance=lambda *told: said.append(told))
    assert said == [("tiny", done, 3) for done in (1, 2, 3)]
    assert first.stat().st_mtime_ns == written
    assert outcome.results == {unit.name: unit.settings for unit in tiny_units(Plan())}
    assert outcome.seconds > 0.0

    again = run(TINY, Plan(), store, Cores(1, 1), advance=lambda *_: None)
    assert again == outcome
    other_seed = run(TINY, Plan(seed=7), store, Cores(2, 1), advance=lambda *_: None)
    assert other_seed.results["order-0"] == {"shuffle": 7}
    assert len(list(tmp_path.rglob("*.json"))) == 6


@pytest.mark.parametrize("threads", [1, 2])
def test_all_libraries_of_a_worker_keep_to_their_threads(threads):
    load_iris()  # with all that it takes
    expected = {library["filepath"] for library in threadpoolctl.threadpool_info()}
    with _pool(Cores(1, threads)) as pool:
        libraries = pool.submit(threadpoolctl.threadpool_info).result()
    assert expected <= {library["filepath"] for library in libraries}
    assert {library["num_threads"] for library in libraries} == {threads}


def test_a_failing_unit_fails_the_run_and_keeps_the_others(tmp_path):
    units = [Unit("good", {"base": 10}), Unit("bad", {"radix": 10})]
    broken = replace(TINY, units=lambda _: units, measure=partial(int, "7"), apart=True)
    with pytest.raises(TypeError, match="radix"):
        run(broken, Plan(), Store(tmp_path, {}), Cores(1, 1), advance=lambda *_: None)
    (kept,) = tmp_path.rglob("*.json")
    assert kept.name.startswith("good-")
