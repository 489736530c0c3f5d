"""Doing the work of experiments: in worker processes, kept piece by piece, resumable."""

from __future__ import annotations

import importlib
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import NamedTuple

import threadpoolctl

from paper.experiment import Experiment, Plan, Result, Results, Settings, Unit
from paper.store import Record, Store

Advance = Callable[[str, int, int], None]
"""Is told the name of an experiment, how many of its units are done, and of how many."""


class Cores(NamedTuple):
    """How the machine is used.

    Attributes
    ----------
    workers : int
        Processes at a time, for an experiment whose units may run side by side.
    threads : int
        Cores for the matrix products of an experiment whose units run one at a time.
    """

    workers: int
    threads: int


class Outcome(NamedTuple):
    """Results of one experiment, and the seconds that all of its units took together."""

    results: Results
    seconds: float


def run(
    experiment: Experiment,
    plan: Plan,
    store: Store,
    cores: Cores,
    *,
    advance: Advance,
    fresh: bool = False,
) -> Outcome:
    """Do what is not yet in the store, and give back everything.

    Parameters
    ----------
    experiment : Experiment
    plan : Plan
    store : Store
        Keeps each unit as soon as it is done.
    cores : Cores
    advance : callable
    fresh : bool
        Do everything anew.
    """
    units = experiment.units(plan)
    records = {} if fresh else _kept(experiment.name, units, store)
    advance(experiment.name, len(records), len(units))
    missing = [unit for unit in units if unit.name not in records]
    # A pool for each unit, where they are to be apart, is an end of the process for each.
    for group in [[unit] for unit in missing] if experiment.apart else [missing]:
        with _pool(_shared(cores, experiment, plan, len(group))) as pool:
            waiting = {
                pool.submit(_timed, experiment.measure, unit.settings): unit for unit in group
            }
            for future in as_completed(waiting):
                unit, record = waiting[future], future.result()
                store.save(experiment.name, unit, record)
                records[unit.name] = record
                advance(experiment.name, len(records), len(units))
    results = {unit.name: records[unit.name].result for unit in units}
    return Outcome(results, sum(record.seconds for record in records.values()))


def _kept(name: str, units: Sequence[Unit], store: Store) -> dict[str, Record]:
    found = {unit.name: store.load(name, unit) for unit in units}
    return {name: record for name, record in found.items() if record is not None}


def _shared(cores: Cores, experiment: Experiment, plan: Plan, n_units: int) -> Cores:
    """Cores for units side by side, of one thread each, or for one at a time."""
    hurried = not plan.full and cores.threads == 1
    if experiment.parallel or hurried:
        return Cores(max(1, min(cores.workers, n_units)), 1)
    return Cores(1, cores.threads)


def _timed(measure: Callable[..., Result], settings: Settings) -> Record:
    start = time.perf_counter()
    result = measure(**settings)
    return Record(result, time.perf_counter() - start)


@contextmanager
def _pool(cores: Cores) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which do not outlive an error or an interruption."""
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        cores.workers,
        # A forked copy of a process with threads, as BLAS has them, may hang.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(cores.threads,),
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _start_worker(threads: int) -> None:
    """Leave interruptions to the program, and share the cores."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries have their threads limited only once they are there: SciPy brings a BLAS of
    # its own, and scikit-learn OpenMP.
    for module in ("scipy.linalg", "sklearn.utils", "figmn"):
        importlib.import_module(module)
    threadpoolctl.threadpool_limits(threads)
