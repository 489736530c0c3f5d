"""The report as Markdown."""

from __future__ import annotations

from collections.abc import Callable

from paper.experiment import Figure, Section, Table
from paper.report.content import Report


def as_markdown(report: Report, address: Callable[[Figure], str]) -> str:
    """The whole report, with pictures at the addresses given."""
    parts = [f"# {report.title}", *report.introduction, table_text(report.checks_table)]
    for section in report.sections:
        parts += section_parts(section, address)
    parts += ["## Where the figures come from", table_text(report.sources_table)]
    return "\n\n".join(parts) + "\n"


def section_parts(section: Section, address: Callable[[Figure], str] | None) -> list[str]:
    """Paragraphs of a section; without addresses, pictures are left out."""
    parts = [f"## {section.title}", *section.text]
    for block in section.blocks:
        if isinstance(block, Table):
            parts.append(table_text(block))
        elif address is not None:
            parts.append(f"![{block.caption}]({address(block)})\n\n*{block.caption}*")
    return parts


def table_text(table: Table) -> str:
    """A table under its caption, above its notes."""
    paragraphs = [f"**{table.caption}**", "\n".join(table_lines(table))]
    return "\n\n".join([*paragraphs, *table.notes])


def table_lines(table: Table) -> list[str]:
    """Lines of a Markdown table, in columns that line up."""
    cells = [table.header, *table.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(_padded(line, widths)) + " |" for line in cells]
    dashes = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, "| " + " | ".join(dashes) + " |")
    return lines


def _padded(line: tuple[str, ...], widths: list[int]) -> list[str]:
    first, *others = zip(line, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
