"""The examples run, print and draw, as scripts and as notebooks; those that need large data have a current record."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "__init__")
TUTORIALS = ("eeg_mne", "polsar", "watching")  # they also simulate their data: test_tutorials.py runs them
NEEDS = {
    "dimension_reduction": "bci2a_cov22.npz",
    "eeg_sessions": "bci2a_cov22.npz",
    "explain": "bci2a_cov22.npz",
    "prediction_sets": "bci2a_cov22.npz",
    "radar_scene": "polsar_sf_airsar_T3.npz",
}
"""The files of the large data that an example reads."""
FEWER = {
    "dimension_reduction": ("[2, 4, 8, 12, 22]", "[2, 8, 22]"),
    "explain": ("range(1, 10)", "(3,)"),
    "prediction_sets": ("range(1, 10), 10", "(1, 3), 2"),
}
"""What an example says on its subjects, sizes and repetitions, and the fewer ones that its test takes."""
EXTRAS = {
    "distributed_radar": "dask",
    "eeg_live": "mne_lsl",
    "eeg_mne": "mne",
    "prediction_sets": "crepes",
    "pyriemann_drop_in": "pyriemann",
}
"""The package beyond matplotlib that an example needs."""


def load_gallery():
    spec = importlib.util.spec_from_file_location("docs_make_gallery", ROOT / "docs" / "make_gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = load_gallery()
RECORDED = [name for name in SCRIPTS if gallery.split(gallery.source(name))[2]]


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run a script as a program, maybe with a phrase replaced; return the path of its figure and what it printed."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def call(name, phrase="", other=""):
        figure, script = tmp_path / f"{name}.png", tmp_path / f"{name}.py"
        text = gallery.source(name)
        assert not phrase or text.count(phrase) == 1, (name, phrase)
        script.write_text(text.replace(phrase, other) if phrase else text, encoding="utf-8")
        monkeypatch.setattr(plt, "show", lambda *_, **__: plt.savefig(figure, dpi=110))
        runpy.run_path(str(script), run_name="__main__")
        return figure, capsys.readouterr().out

    yield call
    plt.close("all")


@pytest.mark.slow  # trains examples, which takes minutes in all
@pytest.mark.parametrize("name", sorted({*SCRIPTS} - {*NEEDS, *TUTORIALS}))
def test_examples_print_and_draw(name):
    """They run as for the gallery, so that a build of the documentation afterwards finds their results."""
    pytest.importorskip("matplotlib")
    pytest.importorskip(EXTRAS.get(name, "matplotlib"))
    outcome = gallery.run(name)
    require_a_story_and_a_picture(outcome["figure"], outcome["output"])


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_examples_with_large_data_print_and_draw(name, run, real_data, monkeypatch):
    pytest.importorskip(EXTRAS.get(name, "matplotlib"))
    monkeypatch.setenv("RPLVQ_DATA", str(real_data(NEEDS[name]).parent))  # skips where the file is absent
    require_a_story_and_a_picture(*run(name, *FEWER.get(name, ())))


def require_a_story_and_a_picture(figure, printed):
    """Check that an example printed numbers and drew something."""
    assert len(printed) > 40
    assert not re.search(r"\bnan\b", printed.lower())  # a discriminant is no NaN
    assert max(map(len, printed.splitlines())) <= 110, "lines that a page cannot show whole"
    import matplotlib.pyplot as plt

    pixels = plt.imread(figure)
    assert pixels.shape[1] >= 500
    assert 0.005 < (pixels[..., :3].min(axis=2) < 0.9).mean() < 0.99


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_are_short_and_tell_a_story(name):
    text = gallery.source(name)
    assert len(text.splitlines()) < (120 if name in (*TUTORIALS, "eeg_live") else 90)
    title, story, *_ = gallery.split(text)
    assert "\n" not in title
    assert len(story.split()) > 25


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_need_no_other_file_of_the_repository(name):
    tree = ast.walk(ast.parse(gallery.source(name)))
    named = {node.module for node in tree if isinstance(node, ast.ImportFrom)}
    named |= {alias.name for node in tree if isinstance(node, ast.Import) for alias in node.names}
    assert not {each.partition(".")[0] for each in named} & {"examples", "docs", "tests", *SCRIPTS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_notebooks_hold_the_code_of_the_scripts_in_cells(name):
    text = gallery.source(name)
    notebook = json.loads(gallery.notebook(text))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert "".join(cells[0]["source"]).startswith(f"# {gallery.split(text)[0]}")
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == 1 + text.count("\n# %%")
    assert gallery.code_key('""\n' + "\n".join(code)) == gallery.code_key(text)


def test_examples_that_need_large_data_are_known():
    reads = {name for name in SCRIPTS if "RPLVQ_DATA" in gallery.split(gallery.source(name))[3]}
    assert reads == {*NEEDS, *TUTORIALS}  # the tutorials simulate their data where a file is absent
    assert set(NEEDS) <= set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_records_are_those_of_the_code(name):
    record = json.loads((gallery.RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    advice = f"run `python docs/make_gallery.py --record {name}` where the data are"
    assert record["code"] == gallery.code_key(gallery.source(name)), advice
    require_a_story_and_a_picture(gallery.RECORDED / f"{name}.png", record["output"])
    page = gallery.page(name, record)
    assert record["output"] in page
    assert "were recorded on" in page


@pytest.mark.parametrize("name", NEEDS)
def test_without_the_data_they_say_so(name, run, monkeypatch, tmp_path):
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path / "empty"))
    with pytest.raises(SystemExit) as end:
        run(name)
    assert f"There is no file {tmp_path / 'empty' / NEEDS[name]}" in end.value.code
