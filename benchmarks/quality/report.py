"""Tables, on the screen and in the documentation."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "quality.md"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def publish(part: str, text: str, *, write: bool) -> None:
    """Print a part of the results, and put it in its place on the page."""
    print(text, flush=True)
    if not write:
        return
    start, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    page = PAGE.read_text()
    before, rest = page.split(start)
    _, after = rest.split(end)
    PAGE.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}")
