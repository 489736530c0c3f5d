"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import re
from html import escape
from typing import Final

from paper.experiment import Figure, Section, Table
from paper.report.content import Report

_STYLE: Final = """
:root { --ink: #1d2733; --soft: #5c6875; --line: #dde3ea; --shade: #f5f7fa; --mark: #2f6db3; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 64rem; color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.9rem; margin: 0 0 .5rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; padding-top: .8rem;
  border-top: 2px solid var(--line); }
nav { margin: 1rem 0 2rem; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; }
a { color: var(--mark); }
figure { margin: 1.8rem 0; overflow-x: auto; }
figure img { display: block; max-width: 100%; margin: 0 auto; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
img + figcaption { font-weight: 400; color: var(--soft); margin: .4rem 0 0; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: baseline; }
td { white-space: nowrap; }
th { background: var(--shade); font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
table.prose td { white-space: normal; text-align: left; }
table.prose th { text-align: left; }
tr.last td { font-weight: 600; }
tr:hover td { background: var(--shade); }
p.note { font-size: .84rem; color: var(--soft); margin: .35rem 0; }
code { font: .9em ui-monospace, monospace; background: var(--shade); padding: .1em .3em; }
.yes { color: #2e7d4f; font-weight: 600; } .no { color: #b3261e; font-weight: 700; }
"""


def as_html(report: Report) -> str:
    """The whole report."""
    links = "".join(
        f'<a href="#{_anchor(section)}">{escape(section.title)}</a>' for section in report.sections
    )
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>figmn: {escape(report.title)}</title>\n<style>{_STYLE}</style>\n</head>",
            f"<body>\n<h1>{escape(report.title)}</h1>",
            *(f"<p>{_inline(text)}</p>" for text in report.introduction),
            f'<nav>{links}<a href="#sources">Where the figures come from</a></nav>',
            _table(report.checks_table, prose=True),
            *(_section(section) for section in report.sections),
            '<h2 id="sources">Where the figures come from</h2>',
            _table(report.sources_table, prose=True),
            "</body>\n</html>\n",
        ]
    )


def _section(section: Section) -> str:
    parts = [f'<h2 id="{_anchor(section)}">{escape(section.title)}</h2>']
    parts += [f"<p>{_inline(text)}</p>" for text in section.text]
    parts += [
        _table(block) if isinstance(block, Table) else _figure(block) for block in section.blocks
    ]
    return "\n".join(parts)


def _table(table: Table, prose: bool = False) -> str:
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in table.header)
    body = "\n".join(f"<tr{_emphasis(row)}>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{_inline(note)}</p>' for note in table.notes)
    return (
        f"<figure><figcaption>{_inline(table.caption)}</figcaption>"
        f"<table{' class=prose' if prose else ''}><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>{notes}</figure>"
    )


def _emphasis(row: tuple[str, ...]) -> str:
    return " class=last" if row[0] in ("average", "in all") else ""


def _cell(text: str) -> str:
    verdict = {"yes": " class=yes", "NO": " class=no"}.get(text, "")
    return f"<td{verdict}>{_inline(text)}</td>"


def _figure(figure: Figure) -> str:
    # As an image, a drawing's names cannot clash with those of another.
    data = base64.b64encode(figure.drawing.svg.encode()).decode()
    caption = _inline(figure.caption)
    return (
        f'<figure><img alt="{escape(figure.caption)}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _inline(text: str) -> str:
    """Text with `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _anchor(section: Section) -> str:
    return re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")
