"""Mkdocs hook: parts of pages that come from other files of the repository, so that no text is kept twice.

``{{ code: A metric }}`` becomes the Python block under that heading of CONTRIBUTING.md, and ``{{ results: syn1 }}`` a
table of the result files in examples/paper/results/full/syn1.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "examples" / "paper" / "results" / "full"
DIRECTIVE = re.compile(r"^\{\{ (code|results): (.+?) \}\}$", flags=re.M)


def code(heading: str) -> str:
    """Python block under a heading of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\n(?:(?!## )[^\n]*\n)*?(```python\n.*?^```)", text, flags=re.M | re.S)
    if found is None:
        raise ValueError(f"CONTRIBUTING.md has no Python block under the heading {heading!r}")
    return found[1]


def score(result: dict[str, Any]) -> tuple[str, float]:
    """Name and value of the score that the paper reports for an experiment."""
    for name in ("mean_kappa", "test_accuracy", "accuracy"):
        if name in result and isinstance(result[name], float):
            return name.replace("_", " "), result[name]
    raise ValueError(f"no score among {sorted(result)}")


def results(experiment: str) -> str:
    """Markdown table of an experiment: a row a method, the best first, with the number of its result files."""
    scores: dict[str, list[float]] = defaultdict(list)
    label = ""
    for path in sorted((RESULTS / experiment).glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        label, value = score(record["result"])
        scores[record["method"]].append(value)
    if not scores:
        raise ValueError(f"no result files in {RESULTS / experiment}")
    lines = [f"| method | {label} | standard deviation | repetitions |", "| --- | --: | --: | --: |"]
    for method, values in sorted(scores.items(), key=lambda item: -mean(item[1])):
        spread = f"{stdev(values):.4f}" if len(values) > 1 else ""
        lines.append(f"| {method} | {mean(values):.4f} | {spread} | {len(values)} |")
    return "\n".join(lines)


def expand(markdown: str) -> str:
    """Replace all directives of a page."""
    return DIRECTIVE.sub(lambda match: {"code": code, "results": results}[match[1]](match[2]), markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    return expand(markdown)
