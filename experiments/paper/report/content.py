"""What a report holds, in whatever form."""

from __future__ import annotations

from dataclasses import dataclass

from paper.experiment import Check, Figure, Plan, Section, Table
from paper.text import seconds


@dataclass(frozen=True)
class Report:
    """Sections, and where their figures come from.

    Attributes
    ----------
    plan : Plan
    sections : tuple of Section
    surroundings : dict of str
        Machine and versions.
    command : str
        That makes this report.
    durations : dict of float
        Seconds of work, by experiment.
    codes : dict of str
        Digests of the sources that results come from, by experiment.
    """

    plan: Plan
    sections: tuple[Section, ...]
    surroundings: dict[str, str]
    command: str
    durations: dict[str, float]
    codes: dict[str, str]

    title = "The paper, reproduced"

    @property
    def figures(self) -> list[Figure]:
        """The pictures of all sections."""
        blocks = [block for section in self.sections for block in section.blocks]
        return [block for block in blocks if isinstance(block, Figure)]

    @property
    def introduction(self) -> tuple[str, ...]:
        """What this is, for someone who opens it."""
        extent = (
            "This is the full run: everything on real data."
            if self.plan.full
            else "This is the quick run, which needs no network: images are replaced by what "
            "each section says, and less is repeated. `make results` does everything."
        )
        return (
            "The experiments of Pinto & Engel, Scalable and Incremental Learning of Gaussian "
            "Mixture Models, run anew. IGMN is the original algorithm, which inverts a "
            "covariance matrix for each row; FIGMN is the fast one, which never does. Columns "
            "and notes that say “paper” hold the figures printed there; all others were "
            "measured by the command below.",
            extent,
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """Those of all sections."""
        return tuple(check for section in self.sections for check in section.checks)

    @property
    def checks_table(self) -> Table:
        """What must hold, and whether it does."""
        return Table(
            "What must hold",
            ("claim", "measured", "holds"),
            [(claim, outcome, "yes" if holds else "NO") for claim, outcome, holds in self.checks],
        )

    @property
    def sources_table(self) -> Table:
        """Command, machine, versions, seeds and durations."""
        took = ", ".join(f"{name} {seconds(spent)}" for name, spent in self.durations.items())
        rows = [
            ("command", f"`{self.command}`"),
            ("seed", f"{self.plan.seed}"),
            *self.surroundings.items(),
            ("digests of the code", ", ".join(" ".join(item) for item in self.codes.items())),
            ("time of the work", f"{took}; in all {seconds(sum(self.durations.values()))}"),
        ]
        return Table(
            "Command, seed, machine, versions, durations",
            ("what", "which"),
            rows,
            ("Times of pieces of work are added up, also where several ran side by side.",),
        )
