"""The documentation: everything public is described, every code block runs, and every page is built."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pydoc
import re
import sys
import types
from pathlib import Path

import pytest

import rplvq
import rplvq.protocols
from rplvq.evaluation import Comparison

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
PUBLIC = [getattr(rplvq, name) for name in rplvq.__all__]
MODULES = ["presets", "features", "datasets", "testing", "plotting", "rejection", "calibration", "sigma2"]
if importlib.util.find_spec("dask"):
    MODULES.append("distributed")
FUNCTIONS = [
    getattr(module, name)
    for m in MODULES
    for module in [importlib.import_module(f"rplvq.{m}")]
    for name in module.__all__
    if callable(getattr(module, name))
]


def load(name):
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def members(cls):
    """Public methods that this library defines, also in bases, by qualified name."""
    for name, member in inspect.getmembers(cls, inspect.isfunction):
        if (name == "__call__" or not name.startswith("_")) and member.__module__.startswith("rplvq"):
            yield name, member


DISTRIBUTED = []  # needs Dask
if importlib.util.find_spec("dask"):
    DISTRIBUTED = [importlib.import_module("rplvq.distributed").DistributedLVQ]
CLASSES = [part for part in [*PUBLIC, Comparison, *DISTRIBUTED] if inspect.isclass(part)]
CALLED_DIRECTLY = {
    *("Comparison", "DistributedLVQ", "Recenter", "RejectOption"),
    *("RiemannianLVQ", "SPDProjection", "Trainer"),
}
"""Classes whose methods users call; those of parts (manifolds, costs, schedules) are called by the trainer."""
METHODS = [pytest.param(m, id=f"{c.__name__}.{name}") for c in CLASSES for name, m in members(c)]


def identifiers():
    """Every identifier that the API pages ask for."""
    text = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    return set(re.findall(r"^::: (\S+)$", text, flags=re.M))


def has_entry(part):
    module, _, _ = part.__module__.rpartition(".")  # a package shows what its modules define
    wanted = {f"{part.__module__}.{part.__qualname__}", part.__module__, f"{module}.{part.__qualname__}"}
    return bool(wanted & identifiers())


@pytest.mark.parametrize("part", [*PUBLIC, *FUNCTIONS, Comparison], ids=lambda part: part.__qualname__)
def test_public_names_are_in_the_reference_with_sections_and_an_example(part):
    assert has_entry(part), "no entry in docs/api"
    text = inspect.getdoc(part) or ""
    is_record = inspect.isclass(part) and issubclass(part, tuple)  # made by a function that has the example
    assert ">>> " in text or is_record, "no example"
    takes = [name for name in inspect.signature(part).parameters if name not in ("self", "args", "kwargs")]
    if takes:
        assert "Parameters\n---" in text
        described = text.split("Parameters\n---", 1)[1]
        for name in takes:
            assert re.search(rf"^(.*[\s,*])?{name}\b.*$", described, flags=re.M), f"{name} is not described"
    if inspect.isfunction(part) and inspect.signature(part).return_annotation not in (None, "None"):
        assert "Returns\n---" in text


@pytest.mark.parametrize("method", METHODS)
def test_public_methods_begin_with_a_sentence(method):
    text = inspect.getdoc(method) or ""
    assert len(text) > 20, "no docstring"
    assert text.splitlines()[0].rstrip().endswith((".", ":")), "the first line is a sentence"


@pytest.mark.parametrize("method", [part for part in METHODS if part.id.split(".")[0] in CALLED_DIRECTLY])
def test_methods_that_users_call_have_sections(method):
    text, signature = inspect.getdoc(method) or "", inspect.signature(method)
    takes = [name for name in signature.parameters if name != "self"]
    if takes:
        described = text.partition("Parameters\n---")[2].partition("\n\n")[0]
        for name in takes:
            assert re.search(rf"^([*\w, ]*[\s,*])?{name}\b", described, flags=re.M), f"{name} is not described"
    if signature.return_annotation not in (None, "None"):
        assert "Returns\n---" in text or "Yields\n---" in text
    if "X" in takes or "    raise " in inspect.getsource(method):
        assert "Raises\n---" in text


@pytest.mark.parametrize("method", [part for part in METHODS if part.id.split(".")[0] not in CALLED_DIRECTLY])
def test_methods_of_parts_name_their_shapes_and_errors(method):
    """What they take stands in rplvq/protocols.py, once for all parts."""
    text, gives = inspect.getdoc(method) or "", str(inspect.signature(method).return_annotation)
    if re.search("Array|Evaluation|Prototypes|InverseFactors|Geodesics", gives):
        assert re.search(r"\((\w+|\.\.\.)(, (\w+|\.\.\.))*,?\)", text), "no shape"
    if "    raise " in inspect.getsource(method) or method.__name__ == "encode":
        assert re.search("raise|Raises", text), "its errors are not told"


def test_protocols_have_sections():
    for part in (rplvq.protocols.Cost, rplvq.protocols.Initializer):
        text = inspect.getdoc(part.__call__)
        assert all(f"{name}\n---" in text for name in ("Parameters", "Returns"))
    for name in ("encode", "decode", "sqdist", "connect", "move"):
        assert "(" in inspect.getdoc(getattr(rplvq.protocols.Manifold, name))


def documented():
    """What the API pages show, by name: functions, classes, and the methods of classes."""
    for identifier in sorted(identifiers()):
        if not identifier.startswith("rplvq.distributed") or DISTRIBUTED:
            shown = pydoc.locate(identifier)
            parts = [shown]
            if inspect.ismodule(shown):
                own = [part for part in vars(shown).values() if getattr(part, "__module__", "") == shown.__name__]
                parts = [part for part in own if not getattr(part, "__name__", "_").startswith("_")]
            for part in parts:
                if inspect.isclass(part):
                    yield from ((f"{part.__qualname__}.{name}", method) for name, method in members(part))
                if callable(part):
                    yield part.__qualname__, part


def untrue_groups(part):
    """Entries ``a, b : type`` of a docstring that are untrue of one of the names: sites show the first's for all."""
    described = (inspect.getdoc(part) or "").partition("Parameters\n---")[2]
    if not described:
        return
    described = re.split(r"\n\n\w+\n---", described)[0]
    taken = inspect.signature(part).parameters
    for names, kind in re.findall(r"^(\w+(?:, \w+)+)(?: : (.*))?$", described, flags=re.M):
        found = [taken[name] for name in names.split(", ") if name in taken]
        if len({(str(item.annotation), repr(item.default)) for item in found}) > 1 or " and " in kind:
            yield f"{names} : {kind}"


def test_no_entry_describes_parameters_that_differ():
    shown = dict(documented())
    assert {"adaptive_step", "make_syn2", "minimise", "Trainer.begin", "Trainer.step", "Window"} <= set(shown)
    assert {name: groups for name, part in shown.items() if (groups := list(untrue_groups(part)))} == {}


def test_entries_of_parameters_that_differ_are_found():
    def part(a: int, b: float, c: int = 0, d: int = 0):
        """Take numbers.

        Parameters
        ----------
        a, b : int
            These differ in type.
        a, c : int
            These in their default.
        c, d : int and int
            These in what is said.
        c, d : int
            These do not.

        Returns
        -------
        a, b : int
            Another section.
        """

    assert list(untrue_groups(part)) == ["a, b : int", "a, c : int", "c, d : int and int"]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_in_order(page, monkeypatch, capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", load("included").expand((DOCS / page).read_text()), flags=re.M | re.S
    )
    if not blocks:
        return
    module = types.ModuleType(f"page_{Path(page).stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # a reader's classes live in a module, and pickle there
    monkeypatch.chdir(ROOT)
    for block in blocks:
        exec(compile(block, page, "exec"), module.__dict__)
    capsys.readouterr()


def test_blocks_of_contributing_are_those_under_the_heading():
    code = load("included").code
    assert "class Cholesky" in code("A metric")
    assert "class Nearest" in code("A cost")
    assert "class InverseTime" in code("A schedule")
    assert all(code(part).count("```") == 2 for part in ("A metric", "A cost", "A schedule"))


def test_home_shows_the_commands_of_the_readme():
    commands = [
        re.search(r"```bash\n(.*?)```", path.read_text(), flags=re.S)[1]
        for path in (ROOT / "README.md", DOCS / "index.md")
    ]
    assert commands[0] == commands[1]


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    nav = set(re.findall(r"([\w/-]+\.md)$", text[text.index("\nnav:") :], flags=re.M))
    listed = {f"examples/{name}.md" for name in load("make_gallery").names()} | {"examples/index.md"}
    # The README of the vendored MathJax is for those who read the repository.
    assert nav == {page for page in PAGES if not page.startswith("assets/")} | listed


def test_tables_of_results_are_made_from_files(tmp_path, monkeypatch):
    included = load("included")
    monkeypatch.setattr(included, "RESULTS", tmp_path)
    (tmp_path / "trial").mkdir()
    for number, value in enumerate((0.5, 0.7)):
        record = f'{{"method": "A", "result": {{"accuracy": {value}, "kappa": 0.1}}}}'
        (tmp_path / "trial" / f"A-{number:03d}.json").write_text(record)
    assert included.expand("{{ results: trial }}").splitlines()[-1] == "| A | 0.6000 | 0.1414 | 2 |"
    with pytest.raises(ValueError, match="no result files"):
        included.results("nowhere")
    monkeypatch.setattr(included, "BEYOND", tmp_path)
    with pytest.raises(ValueError, match="no result files with sigma2"):
        included.rules("sigma2")
    (tmp_path / "sigma2-syn2").mkdir()
    for number, value in enumerate((0.25, 0.5)):
        record = f'{{"experiment": "sigma2-syn2", "method": "auto", "result": {{"sigma2": {value}}}}}'
        (tmp_path / "sigma2-syn2" / f"auto-{number:03d}.json").write_text(record)
    assert included.expand("{{ rules: sigma2 }}").splitlines()[-1] == "| SynII |  |  | 0.25 to 0.5 |  |"
    with pytest.raises(ValueError, match="no Python block"):
        included.code("Nothing")
