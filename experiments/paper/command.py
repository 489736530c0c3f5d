"""The options of the command, and what it does."""

from __future__ import annotations

import os
from pathlib import Path

import click

import figmn
from paper import registry
from paper.datasets import load_images
from paper.experiment import COMMAND, Experiment, Figure, Plan, Section
from paper.report import Report, as_html, as_markdown
from paper.runner import Cores, run
from paper.screen import Screen, WorkProgress
from paper.store import Store, write_atomically
from paper.surroundings import code_digest, surroundings, usable_cores


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Experiments: "
    + "; ".join(f"{e.name} ({e.summary})" for e in registry.EXPERIMENTS.values()),
)
@click.version_option(figmn.__version__, prog_name="figmn")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option(
    "--quick/--full",
    "quick",
    default=True,
    help="Three minutes without a network (the default), or everything on real data.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("output"),
    show_default=True,
    help="Folder of the report and of the results that a rerun takes up.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=None,
    help="Processes at a time, where no time is taken.  [default: one a core]",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=None,
    help="Cores for matrix products, where time is taken.  [default: 1; with --full all]",
)
@click.option("--fresh", is_flag=True, help="Do everything anew, whatever was kept.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report as Markdown too, with its pictures in the folder images beside it.",
)
def paper(
    experiments: tuple[str, ...],
    quick: bool,
    output: Path,
    seed: int,
    workers: int | None,
    threads: int | None,
    fresh: bool,
    markdown: Path | None,
) -> None:
    """Run the paper's experiments, and show ours beside theirs.

    All of them, or those named. What is done is kept: after an interruption the same
    command continues.
    """
    screen = Screen()
    plan = Plan(full=not quick, seed=seed)
    try:
        chosen = registry.chosen(experiments)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        _require_folder(output)
        if plan.full:
            _require_images(chosen, screen)
        cores = Cores(workers or usable_cores(), threads or (usable_cores() if plan.full else 1))
        report = _report(chosen, plan, output, cores, fresh, screen)
        _write(report, output, markdown, screen)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        screen.say(f"Interrupted. What was done is kept in {output}: the same command continues.")
        raise SystemExit(130) from None


def _require_folder(folder: Path) -> None:
    """Make the output folder, and see that it can be written, before hours of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise OSError(
            f"{folder} cannot be made ({error.strerror}): choose another --output."
        ) from None
    if not writable:
        raise OSError(f"{folder} cannot be written: choose another --output.")


def _require_images(chosen: list[Experiment], screen: Screen) -> None:
    """Have image data in the cache before the work begins."""
    for name in sorted({name for experiment in chosen for name in experiment.images}):
        with screen.fetching(name):
            try:
                load_images(name, report=screen.say)
            except OSError as error:
                raise OSError(f"{error} Or run with --quick, which needs none of it.") from None


def _report(
    chosen: list[Experiment],
    plan: Plan,
    output: Path,
    cores: Cores,
    fresh: bool,
    screen: Screen,
) -> Report:
    """Do the work, show each experiment's section when it is there, and join them."""
    around = {**surroundings(), "cores for matrix products, where timed": f"{cores.threads}"}
    sections: list[Section] = []
    durations: dict[str, float] = {}
    codes: dict[str, str] = {}
    for experiment in chosen:
        code = code_digest(experiment.spared)
        store = Store(output / "results", {**around, "code": code})
        with WorkProgress(screen) as progress:
            outcome = run(experiment, plan, store, cores, advance=progress.advance, fresh=fresh)
        sections.append(experiment.present(plan, outcome.results))
        durations[experiment.name] = outcome.seconds
        codes[experiment.name] = code
        screen.show_section(sections[-1])
    command = _command(chosen, plan, cores.threads)
    report = Report(plan, tuple(sections), around, command, durations, codes)
    if report.checks:
        screen.show_table(report.checks_table)
    return report


def _command(chosen: list[Experiment], plan: Plan, threads: int) -> str:
    """The command that makes the same report, in a checkout."""
    names = [e.name for e in chosen] if len(chosen) < len(registry.EXPERIMENTS) else []
    extent = "--full" if plan.full else "--quick"
    options = (f"--seed {plan.seed}", f"--threads {threads}")
    return " ".join([COMMAND, *names, extent, *options])


def _write(report: Report, output: Path, markdown: Path | None, screen: Screen) -> None:
    """Write the report, with its pictures also as PNG."""
    page = output / "report.html"
    write_atomically(page, as_html(report))
    screen.say(f"Report: {page}")
    for figure in report.figures:
        picture = output / f"{figure.name}.png"
        write_atomically(picture, figure.drawing.png)
        screen.say(f"Picture: {picture}")
    if markdown is None:
        return
    pictures = markdown.parent / "images"
    pictures.mkdir(parents=True, exist_ok=True)

    def address(figure: Figure) -> str:
        path = pictures / f"results-{figure.name}.svg"
        write_atomically(path, figure.drawing.svg)
        return f"images/{path.name}"

    write_atomically(markdown, as_markdown(report, address))
    screen.say(f"Markdown: {markdown}")
