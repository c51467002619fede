"""The recipes of CONTRIBUTING, applied to a copy of the tree: each part passes the tests of the table that it joins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("rplvq", "tests", "docs/api", "conftest.py", "pyproject.toml", "CONTRIBUTING.md")


class Recipe(NamedTuple):
    """A section of CONTRIBUTING, and where it says that its part goes."""

    section: str
    name: str
    module: str  # of its class
    imports: str  # of this module, inside the room
    table: str  # file of the table
    row: tuple[str, str]  # the line after which the row comes, and the row
    tests: str  # what CONTRIBUTING says to run
    selected: str  # the tests of the row
    beside: str = ""  # lines at the end of the file of the table


RECIPES = [
    Recipe(
        "A metric",
        "Cholesky",
        "rplvq/manifolds/_cholesky.py",
        "from rplvq.arrays import check_hermitian\n"
        "from rplvq.manifolds._flat import flat_connect, flat_move, flat_sqdist",
        "tests/cases.py",
        ("CASES = {", '    "Cholesky": Case(always(Cholesky()), spd, cholesky_distance),'),
        "tests/manifolds",
        "[Cholesky",
    ),
    Recipe(
        "A cost",
        "Nearest",
        "rplvq/costs/_nearest.py",
        "from rplvq.protocols import Evaluation",
        "tests/costs/test_costs.py",
        ("COSTS = {", '    "Nearest": Nearest(),'),
        "tests/costs",
        "[Nearest]",
    ),
    Recipe(
        "A schedule",
        "Hyperbolic",
        "rplvq/schedules/_schedules.py",
        "",
        "tests/schedules/test_schedules.py",
        ("SCHEDULES = [", "    Hyperbolic(),"),
        "tests/schedules",
        "[Hyperbolic",
    ),
    Recipe(
        "An initializer",
        "RandomSample",
        "rplvq/initializers/_random_sample.py",
        "",
        "tests/initializers/test_initializers.py",
        ("INITIALIZERS = {", '    "random sample": RandomSample(),'),
        "tests/initializers",
        "[random sample]",
    ),
]
FORMULA = """

def cholesky_distance(x, w):
    return np.linalg.norm(np.linalg.cholesky(x) - np.linalg.cholesky(w))

"""


def class_of(recipe: Recipe) -> str:
    """Return the class that the first block of the section defines, as a part of the library."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition(f"\n## {recipe.section}\n")[2].partition("\n## ")[0]
    block = re.search(r"```python\n(.*?)```", section, re.S)
    assert block, recipe.section
    found = re.search(rf"@attrs\.frozen\nclass {recipe.name}:.*?(?=\n\n\n|\Z)", block[1], re.S)
    assert found, recipe.name
    return f"@library_part\n{found[0]}\n"


def insert(path: Path, after: str, text: str) -> None:
    """Insert a line after the first one that begins so; a table in one line is opened first."""
    before, found, rest = path.read_text().partition(f"\n{after}")
    assert found, (path, after)
    path.write_text(f"{before}{found}\n{text}\n    {rest.lstrip()}")


def apply(recipe: Recipe, copy: Path) -> None:
    """Do what the section says, to a copy of the tree."""
    room = recipe.module.rpartition("/")[0].replace("/", ".")
    module = copy / recipe.module
    if module.exists():
        module.write_text(f"{module.read_text()}\n\n{class_of(recipe)}")
    else:
        heads = ["import attrs", "import numpy as np\n", recipe.imports, "from rplvq.parts import library_part\n\n"]
        module.write_text(f'"""{recipe.section}."""\n\n' + "\n".join(filter(None, heads)) + "\n" + class_of(recipe))
    face = copy / room.replace(".", "/") / "__init__.py"
    line = f"from {recipe.module.removesuffix('.py').replace('/', '.')} import {recipe.name}  # noqa: E402\n"
    text = face.read_text()
    face.write_text(text.replace("__all__ = [", f"{line}\n__all__ = [\n    {recipe.name!r},", 1))
    table = copy / recipe.table
    insert(table, *recipe.row)
    formula = FORMULA if recipe.section == "A metric" else ""
    start = f"\n{recipe.row[0]}"
    table.write_text(
        table.read_text().replace(start, f"\nfrom {room} import {recipe.name}  # noqa: E402\n{formula}{start}", 1)
    )


ROWS = """
SELECTED = {selected!r}


def pytest_collection_modifyitems(config, items):
    kept = [item for item in items if "test_imports.py" in item.nodeid or any(row in item.nodeid for row in SELECTED)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
"""
"""A plugin of pytest that keeps the tests of the new rows, and those of imports."""


@pytest.mark.slow
def test_the_recipes_of_contributing_work(tmp_path):
    """All in one copy: they touch different files, and one process runs the tests of all new rows."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    for recipe in RECIPES:
        apply(recipe, tmp_path)
    (tmp_path / "rows_only.py").write_text(ROWS.format(selected=[recipe.selected for recipe in RECIPES]))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
        return done.stdout

    rooms = [recipe.tests for recipe in RECIPES]
    options = ("-vv", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "rows_only")
    printed = run("pytest", *options, *rooms, "tests/test_imports.py")
    for recipe in RECIPES:
        of_room = [line for line in printed.splitlines() if line.startswith(f"{recipe.tests}/")]
        has_row = any(recipe.selected in line and " PASSED" in line for line in of_room)
        assert has_row, f"no test of {recipe.tests} has the new row"
    assert "tests/test_imports.py::" in printed
    run("ruff", "check", "--ignore", "D102,E501,I001", *(recipe.module for recipe in RECIPES))
