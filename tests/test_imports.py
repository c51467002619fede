"""The import of the package is short: it loads little beyond what every user of scikit-learn loads anyway."""

import functools
import importlib
import json
import pkgutil
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rplvq

LOADED = """
import json, sys
import sklearn.base
before = set(sys.modules)
import rplvq
after = set(sys.modules) - before
{more}
print(json.dumps(sorted(after)))
"""


@functools.cache
def loaded(more=""):
    command = [sys.executable, "-c", LOADED.format(more=more)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_no_further_library_is_loaded():
    found = {name.partition(".")[0] for name in loaded()}
    assert found - set(sys.stdlib_module_names) <= {"rplvq", "attr", "attrs", "sklearn", "threadpoolctl", "joblib"}


def test_the_slow_parts_of_scikit_learn_are_loaded_where_they_are_used():
    found = set(loaded())
    slow = {"sklearn.metrics", "sklearn.model_selection", "sklearn.preprocessing", "sklearn.linear_model"}
    assert not found & slow
    parts = {"rplvq.plotting", "rplvq.distributed", "rplvq.datasets", "rplvq.cli"}
    assert not found & parts


def test_a_manifold_of_pymanopt_is_known_although_pymanopt_is_not_imported_first():
    assert "pymanopt" in loaded(
        "from pymanopt.manifolds import Sphere\n"
        "assert rplvq.FromPymanopt(Sphere(3)).manifold.dim == 2\n"
        "model = rplvq.RiemannianLVQ(Sphere(3), max_epochs=0).fit([[1., 0, 0], [0, 1, 0]], [0, 1])\n"
        "assert model.prototypes_.shape == (2, 3)\n"
        "after = set(sys.modules)"
    )


PAGES = Path(__file__).resolve().parents[1] / "docs" / "api"
ROOMS = [f"rplvq.{info.name}" for info in pkgutil.iter_modules(rplvq.__path__) if info.ispkg]
SHORT = [name for name in ROOMS if "def __dir__" in Path(importlib.util.find_spec(name).origin).read_text()]
"""Rooms that show fewer names than they offer to the other rooms."""


@pytest.mark.parametrize("room", SHORT)
def test_completion_shows_what_the_pages_of_the_api_list(room):
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    listed = re.findall(rf"^::: {room}\.(\w+)$", pages, flags=re.M)
    module = importlib.import_module(room)
    assert set(dir(module)) == set(listed)
    assert set(listed) < set(module.__all__)


def test_completion_shows_the_names_and_the_rooms_for_users():
    assert len(SHORT) > 5
    assert set(rplvq.__all__) < set(dir(rplvq))
    hidden = {room.removeprefix("rplvq.") for room in ROOMS} - set(dir(rplvq))
    assert hidden == {"lanes", "cli"}
    assert all(pydoc.locate(f"rplvq.{name}") is not None for name in dir(rplvq) if name != "distributed")
