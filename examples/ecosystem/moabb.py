"""Rows for MOABB's tables: rplvq beside MDM, FgMDM and TS+LR in MOABB's own within-session evaluation.

    python -m examples.ecosystem.moabb

downloads seven data sets, one after another (tens of GB), runs all pipelines on each, and writes one CSV of all scores.
MOABB keeps each score as soon as it is computed, so that an interrupted run goes on where it stopped.

    python -m examples.ecosystem.moabb --stand-ins

needs no network: it takes MOABB's simulated data in the place of each data set, and the trials of one subject of
PhysionetMI from the folder of RPLVQ_DATA if they are there. This module needs the extra ``eeg``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from examples.ecosystem.steps import augmented_step
from examples.paper.data import is_available
from examples.paper.report import table
from rplvq import RiemannianLVQ

__all__ = ["DATASETS", "LOCAL", "NAMES", "Entry", "beside_published", "main", "pipelines", "run"]

LOCAL = "PhysionetMI, S001"
LOCAL_FILE = "eegmmi_s001_raw.npz"
FOUND = Path(__file__).parent / "results" / "moabb.csv"
STAND_INS = "stand-ins.csv"
COLUMNS = ("dataset", "pipeline", "subject", "session", "score", "time", "samples")
NAMES = ("MDM", "FgMDM", "TS+LR", "rplvq", "rplvq, tangent", "rplvq, whitened", "rplvq, ACM whitened")
DELAY = 0.032
"""Lag of augmented covariances in seconds, which is 8 samples at 250 Hz."""
MANY_CHANNELS = 32
"""With more channels an augmented covariance holds the signals and one delay instead of three."""


@attrs.frozen
class Entry:
    """One data set: its classes, its sampling frequency in Hz, its channels, and published accuracies in percent.

    Published are means over subjects and sessions in five folds within sessions (Chevallier et al. 2024,
    arXiv:2404.15319); ``best`` names the best pipeline of these tables.
    """

    events: tuple[str, ...]
    sfreq: float
    n_channels: int
    published: tuple[float | None, float | None, float | None, float | None]  # MDM, FgMDM, TS+LR, best
    best: str
    is_ssvep: bool = False


HANDS = ("left_hand", "right_hand")
DATASETS = {
    "BNCI2014_001": Entry((*HANDS, "feet", "tongue"), 250, 22, (61.60, 70.14, 71.97, 77.82), "ACM+TS+SVM"),
    "PhysionetMI": Entry((*HANDS, "feet", "hands"), 160, 64, (42.96, 55.04, 58.55, 59.93), "TS+EL"),
    "Weibo2014": Entry(
        (*HANDS, "hands", "feet", "left_hand_right_foot", "right_hand_left_foot", "rest"),
        200, 60, (33.41, 56.94, 62.76, 63.89), "ACM",
    ),
    "Schirrmeister2017": Entry((*HANDS, "rest", "feet"), 500, 128, (52.03, 82.97, 84.60, 85.53), "TS+EL"),
    "Zhou2016": Entry((*HANDS, "feet"), 250, 14, (76.05, 83.07, 84.88, 85.25), "ACM"),
    "AlexMI": Entry(("right_hand", "feet", "rest"), 512, 16, (60.62, 65.63, 69.17, 69.79), "TS+EL"),
    "Kalunga2016": Entry(("13", "17", "21", "rest"), 256, 24, (70.89, None, 70.86, 70.89), "MDM", is_ssvep=True),
}  # fmt: skip
LOCAL_ENTRY = Entry((*HANDS, "feet", "hands"), 160, 22, (None, None, None, None), "")


def pipelines(entry: Entry) -> dict[str, Any]:
    """Return the pipelines of :data:`NAMES` for one data set."""
    from moabb.pipelines import ExtendedSSVEPSignal
    from pyriemann.classification import MDM, FgMDM
    from pyriemann.estimation import Covariances
    from pyriemann.tangentspace import TangentSpace
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    first = [ExtendedSSVEPSignal()] if entry.is_ssvep else []
    order = 4 if entry.n_channels <= MANY_CHANNELS else 2
    delayed = augmented_step(order=order, lag=max(round(DELAY * entry.sfreq), 1), shrinkage="oas")
    classifiers = {
        "MDM": [MDM(metric="riemann")],
        "FgMDM": [FgMDM(metric="riemann")],
        "TS+LR": [TangentSpace(metric="riemann"), LogisticRegression(max_iter=1000)],
        "rplvq": [RiemannianLVQ(random_state=0)],
        "rplvq, tangent": [RiemannianLVQ("tangent", random_state=0)],
        "rplvq, whitened": [RiemannianLVQ("whitened_tangent", random_state=0)],
    }
    found = {name: make_pipeline(*first, Covariances("oas"), *steps) for name, steps in classifiers.items()}
    found[NAMES[-1]] = make_pipeline(*first, delayed, RiemannianLVQ("whitened_tangent", random_state=0))
    return found


def paradigm_of(entry: Entry) -> Any:
    """Return MOABB's paradigm for the classes of a data set."""
    from moabb.paradigms import FilterBankSSVEP, MotorImagery

    kind = FilterBankSSVEP if entry.is_ssvep else MotorImagery
    return kind(n_classes=len(entry.events), events=list(entry.events))


def dataset_of(name: str, entry: Entry, stand_in: bool) -> Any:
    """Return the data set of this name, or a small simulated one with its classes and its sampling frequency."""
    if name == LOCAL:
        from examples.ecosystem.local_trials import LocalTrials

        return LocalTrials()
    if stand_in:
        from moabb.datasets.fake import FakeDataset

        kind = "ssvep" if entry.is_ssvep else "imagery"
        size: dict[str, Any] = {"n_sessions": 1, "n_runs": 1, "n_subjects": 1, "n_events": 12 * len(entry.events)}
        return FakeDataset(list(entry.events), paradigm=kind, sfreq=entry.sfreq, seed=0, **size)
    import moabb.datasets

    return getattr(moabb.datasets, name)()


def run(
    names: Iterable[str], folder: Path, *, stand_ins: bool = False, n_subjects: int | None = None, n_jobs: int = 1
) -> Path:
    """Evaluate all pipelines on each data set, and add its rows to the CSV as soon as the data set is done.

    Parameters
    ----------
    names : iterable of str
        Keys of :data:`DATASETS`, or :data:`LOCAL`.
    folder : path
        Where MOABB keeps scores, and where ``moabb.csv`` is written. Scores that are there are not computed again.
    stand_ins : bool, default=False
        Whether simulated data take the place of downloads.
    n_subjects : int, optional
        Only the first subjects of each data set.
    n_jobs : int, default=1
        Processes of MOABB.

    Returns
    -------
    path
        The CSV, of the columns dataset, pipeline, subject, session, score, time and samples.
    """
    from moabb.evaluations import WithinSessionEvaluation

    path = folder / (STAND_INS if stand_ins else "moabb.csv")
    for name in names:
        entry = DATASETS.get(name, LOCAL_ENTRY)
        dataset = dataset_of(name, entry, stand_ins)
        if n_subjects is not None:
            dataset.subject_list = dataset.subject_list[:n_subjects]
        kept = folder / "scores" / ("stand-ins" if stand_ins else "data") / name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of MOABB's dependencies
            evaluation = WithinSessionEvaluation(
                paradigm=paradigm_of(entry), datasets=[dataset], hdf5_path=str(kept), overwrite=False,
                random_state=42, n_jobs=n_jobs,
            )  # fmt: skip
            scores = evaluation.process(pipelines(entry))
        add_rows(path, name, scores)
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of the CSV, or none if it is absent."""
    if not path.is_file():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def add_rows(path: Path, name: str, scores: Any) -> None:
    """Replace the rows of one data set in the CSV by those of MOABB's table of scores."""
    new = [
        dict(zip(COLUMNS, (name, row.pipeline, row.subject, row.session, f"{row.score:.6f}", f"{row.time:.3f}",
                           f"{row.samples:.0f}"), strict=True))
        for row in scores.itertuples()
    ]  # fmt: skip
    rows = [row for row in read_rows(path) if row["dataset"] != name] + new
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".part"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    path.with_suffix(".part").replace(path)


def beside_published(path: Path = FOUND) -> str:
    """Return the table of the page: for each data set the published accuracies, and below them those of the CSV."""
    rows: list[list[str]] = []
    found = read_rows(path)
    measured = {row["dataset"] for row in found}
    for name, entry in (*DATASETS.items(), (LOCAL, LOCAL_ENTRY)):
        title = f"{name}, {len(entry.events)} classes"
        cells = ["" if value is None else f"{value:.2f}" for value in entry.published]
        if any(cells):
            rows.append([title, "published", *cells[:3], *[""] * 4, f"{cells[3]} ({entry.best})"])
        if name in measured:
            source = "simulated" if path.name == STAND_INS and name != LOCAL else "here"
            rows.append([title, source, *(_mean(found, name, pipeline) for pipeline in NAMES), ""])
    return table(["data set", "source", *NAMES, "best"], rows)


def _mean(rows: Sequence[dict[str, str]], dataset: str, pipeline: str) -> str:
    """Return the mean score in percent over subjects and sessions, as MOABB's tables have it."""
    scores = [float(row["score"]) for row in rows if (row["dataset"], row["pipeline"]) == (dataset, pipeline)]
    return f"{100 * np.mean(scores):.2f}" if scores else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _parser().parse_args(arguments)
    names = options.datasets or [*DATASETS, *([LOCAL] if options.stand_ins and is_available(LOCAL_FILE) else [])]
    path = options.folder / (STAND_INS if options.stand_ins else "moabb.csv")
    if not options.report:
        run(names, options.folder, stand_ins=options.stand_ins, n_subjects=options.subjects, n_jobs=options.jobs)
    print(beside_published(path))
    print(f"scores of each subject and session: {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    sets = ", ".join(f"{name} ({len(entry.events)} classes)" for name, entry in DATASETS.items())
    parser = argparse.ArgumentParser(
        prog="python -m examples.ecosystem.moabb",
        description="Run rplvq, MDM, FgMDM and TS+LR in MOABB's within-session evaluation, and print their accuracies "
        f"beside the published ones. Data sets: {sets}. An interrupted run goes on where it stopped.",
    )
    add = parser.add_argument
    add("--datasets", nargs="+", choices=[*DATASETS, LOCAL], metavar="NAME", help="only these data sets")
    add("--subjects", type=int, metavar="N", help="only the first N subjects of each data set")
    add("--folder", type=Path, default=Path("build/moabb"), help="where scores are kept (default build/moabb)")
    add("--stand-ins", action="store_true", help="no download: simulated data, and one local subject if it is there")
    add("--report", action="store_true", help="only print the table from the scores that are there")
    add("--jobs", type=int, default=1, help="processes (default 1)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
