"""The page docs/reproduction.md, made from the records: the paper's tables with our results beside them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from examples.paper import report_figures
from examples.paper.published import BCI, ETH80, SYNTHETIC, SYNTHETIC_P
from examples.paper.runner import load
from rplvq.evaluation import wilcoxon_p_value

DOCS = pathlib.Path(__file__).parents[2] / "docs"
SIZES = (200, 500, 1000, 5000, 10000, 20000)


def by_method(records: Sequence[Mapping[str, Any]], name: str) -> dict[str, dict[int, Any]]:
    """Return one result by method and repetition; methods without it are left out."""
    table: dict[str, dict[int, Any]] = {}
    for record in records:
        if name in record["result"]:
            table.setdefault(record["method"], {})[record["repetition"]] = record["result"][name]
    return table


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is aligned to the left, the others to the right."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " --: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def spread(values: Sequence[float], factor: float = 1.0, digits: int = 4) -> str:
    """Return mean and sample standard deviation, with the number of values in brackets."""
    array = np.asarray(values) * factor
    deviation = f" ± {array.std(ddof=1):.{digits}f}" if len(array) > 1 else ""
    return f"{array.mean():.{digits}f}{deviation} [{len(array)}]"


def paired(
    found: Mapping[str, Mapping[int, float]], first: str, second: str, factor: float = 1.0, digits: int = 3
) -> tuple[str, str]:
    """Return the mean difference over the repetitions that both methods have, and Wilcoxon's p-value, as two cells."""
    shared = sorted(set(found.get(first, {})) & set(found.get(second, {})))
    if not shared:
        return "", "too few"
    a, b = (np.array([found[name][k] for k in shared]) for name in (first, second))
    difference = f"{factor * (a.mean() - b.mean()):+.{digits}f}"
    return difference, f"{wilcoxon_p_value(a, b):.2g}" if len(shared) >= 6 else "too few"


def synthetic(folder: pathlib.Path, problem: str) -> str:
    """Return the tables of accuracies and of p-values for SynI or SynII."""
    found = by_method(load(folder, problem), "accuracy")
    published = SYNTHETIC[problem]
    order = [*published, *sorted(set(found) - set(published))]
    rows = [
        [
            name,
            f"{published[name][0]:.4f} ± {published[name][1]:.4f}" if name in published else "",
            spread(list(found[name].values())),
        ]
        for name in order
        if name in found
    ]
    tests = [[f"{a} - {b}", f"{p:.2g}", *paired(found, a, b, digits=4)] for (a, b), p in SYNTHETIC_P[problem].items()]
    return "\n\n".join(
        [
            table(["method", "paper", "ours [repetitions]"], rows),
            table(["methods", "p, paper", "difference, ours", "p, ours"], tests),
        ]
    )


def learning_rates(folder: pathlib.Path) -> str:
    """Return the table of accuracies by the start value of the step size; n xi / 100 is the paper's value."""
    rows = []
    for problem, title in (("syn1", "SynI"), ("syn2", "SynII")):
        found = by_method(load(folder, f"{problem}-step"), "accuracy")
        main = by_method(load(folder, problem), "accuracy")
        for method in ("PLRSQ-Const", "PLRSQ-AN"):
            runs = [found.get(f"{method}, n xi/{divisor}", {}) for divisor in (50, 200)]
            shared = sorted(set(main.get(method, {})).intersection(*runs))
            middle = {k: main[method][k] for k in shared}
            cells = [spread([values[k] for k in shared]) if shared else "" for values in (runs[0], middle, runs[1])]
            rows.append([f"{title}, {method}", *cells])
    return table(["method", "n xi / 50", "n xi / 100", "n xi / 200"], rows)


def selected(folder: pathlib.Path) -> str:
    """Return the table of settings chosen on validation data, with the test scores that they reach."""
    rows = []
    for experiment, score in (
        ("syn1-selection", "accuracy"),
        ("syn2-selection", "accuracy"),
        ("eth80-selection", "accuracy"),
        ("bci2a-selection", "kappa"),
    ):
        records = [record for record in load(folder, experiment) if "chosen" in record["result"]]
        for method in sorted({record["method"] for record in records}):
            results = [record["result"] for record in records if record["method"] == method]
            chosen = [result["chosen"] for result in results]
            settings = [
                f"{np.mean([choice[name] for choice in chosen]):.3g}" if name in chosen[0] else "fixed"
                for name in ("sigma2", "prototypes_per_class", "max_epochs")
            ]
            rows.append([f"{experiment}, {method}", *settings, f"{score} {spread([r[score] for r in results])}"])
    return table(["experiment", "mean sigma2", "mean K", "mean epochs", "test score"], rows)


def eth80(folder: pathlib.Path, descriptor: str) -> str:
    """Return the table of accuracies in percent by number of classes."""
    columns = range(3, 9)
    found = {}
    for c in columns:
        records = load(folder, f"eth80-{descriptor}-C{c}")
        posterior = by_method(records, "posterior_accuracy")
        found[c] = by_method(records, "accuracy") | {f"{name}, posterior": runs for name, runs in posterior.items()}
    names = sorted({name for methods in found.values() for name in methods})
    rows = []
    if descriptor == "full256":
        rows = [[f"{name}, paper", *(f"{values[c]:.2f}" for c in columns)] for name, values in ETH80.items()]
    for name in names:
        cells = [spread(list(found[c][name].values()), 100, 1) if name in found[c] else "" for c in columns]
        rows.append([name, *cells])
    return table(["method", *(f"C = {c}" for c in columns)], rows)


def bci(folder: pathlib.Path) -> str:
    """Return the table of kappas by subject."""
    rows = []
    for name, values in BCI.items():
        rows.append([f"{name}, paper", f"{np.mean(values):.2f}", *(f"{value:.2f}" for value in values)])
    found = {name: np.array(list(runs.values())) for name, runs in by_method(load(folder, "bci2a"), "kappa").items()}
    for name, kappas in sorted(found.items(), key=lambda item: -item[1].mean()):
        rows.append([name, spread(kappas.mean(axis=1), digits=3), *(f"{value:.2f}" for value in kappas.mean(axis=0))])
    return table(["method", "mean [seeds]", *(f"S{subject}" for subject in range(1, 10))], rows)


def cifar10(folder: pathlib.Path) -> str:
    """Return the table of accuracies by number of training images."""
    found = {n: by_method(load(folder, f"cifar10-N{n}"), "accuracy") for n in SIZES}
    names = sorted({name for methods in found.values() for name in methods})
    rows = [
        [
            name.replace(" a class", " per class"),
            *(spread(list(found[n][name].values()), digits=3) if name in found[n] else "" for n in SIZES),
        ]
        for name in names
    ]
    return table(["method", *(f"N = {n}" for n in SIZES)], rows)


def fill(template: pathlib.Path, parts: Mapping[str, str], page: pathlib.Path) -> None:
    """Write a page, which is the template with each ``{{ name }}`` replaced by the part of that name."""
    text = template.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{ " + name + " }}", part)
    page.write_text(text, encoding="utf-8")


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write docs/reproduction.md and its figures from the records in ``folder``."""
    parts = {
        "syn1": synthetic(folder, "syn1"),
        "syn2": synthetic(folder, "syn2"),
        "step": learning_rates(folder),
        "selection": selected(folder),
        "eth80-full256": eth80(folder, "full256"),
        "eth80-mask256": eth80(folder, "mask256"),
        "bci2a": bci(folder),
        "cifar10": cifar10(folder),
    }
    report_figures.draw(folder, docs / "assets" / "reproduction")
    fill(pathlib.Path(__file__).parent / "reproduction.template.md", parts, docs / "reproduction.md")
