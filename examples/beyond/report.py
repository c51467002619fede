"""The pages docs/{beyond,products,transfer}.md and docs/experiments/*.md, made from their templates and the records."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import numpy as np

from examples.beyond import recentering as recentering_
from examples.beyond import (
    report_default,
    report_more,
    report_parts,
    report_products,
    report_soft,
    report_steps,
    report_stream,
    report_summary,
    report_transfer,
)
from examples.beyond import votes as votes_
from examples.beyond.report_parts import NOTHING
from examples.paper.report import by_method, fill, paired, spread, table
from examples.paper.runner import load

DOCS = pathlib.Path(__file__).parents[2] / "docs"
TEMPLATES = pathlib.Path(__file__).parent / "templates"
DATA = {"bci2a": "BCI 2a", "bci2a-recentred": "BCI 2a, re-centred", "eth80": "ETH-80"}


def write(folder: pathlib.Path, docs: pathlib.Path = DOCS) -> None:
    """Write the summary with its figure, and the pages of tables behind it, from the records in ``folder``."""
    parts = {
        "beside": report_default.beside(folder),
        "by_groups": report_default.by_groups(folder),
        "at_the_mean": report_default.at_the_mean(folder),
        "alternatives": report_default.alternatives(folder),
        "discriminant": report_default.discriminant(folder),
        "steps": report_steps.steps(folder),
        "batches": report_steps.batches(folder),
        "compositions": report_steps.compositions(folder),
        "few_compositions": report_steps.few_compositions(folder),
        "amounts": report_steps.amounts(folder),
        "votes": votes(folder),
        "more": report_more.summary(folder),
        "more_by_split": report_more.by_split(folder),
        "costs": report_parts.costs(folder),
        "geometries": report_parts.geometries(folder),
        "own_sigma2": report_parts.own_sigma2(folder),
        "reference": report_parts.reference(folder),
        "reduction": report_parts.reduction(folder),
        "products-eth80": report_products.objects(folder),
        "products-own": report_products.own(folder),
        "products-eegmmi": report_products.eeg(folder),
        **report_products.means(folder),
        "soft": report_soft.scores(folder),
        "soft-tests": report_soft.tests(folder),
        "transfer-few": report_transfer.few(folder),
        "transfer-none": report_transfer.without(folder),
        **report_transfer.means(folder),
        "recentering": recentering(folder),
        "stream": report_stream.stream(folder),
        "stream_late": report_stream.late(folder),
        "rejection": rejection(folder),
        "calibration": calibration(folder),
    }
    for name in ("experiments", "recorded"):
        (docs / name).mkdir(exist_ok=True)
    for template in sorted(TEMPLATES.rglob("*.md")):
        fill(template, parts, docs / template.relative_to(TEMPLATES))
    report_summary.draw(folder, docs / "assets" / "beyond.png")
    (docs / "recorded" / "home.txt").write_text(report_default.home(folder) + "\n", encoding="utf-8")
    report_default.draw_home(folder, docs / "assets" / "home.png")


def votes(folder: pathlib.Path) -> str:
    """Return the table of accuracies by method, with p against the paper's settings."""
    found = by_method(load(folder, "votes"), "accuracy")
    first, *others = votes_.METHODS
    rows = [[first, spread(list(found[first].values()), 100, 1), *NOTHING]]
    for name in others:
        rows.append([name, spread(list(found[name].values()), 100, 1), *paired(found, name, first, 100, 1)])
    return table(["method", "accuracy in percent [splits]", "difference to the paper's", "p"], rows)


def recentering(folder: pathlib.Path) -> str:
    """Return the table of mean kappas by settings and view."""
    means = by_method(load(folder, "recentering"), "mean_kappa")
    rows = []
    for settings in recentering_.SETTINGS:
        runs = [list(means.get(f"{settings}, {view}", {}).values()) for view in recentering_.VIEWS]
        count = max(map(len, runs))
        if count:
            rows.append([f"{settings} [{count}]", *(f"{np.mean(run):.3f}" if run else "" for run in runs)])
    return table(["settings [seeds]", *recentering_.VIEWS], rows)


def rejection(folder: pathlib.Path) -> str:
    """Return the table of errors in percent with and without refusing, by data and criterion."""
    rows = []
    for data, title in DATA.items():
        records = load(folder, f"rejection-{data}")
        found = {
            name: by_method(records, name)
            for name in ("error", "error_at_coverage", "pooled_error_at_coverage", "area")
        }
        reached = {name: by_method(records, name) for name in ("reached_coverage", "reached_error")}
        for criterion in found["error"]:
            whole, fewer, pooled = (
                _values(found[name], criterion) for name in ("error", "error_at_coverage", "pooled_error_at_coverage")
            )
            rows.append(
                [
                    f"{title}, {criterion.replace('_', ' ')}",
                    spread(whole, 100, 1),
                    spread(fewer, 100, 1),
                    f"{np.mean(fewer) / np.mean(whole):.2f}",
                    f"{np.mean(pooled) / np.mean(whole):.2f}",
                    f"{np.mean(_values(found['area'], criterion)):.3f}",
                    f"{100 * np.mean(_values(reached['reached_coverage'], criterion)):.0f}",
                    f"{100 * np.mean(_values(reached['reached_error'], criterion)):.1f}",
                ]
            )
    head = [
        "data, criterion",
        "error, all",
        "error at 80 %",
        "ratio",
        "pooled",
        "area",
        "coverage reached",
        "error there",
    ]
    return table(head, rows)


def calibration(folder: pathlib.Path) -> str:
    """Return the table of log-loss and expected calibration error before and after calibration."""
    rows = []
    for data, title in DATA.items():
        records = load(folder, f"calibration-{data}")
        loss, ece, sigma2 = (by_method(records, name) for name in ("log_loss", "ece", "sigma2"))
        for name in loss:
            values = [spread(_values(part, name), digits=3) for part in (loss, ece, sigma2)]
            rows.append([f"{title}, {name}", *values])
    return table(["data", "log-loss [repetitions]", "ECE", "mean sigma2"], rows)


def _values(found: Mapping[str, Mapping[int, float]], method: str) -> list[float]:
    return list(found[method].values())
