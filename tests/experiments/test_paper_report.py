"""The page on the reproduction of the paper: tables show the records, tests pair repetitions, figures are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from examples.paper import __main__ as command
from examples.paper import records, report


def record(folder, experiment, method, repetition, **result):
    entry = {"experiment": experiment, "method": method, "repetition": repetition, "settings": {}, "result": result}
    records.save(folder, entry | {"seconds": 0.0, "versions": {}, "command": "none"})


def test_tables_show_mean_spread_and_number_of_repetitions(tmp_path):
    for repetition in range(8):
        record(tmp_path, "syn1", "MDRM", repetition, accuracy=0.90 + 0.01 * repetition)
        record(tmp_path, "syn1", "PLRSQ-AN", repetition, accuracy=0.91 + 0.01 * repetition)
    text = report.synthetic(tmp_path, "syn1")
    assert "| MDRM | 0.9737 ± 0.0053 | 0.9350 ± 0.0245 [8] |" in text
    assert "| PLRSQ-AN - MDRM | 2.3e-06 | +0.0100 | 0.0078 |" in text  # 2 / 2^8: all eight differences have one sign
    assert "| PLRSQ-Const - MDRM | 4.2e-05 |  | too few |" in text


def test_pairs_are_the_repetitions_that_both_have():
    found = {"a": dict.fromkeys(range(6), 1.0), "b": dict.fromkeys(range(3, 9), 0.5)}
    assert report.paired(found, "a", "b") == ("+0.500", "too few")
    found["b"] |= dict.fromkeys(range(3), 0.5)
    difference, p = report.paired(found, "b", "a", factor=100, digits=1)
    assert difference == "-50.0"
    assert float(p) == pytest.approx(0.031, abs=1e-3)  # 2 / 2^6: all six differences have one sign
    assert report.paired(found, "a", "absent") == ("", "too few")


def test_kappas_are_averaged_over_subjects_then_seeds(tmp_path):
    record(tmp_path, "bci2a", "PLRSQ-Const", 0, kappa=[0.5] * 9)
    record(tmp_path, "bci2a", "PLRSQ-Const", 1, kappa=[0.7] * 9)
    expected = f"0.600 ± {np.std([0.5, 0.7], ddof=1):.3f} [2]"
    assert f"| PLRSQ-Const | {expected} | {' | '.join(['0.60'] * 9)} |" in report.bci(tmp_path)


@pytest.mark.parametrize("folder", [None, "empty"])
def test_the_page_is_written_whole(tmp_path, folder):
    source = command.RESULTS / "full" if folder is None else tmp_path / folder
    report.write(source, tmp_path)
    text = (tmp_path / "reproduction.md").read_text()
    assert "{{" not in text
    assert "| PLRSQ, paper | 0.57 |" in text or "| PLRSQ, paper | 0.59 |" in text
    drawn = sorted(path.name for path in (tmp_path / "assets" / "reproduction").iterdir())
    assert drawn == ["annealing_and_size.png", "convergence.png", "sigma2.png"]
