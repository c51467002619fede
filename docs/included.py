"""Mkdocs hook: parts of pages that come from other files of the repository, so that no text is kept twice.

``{{ code: A metric }}`` becomes the Python block under that heading of CONTRIBUTING.md, ``{{ results: syn1 }}`` a
table of the experiment syn1 from the records in examples/paper/results/full. ``{{ cite: paper }}`` and
``{{ cite: software }}`` are BibTeX entries made from CITATION.cff.
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
DIRECTIVE = re.compile(r"^\{\{ (code|results|cite): (.+?) \}\}$", flags=re.M)


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


def records(folder: Path, experiment: str) -> list[dict[str, Any]]:
    """Records of an experiment's family (its name up to the first hyphen), as examples.paper.records writes them."""
    path = folder / f"{experiment.split('-')[0]}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines[1:]]


def results(experiment: str) -> str:
    """Markdown table of an experiment: one row per method, the best first, with its number of repetitions."""
    scores: dict[str, list[float]] = defaultdict(list)
    label = ""
    for record in records(RESULTS, experiment):
        if record["experiment"] == experiment:
            label, value = score(record["result"])
            scores[record["method"]].append(value)
    if not scores:
        raise ValueError(f"no records of {experiment} in {RESULTS}")
    lines = [f"| method | {label} | standard deviation | repetitions |", "| --- | --: | --: | --: |"]
    for method, values in sorted(scores.items(), key=lambda item: -mean(item[1])):
        spread = f"{stdev(values):.4f}" if len(values) > 1 else ""
        lines.append(f"| {method} | {mean(values):.4f} | {spread} | {len(values)} |")
    return "\n".join(lines)


def cite(what: str) -> str:
    """BibTeX entry of the paper or of the software, from CITATION.cff."""
    import yaml

    known = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if what == "software":
        fields = {
            "author": " and ".join(f"{{{author['name']}}}" for author in known["authors"]),
            "title": f"{{{known['title']}}}",
            "version": known["version"],
        }
        return bibtex("software", "rplvq", fields)
    paper = known["preferred-citation"]
    authors = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    fields = {"author": " and ".join(authors), "title": f"{{{paper['title']}}}"}
    fields |= {name: str(paper[name]) for name in ("journal", "year", "volume")}
    fields |= {"pages": f"{paper['start']}--{paper['end']}", "doi": paper["doi"]}
    return bibtex("article", f"{paper['authors'][0]['family-names'].lower()}{paper['year']}", fields)


def bibtex(kind: str, name: str, fields: dict[str, str]) -> str:
    """BibTeX entry in a block of code."""
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    return "\n".join(["```bibtex", f"@{kind}{{{name},", *lines, "}", "```"])


def expand(markdown: str) -> str:
    """Replace all directives of a page."""
    makers = {"code": code, "results": results, "cite": cite}
    return DIRECTIVE.sub(lambda match: makers[match[1]](match[2]), markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    return expand(markdown)
