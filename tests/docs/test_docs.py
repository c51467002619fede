"""The documentation: everything public has an entry, every code block runs, and every page is in the navigation."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pydoc
import re
import sys
import tomllib
import types
from pathlib import Path
from typing import Self

import pytest

import rplvq
import rplvq.protocols
from rplvq.costs import calibrated_loss
from rplvq.datasets import make_syn1
from rplvq.evaluation import Comparison
from rplvq.preprocessing import StreamingPipeline
from rplvq.schedules import InitialEvidence, blended_sigma2, free_numbers, half_median, likeliest_sigma2

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
PUBLIC = [getattr(rplvq, name) for name in rplvq.__all__]
MODULES = ["presets", "features", "datasets", "testing", "plotting", "evaluation", "inspection"]
if importlib.util.find_spec("dask"):
    MODULES.append("distributed")
FUNCTIONS = [
    getattr(module, name)
    for m in MODULES
    for module in [importlib.import_module(f"rplvq.{m}")]
    for name in module.__all__
    if isinstance(getattr(module, name), type | types.FunctionType)  # and no name of a type, such as TestName
    and getattr(module, name) not in PUBLIC
    and name not in ("mean_and_deviation", "p_text")
]
FUNCTIONS += [blended_sigma2, half_median, likeliest_sigma2, free_numbers, InitialEvidence, calibrated_loss]


def load(name):
    """A module of docs/; the folder is no package."""
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
CLASSES = [part for part in [*PUBLIC, Comparison, StreamingPipeline, *DISTRIBUTED] if inspect.isclass(part)]
CALLED_DIRECTLY = {
    *("Comparison", "DistributedLVQ", "Recenter", "RejectOption"),
    *("RiemannianLVQ", "SPDProjection", "StreamingPipeline", "Trainer"),
}
"""Classes whose methods users call; those of parts (manifolds, costs, schedules) are called by the trainer."""
METHODS = [pytest.param(m, id=f"{c.__name__}.{name}") for c in CLASSES for name, m in members(c)]


def identifiers():
    """Every identifier that the API pages ask for."""
    text = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    return set(re.findall(r"^::: (\S+)$", text, flags=re.M))


def has_entry(part):
    """Whether a page shows the object itself, or the module that defines it."""
    return any(pydoc.locate(name) is part or name == part.__module__ for name in identifiers())


def test_entries_are_named_as_users_import_them():
    for name in identifiers():
        if name.startswith("rplvq.distributed") and not DISTRIBUTED:
            continue
        assert pydoc.locate(name) is not None, f"{name} does not exist"
        module, _, last = name.rpartition(".")
        if not inspect.ismodule(pydoc.locate(name)):
            # A room exports what its face lists; a single module exports what it defines.
            exported = getattr(importlib.import_module(module), "__all__", None)
            defined_here = exported is None and pydoc.locate(name).__module__ == module
            assert defined_here or last in (exported or ()), f"{module} does not export {last}"


def test_roles_in_docstrings_name_objects_that_exist():
    role = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?(rplvq\.[\w.]+)`")
    text = "\n".join(path.read_text() for path in (ROOT / "rplvq").rglob("*.py"))
    named = {name for name in role.findall(text) if DISTRIBUTED or not name.startswith("rplvq.distributed")}
    assert len(named) > 50
    assert {name for name in named if pydoc.locate(name) is None} - fields_of_classes(named) == set()


def fields_of_classes(names):
    """Those names that are annotated fields of a class, which need not be attributes of it."""
    found = set()
    for name in names:
        owner, _, last = name.rpartition(".")
        cls = pydoc.locate(owner)
        if inspect.isclass(cls) and last in inspect.get_annotations(cls):
            found.add(name)
    return found


@pytest.mark.parametrize("part", [*PUBLIC, *FUNCTIONS], ids=lambda part: part.__qualname__)
def test_public_names_are_in_the_reference_with_sections_and_an_example(part):
    assert has_entry(part), "no entry in docs/api"
    text = inspect.getdoc(part) or ""
    is_record = inspect.isclass(part) and issubclass(part, tuple)  # made by a function that has the example
    assert ">>> " in text or is_record, "no example"
    takes = [name for name in inspect.signature(part).parameters if name not in ("self", "args", "kwargs")]
    if takes:
        described = text.split("Parameters\n---", 1)[1] if "Parameters\n---" in text else with_references(text)
        for name in takes:
            assert re.search(rf"^(.*[\s,*`])?{name}\b.*$", described, flags=re.M), f"{name} is not described"
    if inspect.isfunction(part) and inspect.signature(part).return_annotation not in (None, "None"):
        by_class = inspect.signature(part).return_annotation
        assert "Returns\n---" in text or text.startswith(GIVES) or has_entry(by_class)


GIVES = (
    "Return ", "Compute ", "Predict ", "Draw ", "Minimise ", "Maximum-likelihood ", "Say ", "Answer ", "Split ",
    "One dict per ", "Test ", "Compare ", "Sweep once; return ",
)  # fmt: skip
"""Beginnings of sentences that say what is given, so that no section need repeat it."""


def with_references(text):
    """A docstring with those of the functions and classes of the library to which it refers."""
    names = [name.removeprefix("rplvq.").split(".") for name in re.findall(r":(?:func|class):`([\w.]+)`", text)]
    found = [part for part in (*PUBLIC, *FUNCTIONS) if [part.__name__] in [name[-1:] for name in names]]
    return "\n\n".join([text, *map(inspect.getdoc, found)])


def test_public_methods_begin_with_a_sentence():
    for part in METHODS:
        text = inspect.getdoc(part.values[0]) or ""
        assert len(text) > 20, f"{part.id} has no docstring"
        assert text.splitlines()[0].rstrip().endswith((".", ":")), f"{part.id}: the first line is no sentence"


def stated(cls, method):
    """Docstring of a method with those that it refers to: one place describes what several methods share."""
    text = inspect.getdoc(method) or ""
    others = [getattr(cls, name) for name in re.findall(r":meth:`(\w+)`", text)]
    return "\n\n".join([text, *map(inspect.getdoc, others), (inspect.getdoc(cls) or "").partition("Notes\n---")[2]])


@pytest.mark.parametrize(
    ("cls", "method"),
    [
        pytest.param(cls, method, id=f"{cls.__name__}.{name}")
        for cls in CLASSES
        if cls.__name__ in CALLED_DIRECTLY
        for name, method in members(cls)
    ],
)
def test_methods_that_users_call_have_sections(cls, method):
    text, signature = inspect.getdoc(method) or "", inspect.signature(method)
    takes = [name for name in signature.parameters if name != "self"]
    for name in takes:
        assert re.search(rf"\b{name}\b", stated(cls, method)), f"{name} is not described"
    if signature.return_annotation not in (None, "None", "Self", Self):
        assert "Returns\n---" in text or "Yields\n---" in text or text.startswith(GIVES)
    if "X" in takes or "    raise " in inspect.getsource(method):
        assert "Raises\n---" in text or re.search("[Rr]aise", stated(cls, method))


def test_methods_of_parts_name_their_shapes_and_errors():
    """What they take stands in rplvq/protocols.py, once for all parts."""
    for part in METHODS:
        if part.id.split(".")[0] in CALLED_DIRECTLY:
            continue
        (method,) = part.values
        text = inspect.getdoc(method) or ""
        gives = str(inspect.signature(method).return_annotation)
        if re.search("Array|Evaluation|Prototypes|InverseFactors|Geodesics", gives):
            assert re.search(r"\((\w+|\.\.\.)(, (\w+|\.\.\.))*,?\)", text), f"{part.id} states no shape"
        if "    raise " in inspect.getsource(method) or method.__name__ == "encode":
            assert re.search("[Rr]aise", text), f"{part.id} does not state its errors"


def test_protocols_have_sections():
    for part in (rplvq.protocols.Cost, rplvq.protocols.Initializer):
        text = inspect.getdoc(part.__call__)
        assert all(f"{name}\n---" in text for name in ("Parameters", "Returns"))
    for name in ("encode", "decode", "sqdist", "connect", "move"):
        assert "(" in inspect.getdoc(getattr(rplvq.protocols.Manifold, name))


def documented():
    """Yield what the API pages show, by name: functions, classes, and the methods of classes."""
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
    """Yield entries ``a, b : A and B`` that have neither one type for all names nor one type for each of them."""
    described = (inspect.getdoc(part) or "").partition("Parameters\n---")[2]
    if not described:
        return
    described = re.split(r"\n\n\w+\n---", described)[0]
    taken = inspect.signature(part).parameters
    for names, kind in re.findall(r"^(\w+(?:, \w+)+) : (.*)$", described, flags=re.M):
        found = {re.match(r"\W*(\w+)", str(taken[name].annotation))[1] for name in names.split(", ") if name in taken}
        count = len(kind.split(" and "))
        if count not in (1, len(names.split(", "))) or (count == 1 and len(found) > 1):
            yield f"{names} : {kind}"


def test_no_entry_describes_parameters_that_differ():
    shown = dict(documented())
    assert {"AdaptiveStep.update", "make_syn2", "Trainer.begin", "Trainer.step", "Window"} <= set(shown)
    assert {name: groups for name, part in shown.items() if (groups := list(untrue_groups(part)))} == {}


def test_entries_of_parameters_that_differ_are_found():
    def part(a: int, b: float, c: int = 0, d: int = 0):
        """Take numbers.

        Parameters
        ----------
        a, b : int
            One type for parameters of two types.
        a, b, c : int and float
            Two types for three parameters.
        a, b : int and float
            One type for each.
        c, d : int
            One type for all.

        Returns
        -------
        a, b : int
            Another section.
        """

    assert list(untrue_groups(part)) == ["a, b : int", "a, b, c : int and float"]


SLOW_PAGES = {"index.md", "compare.md"}
"""The home page fits the model of the README, whose block test_documents.py runs; the other compares on all digits."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow) if page in SLOW_PAGES else page for page in PAGES]
)
def test_python_blocks_run_in_order(page, monkeypatch, capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", load("included").expand((DOCS / page).read_text()), flags=re.M | re.S
    )
    if not blocks:
        return
    module = types.ModuleType(f"page_{Path(page).stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # classes are pickled by their module
    monkeypatch.chdir(ROOT)
    for block in blocks:
        exec(compile(block, page, "exec"), module.__dict__)
    capsys.readouterr()


def test_blocks_of_contributing_are_those_under_the_heading():
    code = load("included").code
    assert "class Cholesky" in code("A metric")
    assert "class Nearest" in code("A cost")
    assert "class Hyperbolic" in code("A schedule")
    assert "class AdaGrad" in code("A step rule")
    assert all(code(part).count("```") == 2 for part in ("A metric", "A cost", "A schedule", "A step rule"))


def test_the_page_on_architecture_shows_all_packages_and_the_layers():
    text = (DOCS / "architecture.md").read_text()
    package = ROOT / "rplvq"
    rooms = {f"{path.parent.name}/" for path in package.rglob("__init__.py")} - {"rplvq/"}
    modules = {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    assert {name for name in rooms | modules if not re.search(rf"^ +{re.escape(name)} +\S", text, flags=re.M)} == set()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    assert "```text\n" + "\n".join(contract["layers"]) + "\n```" in text
    named = set(re.findall(r"\b(?:[a-z_]+/)+_?[a-z_]+\.py\b", text)) - {"tests/cases.py"}
    missing = {name for name in named if not (package / name).exists() and not (ROOT / name).exists()}
    rooms = ("manifolds", "costs", "schedules", "features", "preprocessing", "initializers")
    assert missing == {f"{room}/_name.py" for room in rooms} | {"examples/name.py"}


def test_one_fit_crosses_few_files_and_its_calls_are_not_deep():
    X, y = make_syn1(n_per_class=30, random_state=0)
    package = str(ROOT / "rplvq")
    crossed = set()
    depths = [0]

    def note(frame, event, _):
        if not frame.f_code.co_filename.startswith(package):
            return
        if event == "call":
            crossed.add(frame.f_code.co_filename)
            depths.append(depths[-1] + 1)
        elif event == "return":
            depths.append(depths[-1] - 1)

    model = rplvq.RiemannianLVQ(rplvq.AffineInvariant(compiled=False), max_epochs=20, random_state=0)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(before)
    assert 10 < len(crossed) <= 31, sorted(crossed)
    assert depths[-1] == 0
    assert 5 < max(depths) <= 15


def test_home_shows_the_commands_of_the_readme():
    commands = [
        re.search(r"```bash\n(.*?)```", path.read_text(), flags=re.S)[1]
        for path in (ROOT / "README.md", DOCS / "index.md")
    ]
    assert commands[0] == commands[1]


def test_every_page_is_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text()
    nav = set(re.findall(r"([\w/-]+\.md)$", text[text.index("\nnav:") :], flags=re.M))
    pytest.importorskip("yaml")
    listed = {f"examples/{name}.md" for name in load("make_gallery").names()} | {"examples/index.md"}
    # The README of the vendored MathJax is for those who read the repository.
    assert nav == {page for page in PAGES if not page.startswith("assets/")} | listed


def test_tables_of_results_are_made_from_files(tmp_path, monkeypatch):
    included = load("included")
    monkeypatch.setattr(included, "RESULTS", tmp_path)
    record = '{"experiment": "trial", "method": "A", "result": {"accuracy": %s, "kappa": 0.1}}\n'
    (tmp_path / "trial.jsonl").write_text("{}\n" + record % 0.5 + record % 0.7)  # the first line describes the rest
    assert included.expand("{{ results: trial }}").splitlines()[-1] == "| A | 0.6000 | 0.1414 | 2 |"
    with pytest.raises(ValueError, match="no records"):
        included.results("nowhere")
    with pytest.raises(ValueError, match="no Python block"):
        included.code("Nothing")


def test_what_a_command_finds_is_shown_without_seconds():
    X, y = rplvq.datasets.load_digits_covariances()
    result = rplvq.compare(X[:200], y[:200], ["riemann"], cv=3, random_state=0)
    shown = load("included").excerpt(result.to_markdown())
    scores, differences, conclusion = shown.split("\n\n")
    assert scores.splitlines()[0] == "|  | estimator | accuracy | kappa | trained | sigma2 |"
    assert len(scores.splitlines()) == 4
    assert all(line.count("|") == 7 for line in scores.splitlines())
    assert differences.startswith("| question | first | second |")
    (sentence,) = result.conclusions()
    assert conclusion == f"> {sentence}".replace("_", "\\_").replace("<", "&lt;")


@pytest.mark.slow
def test_the_page_on_comparing_shows_what_its_command_finds():
    """It runs as in a build of the documentation, which afterwards finds its report."""
    text = (DOCS / "compare.md").read_text()
    assert text.index("python -m rplvq compare\n") < text.index("{{ report: compare }}")
    shown = load("included").expand(text, run=True)
    assert "{{ report" not in shown
    assert "| 4 | log\\_euclidean MDM | 0." in shown
    assert shown.count("\n> ") == 2


def test_the_page_on_citation_shows_the_entries_of_the_file():
    pytest.importorskip("yaml")
    text = load("included").expand((DOCS / "citation.md").read_text())
    assert "@article{tang2021," in text
    assert "  doi = {10.1016/j.neunet.2021.04.024}," in text
    assert "  pages = {105--118}," in text
    assert f"  version = {{{rplvq.__version__}}}," in text


def test_pages_show_what_their_blocks_print_and_draw(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    outputs = load("outputs")
    monkeypatch.setattr(outputs, "BUILD", tmp_path)
    text = (
        "```python\nn = 6 * 7\nprint(n)\n```\n\n{{ output }}\n\n"
        "```python\nimport matplotlib.pyplot as plt\n\nplt.plot([n])\n```\n\n{{ figure: A point }}\n"
    )
    filled = outputs.fill("trial", text, outputs.run("trial", text))
    assert "``` {.text .output}\n42\n```" in filled
    assert "![A point](assets/pages/trial-1.png)" in filled
    assert [path.name for path in tmp_path.glob("*.png")] == ["trial-1.png"]
    monkeypatch.setattr(outputs, "RUN", "raise SystemExit('ran again')")
    assert outputs.run("trial", text) == ["42", ""]  # known
    with pytest.raises(RuntimeError, match="ran again"):
        outputs.run("trial", text.replace("7", "8"))


def test_pages_of_the_reference_begin_with_a_summary_of_each_entry():
    summaries = load("summaries")
    shown = summaries.with_table((DOCS / "api" / "presets.md").read_text())
    assert shown.index("| [`plrsq_const`][rplvq.presets.plrsq_const] | PLRSQ-Const") < shown.index("::: ")
    assert summaries.first_sentence(rplvq.StepSize).endswith("too.")

    def of_roles(x):
        """Return a :class:`rplvq.Trainer` of ``x``. More

        text."""

    assert summaries.first_sentence(of_roles) == "Return a `Trainer` of `x`."
    short = "# One\n\n::: rplvq.compare\n"
    assert summaries.with_table(short) == short
