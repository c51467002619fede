"""Mkdocs hook: parts of pages that come from other files of the repository, so that no text is kept twice.

``{{ code: A metric }}`` becomes the Python block under that heading of CONTRIBUTING.md, ``{{ results: syn1 }}`` a
table of the experiment syn1 from the records in examples/paper/results/full, and ``{{ rules: sigma2 }}`` one of the
values of sigma2 from the records of the experiments sigma2-* in examples/beyond/results/full. ``{{ cite: paper }}`` and
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
BEYOND = ROOT / "examples" / "beyond" / "results" / "full"
TITLES = {"syn1": "SynI", "syn2": "SynII", "full256": "ETH-80, whole image", "mask256": "ETH-80, mask"}
TITLES |= {"bci2a": "EEG, nine subjects", "digits": "digits"}
DIRECTIVE = re.compile(r"^\{\{ (code|results|rules|cite): (.+?) \}\}$", flags=re.M)


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


def rules(name: str) -> str:
    """Markdown table of what rules chose: one row per data set, smallest and largest value over its repetitions."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records(BEYOND, name):
        value = record["result"].get(name)
        if value is not None:
            data = record["experiment"].removeprefix(f"{name}-")
            found[data][record["method"]] += value if isinstance(value, list) else [value]
    if not found:
        raise ValueError(f"no records with {name} in {BEYOND}")
    lines = ["| data | blended | half-median | auto | heldout |", "| --- | --: | --: | --: | --: |"]
    for data in sorted(found, key=list(TITLES).index):
        cells = [span(found[data].get(rule, [])) for rule in ("blended", "half-median", "auto", "heldout")]
        lines.append(f"| {TITLES[data]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def span(values: list[float]) -> str:
    """Smallest and largest of some values, or the one where they print the same."""
    ends = list(dict.fromkeys(f"{value:.2g}" for value in (min(values), max(values)))) if values else []
    return " to ".join(ends)


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
    makers = {"code": code, "results": results, "rules": rules, "cite": cite}
    return DIRECTIVE.sub(lambda match: makers[match[1]](match[2]), markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    return expand(markdown)
