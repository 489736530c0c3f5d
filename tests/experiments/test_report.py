"""The report: complete, well formed, and in need of nothing else."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from paper import plots
from paper.experiment import Check, Figure, Plan, Section, Table
from paper.report import Report, as_html, as_markdown
from paper.report.markdown import table_lines
from paper.text import seconds, times

TABLE = Table(
    "Accuracy in %, a < b",
    ("data set", "paper", "`ours`"),
    [("iris", "97.3 ± 3.4", "<b>97.2</b> & more"), ("average", "83.7", "85.3")],
    ("Noted: p < 0.05.",),
)
FIGURE = Figure(
    "curve",
    'Seconds, "log" axes',
    plots.log_log({"training": [plots.Curve("IGMN", [1, 2, 4], [1.0, 8.0, 64.0])]}, "D", "s"),
)
SECTION = Section(
    "Accuracy, & more",
    ("Run with `make demo`.",),
    (TABLE, FIGURE),
    (Check("it is > 85", "85.3 %", True), Check("it is > 99", "85.3 %", False)),
)
REPORT = Report(
    Plan(seed=7),
    (SECTION,),
    {"numpy": "2.0"},
    "python -m paper --quick --seed 7",
    {"accuracy": 90.0},
    {"accuracy": "0123abcd"},
)


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.links, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_whole_and_needs_nothing_else():
    html = as_html(REPORT)
    page = Page(html)
    assert page.open == []
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in page.links)
    assert "script" not in page.tags
    assert "http" not in html.replace("http-equiv", "")
    text = "".join(page.text)
    for cell in ("97.3 ± 3.4", "<b>97.2</b> & more", "Noted: p < 0.05.", "ours", "85.3 %", "2.0"):
        assert cell in text
    anchors = set(re.findall(r'id="([^"]+)"', html))
    assert {link[1:] for link in page.links if link.startswith("#")} <= anchors
    assert "class=yes" in html
    assert "class=no" in html


def test_pictures_are_drawings():
    (data,) = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", as_html(REPORT))
    drawing = ElementTree.fromstring(base64.b64decode(data))
    assert drawing.tag.endswith("svg")
    rng = np.random.default_rng(0)
    snapshot = plots.Snapshot(
        rng.normal(size=(20, 2)), np.zeros((1, 2)), np.eye(2)[np.newaxis], np.ones(1)
    )
    for drawing in (
        plots.growth([snapshot]),
        plots.images(rng.random((3, 16)), ["a", "b", "c"], 2),
    ):
        ElementTree.fromstring(drawing.svg)
        with Image.open(io.BytesIO(drawing.png)) as picture:
            picture.load()


def test_markdown_holds_the_same():
    text = as_markdown(REPORT, lambda figure: f"images/{figure.name}.svg")
    assert '![Seconds, "log" axes](images/curve.svg)' in text
    for expected in (
        "# The paper, reproduced",
        "## Accuracy, & more",
        "python -m paper --quick",
        "NO",
    ):
        assert expected in text
    lines = table_lines(TABLE)
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert [tuple(row) for row in cells if "---" not in row[1]] == [TABLE.header, *TABLE.rows]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.5e-6, "2.5 µs"),
        (0.0123, "12.3 ms"),
        (45.67, "45.7 s"),
        (1629.81, "27.2 min"),
        (32544.69, "9.04 h"),
        (2758252.0, "31.9 d"),
    ],
)
def test_times_have_units(value, text):
    assert seconds(value) == text


def test_ratios():
    assert [times(ratio) for ratio in (0.51, 9.94, 20.0, 1562.3)] == ["0.5", "9.9", "20", "1,562"]
