"""The report: sections as Markdown, and as one HTML file that needs nothing else."""

from __future__ import annotations

from figmn.paper.report.content import Report
from figmn.paper.report.html import as_html
from figmn.paper.report.markdown import as_markdown, table_lines

__all__ = ["Report", "as_html", "as_markdown", "table_lines"]
