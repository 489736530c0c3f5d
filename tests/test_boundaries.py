"""Private names stay in their package, and names of modules mean one thing each."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import figmn

ROOT = Path(figmn.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
NAMED_TUPLE = {"_replace", "_asdict", "_fields"}


def package_of(path):
    """The folder directly below figmn, or the module itself."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLE


def defined_in(tree):
    """Private names that a module makes: functions, classes, attributes, variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # as in __slots__


TREES = {path: ast.parse(path.read_text()) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_name_of_another_package_is_used(path):
    own = {
        name
        for other, tree in TREES.items()
        if package_of(other) == package_of(path)
        for name in defined_in(tree)
    }
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            assert node.attr in own, f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("figmn"):
            source = (node.module or "").split(".")
            for alias in node.names:
                foreign = len(source) < 2 or source[1] != package_of(path)
                assert not (foreign and is_private(alias.name)), f"line {node.lineno}"


def test_no_two_modules_share_a_name():
    names = Counter(path.stem for path in MODULES if path.stem != "__init__")
    assert [name for name, count in names.items() if count > 1] == []


# One public class, half of it docstrings: it would not be easier to read in two files.
LONG_MODULES = {"mixture.py"}
# Compiled loops with their docstrings: a call in them costs more than the arithmetic on a row.
LONG_FUNCTIONS = {
    "complete",
    "evaluate",
    "given_leading",
    "learn",
    "learn_in_span",
    "learn_planned",
    "shrink_and_add",
}


def test_modules_and_functions_fit_the_eye():
    for path, tree in TREES.items():
        assert path.name in LONG_MODULES or len(path.read_text().splitlines()) <= 400, path.name
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name not in LONG_FUNCTIONS:
                assert node.end_lineno - node.lineno < 60, f"{path.name}: {node.name}"
