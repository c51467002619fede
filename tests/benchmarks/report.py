"""Writes docs/performance.md and docs/scale.md from their templates and the result files of the benchmarks.

    python tests/benchmarks/report.py            # writes both pages
    python tests/benchmarks/report.py --check    # checks that both pages are up to date

Run this command after a benchmark was run again. Each benchmark says at its top how it is run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
RESULTS = HERE / "results"
PAGES = ("performance", "scale")
SHORT = {"pyriemann": "pyRiemann", "NearestCentroid on log-vectors": "Nearest-Centroid"}
SHORT |= {"eigh of every sample": "eigh alone", "eigvalsh of every pair": "eigvalsh alone"}
PERFORMANCE = ("goals", "training", "metrics", "threads", "cold_start", "predict", "radar_scene", "memory")
"""The files behind the page on performance."""
SHOWN = (2, 3, 5, 10, 22)
"""The sizes of matrices in the table of metrics."""
WORKERS = (1, 10, 100)
MANY, A_PARTITION = 10**9, 10**5  # matrices of the extrapolation: in all, and per partition


def load(name: str) -> dict[str, Any]:
    """Read one result file."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose numbers are aligned to the right."""
    lines = [f"| {' | '.join(head)} |", "| --- |" + " --: |" * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def machine(record: dict[str, Any]) -> str:
    """Describe in one line the machine and the versions with which the figures of a file were measured."""
    where = record["machine"]
    if isinstance(where, str):
        where = {"processor": where, **record.get("versions", {})}
    parts = [f"{where['processor']}, {where['cores']} cores" if "cores" in where else str(where["processor"])]
    names = {"python": "Python", "numpy": "NumPy", "scipy": "SciPy", "scikit-learn": "scikit-learn"}
    names |= {"pyriemann": "pyRiemann", "numba": "numba"}
    parts += [f"{title} {where[name]}" for name, title in names.items() if name in where]
    if str(where.get("blas_threads")) == "1":
        parts.append("one BLAS thread")
    return ", ".join(parts)


def machines(*names: str) -> str:
    """Describe the machine of several files in one line, with all versions of a library that they used."""
    parts: dict[str, list[str]] = {}
    for name in names:
        for part in machine(load(name)).split(", "):
            title, _, version = part.partition(" ") if part[-1].isdigit() else (part, "", "")
            versions = parts.setdefault(title, [])
            if version not in versions:
                versions.append(version)
    return ", ".join(" ".join([title, " and ".join(versions)]).strip() for title, versions in parts.items())


def goals() -> str:
    """Return the table of all goals, with the figure that is nearest to its limit among those with one goal."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in load("goals")["rows"]:
        groups.setdefault((row["topic"], row["limit"], row["at_most"], row["unit"]), []).append(row)
    rows = []
    for (topic, limit, at_most, unit), same in groups.items():
        nearest = (max if at_most else min)(same, key=lambda row: row["figure"])
        what = f"{topic}: {nearest['what']}" + (f" ({len(same)} goals)" if len(same) > 1 else "")
        met = "yes" if all(row["met"] for row in same) else "no"
        goal = f"{'at most' if at_most else 'at least'} {limit:g} {unit}"
        rows.append([what, goal, f"{nearest['figure']:.2f}", met])
    return table(["what", "goal", "figure", "met"], rows)


def training() -> str:
    """Return the table of epochs on one thread, or the table that the benchmark printed if there is no result file."""
    if not (RESULTS / "training.json").is_file():
        return '```text\n--8<-- "docs/assets/training_epoch.txt"\n```'
    record = load("training")
    ratios: dict[tuple[str, ...], dict[str, str]] = {}
    for row in record.get("cases") or record["rows"]:
        if row.get("threads", 1) == 1:
            problem = tuple(str(row[name]) for name in ("data", "n", "K"))
            kind = f"{row['steps']}, batch {row['batch']}"
            ratios.setdefault(problem, {})[kind] = f"{row['ratio']:.3g}"
    kinds = list(dict.fromkeys(kind for row in ratios.values() for kind in row if not kind.startswith("pymanopt")))
    rows = [[*problem, *(row.get(kind, "") for kind in kinds)] for problem, row in ratios.items()]
    return table(["data", "n", "K", *kinds], rows)


def threads() -> str:
    """State how long fits with default threads take at most, relative to fits on one thread."""
    rows = load("threads")["rows"]
    default, unlimited = (max(row[kind] for row in rows) for kind in ("default", "unlimited"))
    return (
        f"an epoch on 80 matrices with n = 22 to 40 took at most {default:.2f} times as long as under "
        "`OMP_NUM_THREADS=1`, "
        f"also beside one busy process per core; without this limit it took up to {unlimited:.2f} times as long"
    )


def cold_start() -> str:
    """State the seconds of a first and a later fit."""
    seconds = {name: f"{value:.1f} s" for name, value in load("cold_start")["fit"].items()}
    return (
        f"{seconds['warm']} of processor time with all kernels stored, {seconds['cold']} with nothing stored, and "
        f"{seconds['compiled at once']} with `compiled=True`"
    )


def metrics() -> str:
    """Return the table of the time of a fit per metric and n, as multiples of that of the affine-invariant metric."""
    cases = load("metrics")["cases"]
    sizes = [n for n in dict.fromkeys(case["n"] for case in cases) if n in SHOWN]
    rows = []
    for metric in dict.fromkeys(case["metric"] for case in cases):
        own = {case["n"]: case for case in cases if case["metric"] == metric}
        first = metric == "affine_invariant"
        cells = [f"{own[n]['milliseconds']:.0f} ms" if first else f"{own[n]['ratio']:.2f}" for n in sizes]
        rows.append([metric.replace("_", " "), *cells])
    return table(["metric", *(f"n = {n}" for n in sizes)], rows)


def metrics_in_words() -> str:
    """State the size of the fits, and how busy the machine was."""
    found = load("metrics")
    settings, busy = found["settings"], found["machine"]["load"]
    return (
        f"Each fit is of {settings['samples']} matrices, with at most {settings['epochs']} epochs. Other programs ran "
        f"beside them (load average {busy:.0f})."
    )


def prediction(metric: str) -> str:
    """Return the milliseconds of rplvq for 1000 predictions, and those of other methods as multiples of them."""
    # The results between the fewest and the most prototypes say nothing new.
    cases = [case for case in load("predict")["cases"] if case["metric"] == metric and case["K"] in (4, 40)]
    others = [name for name in cases[0]["ratios"] if name != "rplvq"]
    head = ["data", "n", "K", "rplvq, ms", *(f"{SHORT.get(name, name)}, times" for name in others)]
    rows = [
        [case["data"], str(case["n"]), str(case["K"]), f"{1000 * case['seconds']['rplvq']:.1f}"]
        + [f"{case['ratios'][name]:.2f}" for name in others]
        for case in cases
    ]
    return table(head, rows)


def agreement() -> str:
    """Say for how many matrices the classifiers gave the same label, in the worst case."""
    least = min(case["same_labels"] for case in load("predict")["cases"])
    return "the same labels" if least == 1 else f"the same labels for at least {least:.2%} of the matrices"


def scene() -> str:
    """State how many pixels of the radar scene are classified per second, and of how many pixels."""
    record = load("radar_scene")["scaling"]
    speeds = [size / seconds for size, seconds in zip(record["matrices"], record["seconds"], strict=True)]
    return f"up to {max(record['matrices']):,} matrices at {min(speeds):,.0f} to {max(speeds):,.0f} per second"


def scene_in_words() -> str:
    """State the exponent of the time and the memory for the radar scene."""
    record = load("radar_scene")
    before, peak = record["peak_before_predict_megabytes"], record["peak_megabytes"]
    return (
        f"Time grows as the power {record['scaling']['exponent']:.2f} of the number of matrices. The process holds "
        f"{before:.0f} MB before `predict`, including data and libraries, and {peak:.0f} MB at its peak."
    )


def memory() -> str:
    """Return the table of what calls hold beside mapped data: one row per data and metric, one column per call."""
    held: dict[tuple[str, str], dict[str, str]] = {}
    for case in load("memory")["cases"]:
        if case["mapped"]:
            data = f"{case['data']}, N = {case['N']:,}, {case['data_megabytes']:.0f} MB"
            row = held.setdefault((data, case["metric"].replace("_", "-")), {})
            row[case["call"]] = f"{case['above_megabytes']:.0f}"
    calls = list(dict.fromkeys(call for row in held.values() for call in row))
    rows = [[*names, *(row.get(call, "") for call in calls)] for names, row in held.items()]
    return table(["data", "metric", *(f"{call}, MB" for call in calls)], rows)


def samples() -> str:
    """Return the table of the cost of a sample against the number of samples."""
    rows = []
    for row in load("samples")["rows"]:
        cells = [str(row["n"]), f"{row['N']:,}"]
        times = [f"{row[name]:.1f}" for name in ("means", "epoch", "predict")]
        rows.append([*cells, *times, f"{row['above_megabytes']:.0f}"])
    return table(["n", "N", "class means, µs", "an epoch, µs", "predict, µs", "held, MB"], rows)


def whole_fit() -> str:
    """State what a fit of many samples takes from the largest measured row of each n."""
    last = {row["n"]: row for row in load("samples")["rows"]}
    parts = []
    for n, row in last.items():
        hours = [(row["means"] + epochs * row["epoch"]) * MANY / 1e6 / 3600 for epochs in (1, 10)]
        parts.append(f"{hours[0]:.0f} hours with one epoch and {hours[1]:.0f} hours with ten for n = {n}")
    return " and ".join(parts)


def predicted(samples: float, partitions: float, workers: float) -> float:
    """Return the seconds of a step that the fitted model predicts."""
    model = load("distributed")["model"]
    return float(model["latency"] + model["a_partition"] * partitions + model["a_sample"] * samples / workers)


def steps() -> str:
    """Return the table of measured steps beside those of the model."""
    record = load("distributed")
    rows = []
    for row in record["rows"]:
        expected = predicted(row["samples"], row["partitions"], record["workers"])
        rows.append([f"{row['samples']:,}", str(row["partitions"]), f"{row['seconds']:.2f}", f"{expected:.2f}"])
    return table(["samples N", "partitions P", "seconds", "model"], rows)


def coefficients() -> str:
    """State the three coefficients of the model."""
    record = load("distributed")
    model = record["model"]
    return (
        f"a = {model['latency']:.3f} s, b = {1000 * model['a_partition']:.1f} ms per partition, c = "
        f"{1e6 * model['a_sample']:.0f} µs per sample (n = {record['n']}, K = {record['prototypes']})"
    )


def payload() -> tuple[int, int]:
    """Return the bytes of the answer of a partition, and of the prototypes that a worker gets."""
    record = load("distributed")
    k, n = record["prototypes"], record["n"]
    return 8 * k * (n * n + 1), 8 * k * n * n


def bytes_in_words() -> str:
    """State the bytes of an answer by the formula, and those measured."""
    record = load("distributed")
    measured = max(row["bytes_returned"] for row in record["rows"])
    return (
        f"For n = {record['n']} and K = {record['prototypes']} that is {payload()[0]:,} bytes up; a pickled answer was "
        f"measured at {measured:,}"
    )


def extrapolated() -> str:
    """Return the table that the model predicts for a billion matrices."""
    (up, down), partitions = payload(), MANY // A_PARTITION
    rows = []
    for workers in WORKERS:
        seconds = predicted(MANY, partitions, workers)
        computing = load("distributed")["model"]["a_sample"] * MANY / workers / seconds
        moved = (partitions * up + workers * down) / 1e6
        rows.append([str(workers), f"{seconds:,.0f}", f"{seconds / 3600:.1f}", f"{computing:.0%}", f"{moved:.1f}"])
    return table(["workers W", "seconds per step", "hours", "of which computing", "MB moved per step"], rows)


FIELDS: dict[str, Callable[[], str]] = {
    "goals": goals,
    "machines": lambda: machines(*PERFORMANCE),
    "goals load": lambda: str(load("goals")["machine"]["load"]),
    "training": training,
    "threads": threads,
    "cold start": cold_start,
    "metrics": metrics,
    "metrics words": metrics_in_words,
    "predict affine_invariant": lambda: prediction("affine_invariant"),
    "predict log_euclidean": lambda: prediction("log_euclidean"),
    "agreement": agreement,
    "scene": scene,
    "scene words": scene_in_words,
    "memory": memory,
    "samples": samples,
    "whole fit": whole_fit,
    "samples machine": lambda: machine(load("samples")),
    "steps": steps,
    "coefficients": coefficients,
    "bytes": bytes_in_words,
    "workers": lambda: str(load("distributed")["workers"]),
    "distributed machine": lambda: machine(load("distributed")),
    "extrapolated": extrapolated,
}


def page(name: str) -> str:
    """Return the text of one page."""
    text = (HERE / f"{name}.template.md").read_text(encoding="utf-8")
    for field, make in FIELDS.items():
        if (place := "{{ " + field + " }}") in text:
            text = text.replace(place, make())
    if "{{ " in text:
        raise ValueError(f"{name}.template.md has a place that no field fills: {text[text.index('{{ ') :][:40]!r}")
    return text


def main() -> None:
    """Write the pages, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, and exit with 1 if a page is stale")
    check = parser.parse_args().check
    stale = [name for name in PAGES if (DOCS / f"{name}.md").read_text(encoding="utf-8") != page(name)] if check else []
    for name in PAGES if not check else ():
        (DOCS / f"{name}.md").write_text(page(name), encoding="utf-8")
    if stale:
        sys.exit(f"stale: {', '.join(stale)}")


if __name__ == "__main__":
    main()
