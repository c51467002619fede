"""The gallery of examples, generated from the scripts in examples/: story, code, printed output and figure.

As an mkdocs hook (``hooks`` in mkdocs.yml) it adds one page per example to each build, so that the pages cannot go
stale. As a program, ``python docs/make_gallery.py`` only runs the examples. An example runs again if its text, the
library or the data folder has changed. Results are kept in build/gallery, which is not under version control.
"""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "gallery"
SECONDS = 300

TOPICS = {
    "Start": ["first_classifier", "eeg_trials", "eeg_mne", "images"],
    "Choose": [
        "three_metrics",
        "learned_metric",
        "composed_cost",
        "setting_itself",
        "sigma2_sensitivity",
        "pyriemann_drop_in",
    ],
    "Extend": [
        "custom_metric",
        "curved_metric",
        "divergence",
        "custom_cost",
        "custom_schedule",
        "sphere_and_grassmann",
    ],
    "Use": ["time_series", "soft_labels", "rejection", "streaming"],
    "Real data": ["eeg_sessions", "dimension_reduction", "polsar", "radar_scene", "distributed_radar"],
}

SHOW = """
import runpy, sys
import matplotlib.pyplot as plt
sys.argv = sys.argv[1:]
plt.show = lambda: plt.savefig(sys.argv[2], dpi=110)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Program that runs a script, and writes its figure where the script shows it."""

log = logging.getLogger("mkdocs.gallery")


def split(source: str) -> tuple[str, str, str]:
    """Return title, story and code of a script; its docstring holds the first two."""
    module = ast.parse(source)
    title, _, story = (ast.get_docstring(module) or "").partition("\n\n")
    code = "\n".join(source.splitlines()[module.body[0].end_lineno :]).strip()
    return title.strip(), story.strip(), code


def key(name: str) -> str:
    """Return a hash of everything on which the outcome of an example depends."""
    data = os.environ.get("RPLVQ_DATA") or str(ROOT.parent / "shared" / "data")
    paths = [
        ROOT / "examples" / f"{name}.py",
        ROOT / "examples" / "showing.py",
        *sorted((ROOT / "rplvq").rglob("*.py")),
    ]
    digest = hashlib.sha256(f"{data} {Path(data).is_dir()}".encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(name: str) -> dict[str, Any]:
    """Run one example unless its outcome is known; return what it printed, and whether it drew a figure."""
    record, figure, wanted = CACHE / f"{name}.json", CACHE / f"{name}.png", key(name)
    if record.is_file():
        known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        if known["key"] == wanted:
            return known
    CACHE.mkdir(parents=True, exist_ok=True)
    figure.unlink(missing_ok=True)
    command = [sys.executable, "-c", SHOW, str(ROOT / "examples" / f"{name}.py"), "--out", str(figure)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = os.environ | threads | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    found = subprocess.run(  # noqa: S603 - our own scripts
        command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False, cwd=ROOT
    )
    if found.returncode:
        raise RuntimeError(f"examples/{name}.py failed:\n{found.stderr}")
    outcome = {"key": wanted, "output": found.stdout.strip(), "figure": figure.is_file()}
    record.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
    return outcome


def page(name: str, outcome: dict[str, Any]) -> str:
    """Return the Markdown of the page of one example."""
    title, story, code = split((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
    picture = f"[![Figure of the example: {title}]({name}.png)]({name}.png)" if outcome["figure"] else ""
    return f"""---
title: "{title}"
---

# {title}

{story}

{picture}

## What it prints

```text
{outcome["output"]}
```

## The script

Run it with `python examples/{name}.py`, which shows the figure, or with `--out figure.png`, which writes it.

```python title="examples/{name}.py"
{code}
```
"""


def index(outcomes: dict[str, dict[str, Any]]) -> str:
    """Return the Markdown of the overview: one card per example, by topic."""
    parts = [
        "# Examples\n\nThese are short scripts from the folder `examples/`. Each page shows what the script printed "
        "and drew when this site was built.\n"
    ]
    for topic, names in TOPICS.items():
        parts.append(f'## {topic}\n\n<div class="grid cards gallery" markdown>\n')
        for name in names:
            title, story, _ = split((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8"))
            picture = f"[![]({name}.png)]({name}.md)\n\n    " if outcomes[name]["figure"] else ""
            first = re.split(r"(?<=[.?])\s", " ".join(story.split()))[0]
            parts.append(f"-   {picture}**[{title}]({name}.md)**\n\n    {first}\n")
        parts.append("</div>\n")
    return "\n".join(parts)


def names() -> list[str]:
    """Return all examples in the order of the gallery; every script in examples/ must have a topic."""
    listed = [name for topic in TOPICS.values() for name in topic]
    present = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__", "showing"}
    if present != set(listed):
        raise ValueError(f"TOPICS of docs/make_gallery.py and examples/ differ by {present ^ set(listed)}")
    return listed


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and figures; mkdocs calls this with all files of the site."""
    from mkdocs.structure.files import File

    outcomes = {}
    for name in names():
        log.info("example %s", name)
        outcomes[name] = run(name)
        files.append(File.generated(config, f"examples/{name}.md", content=page(name, outcomes[name])))
        if outcomes[name]["figure"]:
            files.append(File.generated(config, f"examples/{name}.png", abs_src_path=str(CACHE / f"{name}.png")))
    files.append(File.generated(config, "examples/index.md", content=index(outcomes)))
    return files


def main() -> None:
    """Run every example that has changed, and print what it printed."""
    for name in names():
        print(f"== {name}\n{run(name)['output']}")


if __name__ == "__main__":
    main()
