"""The report: sections as Markdown, and as one HTML file that needs nothing else."""

from __future__ import annotations

from paper.report.content import Report
from paper.report.html import as_html
from paper.report.markdown import as_markdown, table_lines

__all__ = ["Report", "as_html", "as_markdown", "table_lines"]
