"""Mkdocs hook: parts of pages that come from other files of the repository, so that no text is kept twice.

``{{ code: A metric }}`` becomes the Python block under that heading of CONTRIBUTING.md, ``{{ results: syn1 }}`` a
table of the experiment syn1 from the records in examples/paper/results/full. ``{{ cite: paper }}`` and
``{{ cite: software }}`` are BibTeX entries made from CITATION.cff. ``{{ report: compare }}`` shows what
``python -m rplvq compare`` finds: a build runs the command if the library has changed since it last ran.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "examples" / "paper" / "results" / "full"
BUILD = ROOT / "build"
DIRECTIVE = re.compile(r"^\{\{ (code|results|cite|report): (.+?) \}\}$", flags=re.M)


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


def report(command: str) -> str:
    """Return what a command finds, as :func:`excerpt` shows it; its report is kept until the library changes."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "rplvq").rglob("*.py")):
        digest.update(path.read_bytes())
    kept = BUILD / f"{command}-{digest.hexdigest()[:16]}.md"
    if not kept.is_file():
        BUILD.mkdir(exist_ok=True)
        for old in BUILD.glob(f"{command}-*.md"):
            old.unlink()
        subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "rplvq", command, "--quiet", "--out", str(kept)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return excerpt(kept.read_text(encoding="utf-8"))


def excerpt(text: str) -> str:
    """Return the scores, the differences and the conclusions of a report, without seconds, which differ by machine."""
    blocks = text.strip().split("\n\n")
    tables = [number for number, block in enumerate(blocks) if block.startswith("| ")]
    scores = ["|".join(line.split("|")[:-3]) + "|" for line in blocks[tables[0]].splitlines()]
    conclusions = "\n>\n".join(f"> {sentence}" for sentence in blocks[tables[-1] + 1 :])
    # Python-Markdown knows no escape of "<".
    return "\n\n".join(["\n".join(scores), blocks[tables[1]], conclusions]).replace("\\<", "&lt;")


def expand(markdown: str, *, run: bool = False) -> str:
    """Replace all directives of a page; those that run a command only if ``run`` is true, because they take long."""
    makers = {"code": code, "results": results, "cite": cite} | ({"report": report} if run else {})
    return DIRECTIVE.sub(lambda found: makers[found[1]](found[2]) if found[1] in makers else found[0], markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    return expand(markdown, run=True)
