"""The examples run, print and draw; without the real data they say so and end."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # trains experiments or examples, which takes minutes in all

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("__init__", "showing"))
TUTORIALS = ("eeg_mne", "polsar")  # they also simulate their data: see test_tutorials.py
REAL = {
    "dimension_reduction": "bci2a_cov22.npz",
    "eeg_sessions": "bci2a_cov22.npz",
    "radar_scene": "polsar_sf_airsar_T3.npz",
}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run a script as a program with --out; return the figure's path and what it printed."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def call(name):
        figure = tmp_path / f"{name}.png"
        monkeypatch.setattr(sys, "argv", [f"{name}.py", "--out", str(figure)])
        monkeypatch.setattr(plt, "show", lambda: plt.savefig(figure))
        monkeypatch.syspath_prepend(str(EXAMPLES))
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return figure, capsys.readouterr().out

    yield call
    plt.close("all")


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_print_and_draw(name, run, real_data):
    if name in REAL:
        real_data(REAL[name])  # skips where it is absent
    if name == "distributed_radar":
        pytest.importorskip("dask", reason="needs dask: pip install 'rplvq[dask]'")
    if name == "eeg_mne":
        pytest.importorskip("mne", reason="needs MNE-Python: pip install 'rplvq[eeg]'")
    figure, printed = run(name)
    require_a_story_and_a_picture(figure, printed)


def test_the_distributed_example_generates_a_scene_where_the_data_are_absent(run, monkeypatch, tmp_path):
    pytest.importorskip("dask", reason="needs dask: pip install 'rplvq[dask]'")
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path / "empty"))
    figure, printed = run("distributed_radar")
    assert "a generated scene takes its place" in printed
    require_a_story_and_a_picture(figure, printed)


def require_a_story_and_a_picture(figure, printed):
    """Check that an example printed numbers and drew something."""
    assert len(printed) > 40
    assert "nan" not in printed.lower()
    import matplotlib.pyplot as plt

    pixels = plt.imread(figure)
    assert pixels.shape[1] >= 500
    assert 0.005 < (pixels[..., :3].min(axis=2) < 0.9).mean() < 0.99


@pytest.mark.parametrize("name", SCRIPTS)
def test_examples_are_short_and_tell_a_story(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) < (120 if name in TUTORIALS else 80)
    title, _, story = text.split('"""')[1].partition("\n\n")
    assert "\n" not in title
    assert len(story.split()) > 25


@pytest.mark.parametrize("name", REAL)
def test_without_the_data_they_say_so(name, run, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("RPLVQ_DATA", str(tmp_path / "empty"))
    with pytest.raises(SystemExit) as end:
        run(name)
    assert end.value.code == 0
    assert "Set RPLVQ_DATA" in capsys.readouterr().out
