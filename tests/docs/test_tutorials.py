"""The tutorials on EEG and radar: with recorded and with simulated data, and what they say without MNE-Python."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.docs.test_examples import gallery, require_a_story_and_a_picture

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = {"eeg_mne": "eegmmi_s001_raw.npz", "polsar": "polsar_sf_airsar_T3.npz"}


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run a tutorial with the data of a folder, or with simulated data; return its figure's pixels and what it printed.

    With simulated data it runs as for the gallery, whose results are taken if they are of the same code.
    """
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def call(name, folder=None):
        if name == "eeg_mne":
            pytest.importorskip("mne", reason='needs MNE-Python: pip install ".[eeg]" in the folder of rplvq')
        if folder is None:
            monkeypatch.delenv("RPLVQ_DATA", raising=False)
            outcome = gallery.run(name)
            require_a_story_and_a_picture(outcome["figure"], outcome["output"])
            return plt.imread(outcome["figure"])[..., :3], outcome["output"]
        monkeypatch.setenv("RPLVQ_DATA", str(folder))
        monkeypatch.setattr(plt, "show", lambda: plt.savefig(tmp_path / "figure.png"))
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return plt.imread(tmp_path / "figure.png")[..., :3], capsys.readouterr().out

    yield call
    plt.close("all")


def accuracy(printed, name):
    return float(re.search(rf"^ *{re.escape(name)} +(0\.\d+)", printed, flags=re.M)[1])


def has_colors(pixels):
    return (np.ptp(pixels, axis=2) > 0.2).mean() > 0.01


@pytest.mark.slow
def test_simulated_trials_are_told_apart_better_after_training(run):
    pixels, printed = run("eeg_mne")
    assert "120 simulated trials in 6 runs" in printed
    assert 0.6 < accuracy(printed, "class means (MDM)") < accuracy(printed, "rplvq, default") - 0.05
    assert has_colors(pixels)


@pytest.mark.slow
def test_a_simulated_scene_is_mapped_better_after_training(run):
    pixels, printed = run("polsar")
    assert "simulated scene of 450 x 512 pixels" in printed
    for method in ("MDM", "Wishart distance"):
        assert 0.5 < accuracy(printed, method) < accuracy(printed, "rplvq, default") - 0.15
    assert has_colors(pixels)


def shares(printed, view, what):
    """The promised share and those of the windows that the example on watching prints."""
    numbers = re.search(rf"^{view} +{what} +promised (.*)$", printed, flags=re.M)[1]
    promised, *windows = (float(number) for number in re.findall(r"(?<!- )\b[01]\.\d+", numbers))
    return promised, np.array(windows)


@pytest.mark.slow
@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_session_that_drifts_breaks_the_promises_until_it_is_centred(run, request, is_recorded):
    folder = request.getfixturevalue("real_data")("bci2a_cov22.npz").parent if is_recorded else None
    pixels, printed = run("watching", folder)
    assert f"{'3 recorded' if is_recorded else '1 simulated'} subject(s)" in printed
    promised, measured = shares(printed, "as measured", "novel")
    _, centered = shares(printed, "re-centred", "novel")
    assert promised == 0.05
    assert len(measured) == len(centered) == 8
    assert measured[1:].min() > 0.25 > 0.15 > centered[1:].mean()
    assert has_colors(pixels)


@pytest.mark.slow
def test_live_trials_are_decided_rejected_and_centred(run, tmp_path):
    pytest.importorskip("mne_lsl", reason="needs MNE-LSL: pip install mne-lsl")
    _, printed = run("eeg_live", tmp_path)
    trials = re.findall(r"^ +\d+  (left|right) .*", printed, flags=re.M)
    assert len(trials) == 24
    assert "far from all" in printed  # the artefact
    right, wrong, rejected = (int(n) for n in re.search(r"(\d+) right, (\d+) wrong, (\d+) rejected", printed).groups())
    assert right > 2 * wrong
    assert right + wrong + rejected == 24
    assert "median latency" in printed


def test_without_mne_lsl_the_example_says_what_is_missing(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="needs MNE-LSL: pip install mne-lsl"):
        runpy.run_path(str(EXAMPLES / "eeg_live.py"), run_name="__main__")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_recorded_data_are_used_where_they_are(name, run, real_data):
    pixels, printed = run(name, real_data(FILES[name]).parent)
    assert "recorded" in printed
    assert accuracy(printed, "rplvq, default") > {"eeg_mne": 0.65, "polsar": 0.9}[name]
    assert has_colors(pixels)


def test_without_mne_the_tutorial_says_what_is_missing(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(SystemExit, match="needs MNE-Python: pip install mne"):
        runpy.run_path(str(EXAMPLES / "eeg_mne.py"), run_name="__main__")
