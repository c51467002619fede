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
MANY, A_PARTITION, EPOCHS = 10**9, 10**6, 5  # of the extrapolation: matrices in all and per part, and epochs


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
        parts.append(f"{hours[0]:.0f} hours for n = {n} ({hours[1]:.0f} with ten epochs)")
    return " and ".join(parts)


def predicted(name: str, row: dict[str, Any]) -> float:
    """Return the seconds that a fitted model predicts for a round ("path") or for the class means ("means")."""
    latency, a_part, a_sample, squares, cubes = load("distributed")["models"][name]
    count, n = row["K"] if name == "path" else 1, row["n"]
    each = a_sample + count * (squares * n**2 + cubes * n**3)
    return float(latency + a_part * row["parts"] + each * row["N"] / row["workers"])


def rounds() -> str:
    """Return the table of measured rounds beside those of the model."""
    rows = []
    for row in load("distributed")["rows"]:
        cells = [f"{row['N']:,}", *(str(row[name]) for name in ("n", "K", "parts", "workers"))]
        for name in ("path", "means"):
            cells += [f"{row[name]:.2f}", f"{predicted(name, row):.2f}"]
        rows.append([*cells, f"{row['seconds']:.2f}", f"{row['down']:,}", f"{row['up']:,}"])
    head = ["N", "n", "K", "parts", "workers", "round, s", "model", "class means, s", "model", "wall, s"]
    return table([*head, "bytes down", "bytes up"], rows)


def coefficients(name: str) -> str:
    """State the coefficients of a model."""
    latency, a_part, a_sample, squares, cubes = load("distributed")["models"][name]
    return (
        f"a = {1000 * latency:.1f} ms, b = {1000 * a_part:.1f} ms, c = {1e6 * a_sample:.2f} µs, d = "
        f"{1e9 * squares:.1f} ns, e = {1e9 * cubes:.2f} ns"
    )


def misfit() -> str:
    """State by how much the models differ from what was measured, at most and in the median."""
    rows = load("distributed")["rows"]
    errors = sorted(abs(predicted(name, row) / row[name] - 1) for name in ("path", "means") for row in rows)
    return f"{errors[len(errors) // 2]:.0%} in the median and {errors[-1]:.0%} at most"


def extrapolated() -> str:
    """Return the table that the models predict for a billion matrices."""
    rows = []
    last = next(row for row in load("distributed")["rows"] if (row["n"], row["K"]) == (10, 4))
    for workers in WORKERS:
        case = last | {"N": MANY, "parts": MANY // A_PARTITION, "workers": workers}
        means, seconds = (predicted(name, case) for name in ("means", "path"))
        moved = (case["parts"] * case["up"] + workers * case["down"]) / 1e6
        hours = (means + EPOCHS * seconds) / 3600
        rows.append([str(workers), f"{means:,.0f}", f"{seconds:,.0f}", f"{hours:.1f}", f"{moved:.1f}"])
    head = ["workers", "class means, s", "a round, s", f"both, {EPOCHS} epochs, hours", "MB per round"]
    return table(head, rows)


def fits() -> str:
    """Return the table of whole fits, distributed and local."""
    rows = []
    for row in load("fits")["rows"]:
        ratios = f"{row['ratio']:.2f} ({row['least']:.2f} to {row['most']:.2f})"
        seconds = [f"{row[name]:.1f}" for name in ("local", "distributed")]
        right = [f"{row[f'accuracy_{name}']:.4f}" for name in ("local", "distributed")]
        rows.append([f"{row['N']:,}", *seconds, ratios, f"{row['path_ratio']:.2f}", *right, f"{row['load']}"])
    head = ["N", "local, s", "distributed, s", "ratio", "ratio of CPU paths", "local, accuracy", "distributed", "load"]
    return table(head, rows)


def bound() -> str:
    """State what the processor time of a fit of most samples leaves to gain for more workers."""
    row = load("fits")["rows"][-1]
    caller, shared, local = (row[name] for name in ("cpu_caller", "cpu_workers", "cpu_local"))
    two, four, limit = ((caller + part) / local for part in (shared / 2, shared / 4, 0.0))
    return (
        f"With {row['N']:,} samples the caller needs {caller:.1f} s of processor time, workers share {shared:.1f} s, "
        f"and the local fit needs {local:.1f} s. Two workers therefore reach {two:.2f} times the local seconds, four "
        f"{four:.2f}, and no number less than {limit:.2f}"
    )


def partitions() -> str:
    """Return the table of the accuracy in 4 and in 16 partitions."""
    by_data: dict[str, list[dict[str, Any]]] = {}
    for row in load("partitions")["rows"]:
        by_data.setdefault(row["data"], []).append(row)
    rows = []
    for name, own in by_data.items():
        cells = [name, str(len(own))]
        for kind in ("one process", "4", "16"):
            known = [row[kind] for row in own if kind in row]
            cells.append(f"{sum(known) / len(known):.4f}" if known else "")
        losses = [row["4"] - row["16"] for row in own]
        rows.append([*cells, f"{sum(losses) / len(own):.4f}", f"{max(losses):.4f}"])
    return table(["data", "seeds", "one process", "4 partitions", "16 partitions", "mean loss", "largest"], rows)


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
    "rounds": rounds,
    "coefficients": lambda: coefficients("path"),
    "coefficients of means": lambda: coefficients("means"),
    "misfit": misfit,
    "partitions": partitions,
    "fits": fits,
    "bound": bound,
    "fits machine": lambda: machine(load("fits")),
    "distributed machine": lambda: machine(load("distributed")),
    "distributed load": lambda: str(load("distributed")["machine"]["load"]),
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
