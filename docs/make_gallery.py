"""The gallery of examples, generated from the scripts in examples/: story, output, figure, code and downloads.

As an mkdocs hook (``hooks`` in mkdocs.yml) it adds one page per example to each build, so that the pages cannot go
stale, and offers each script as a file and as a notebook. To add an example, write ``examples/name.py`` and one line in
the navigation of mkdocs.yml. As a program, ``python docs/make_gallery.py`` only runs the examples. An example runs
again if its code or the library has changed; results are kept in build/gallery, which is not under version control.

An example that needs large data says so in the last paragraph of its docstring, which begins with "Data: ". It does not
run during a build: its page shows the record in docs/recorded, which ``python docs/make_gallery.py --record name``
writes on a machine with the data (all such examples without names).
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
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
CACHE = ROOT / "build" / "gallery"
RECORDED = ROOT / "docs" / "recorded"
SECONDS = 300
RUN = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda *_, **__: plt.savefig(sys.argv[2], dpi=110)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Program that runs a script and writes its last figure instead of showing it."""

log = logging.getLogger("mkdocs.gallery")


def topics() -> dict[str, list[str]]:
    """Return the names of the examples by topic, from the navigation in mkdocs.yml.

    Raises
    ------
    ValueError
        If the navigation and the scripts in examples/ differ.
    """
    import yaml

    pages = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    (entries,) = [entry["Examples"] for entry in pages if "Examples" in entry]
    groups = [(topic, listed) for entry in entries for topic, listed in entry.items() if isinstance(listed, list)]
    found = {topic: [Path(page).stem for page in listed] for topic, listed in groups}
    present = {path.stem for path in EXAMPLES.glob("*.py")} - {"__init__"}
    listed = [name for group in found.values() for name in group]
    if present != set(listed):
        raise ValueError(f"the navigation in mkdocs.yml and examples/ differ by {sorted(present ^ set(listed))}")
    return found


def names() -> list[str]:
    """Return all examples in the order of the gallery."""
    return [name for group in topics().values() for name in group]


def source(name: str) -> str:
    """Return the text of a script."""
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def split(text: str) -> tuple[str, str, str, str]:
    """Return title, story, data and code of a script; its docstring holds the first three, and data may be empty."""
    module = ast.parse(text)
    title, _, story = (ast.get_docstring(module) or "").partition("\n\n")
    story, _, data = story.partition("\n\nData: ")
    code = "\n".join(text.splitlines()[module.body[0].end_lineno :]).strip()
    return title.strip(), story.strip(), data.strip(), code


def code_key(text: str) -> str:
    """Return a hash of the code of a script, whatever its docstring, its lines of comments and its white space."""
    lines = [line for line in split(text)[3].splitlines() if not line.lstrip().startswith("#")]
    return hashlib.sha256("".join("".join(lines).split()).encode()).hexdigest()


def key(name: str) -> str:
    """Return a hash of everything on which the outcome of an example depends: its code, the library, and its data."""
    digest = hashlib.sha256(f"{code_key(source(name))} {os.environ.get('RPLVQ_DATA', '')}".encode())
    for path in sorted((ROOT / "rplvq").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def call(name: str, figure: Path) -> str:
    """Run an example, write its figure and return what it printed."""
    figure.parent.mkdir(parents=True, exist_ok=True)
    figure.unlink(missing_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    warnings = "error::UserWarning,error::RuntimeWarning,error::FutureWarning"
    environment = os.environ | threads | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": warnings}
    found = subprocess.run(  # noqa: S603 - our own scripts
        [sys.executable, "-c", RUN, str(EXAMPLES / f"{name}.py"), str(figure)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=SECONDS,
        check=False,
        cwd=ROOT,
    )
    if found.returncode:
        raise RuntimeError(f"examples/{name}.py failed:\n{found.stderr}")
    if not figure.is_file():
        raise RuntimeError(f"examples/{name}.py draws no figure: it must call plt.show()")
    return found.stdout.strip("\n")


def run(name: str) -> dict[str, Any]:
    """Return the outcome of one example: what it printed, and the path of its figure. It runs unless this is known."""
    recorded = RECORDED / f"{name}.json"
    if split(source(name))[2]:
        if not recorded.is_file():
            raise ValueError(f"no {recorded}: run `python docs/make_gallery.py --record {name}` where the data are")
        return read(recorded)
    known, wanted = CACHE / f"{name}.json", key(name)
    if known.is_file() and read(known)["key"] == wanted:
        return read(known)
    output = call(name, CACHE / f"{name}.png")
    known.write_text(json.dumps({"key": wanted, "output": output}, indent=1), encoding="utf-8")
    return read(known)


def read(path: Path) -> dict[str, Any]:
    """Return an outcome that was written to a file, with the figure that lies beside it."""
    return {**json.loads(path.read_text(encoding="utf-8")), "figure": path.with_suffix(".png")}


def record(name: str) -> None:
    """Run an example that needs large data, and keep what it printed and drew in docs/recorded."""
    import rplvq

    output = call(name, RECORDED / f"{name}.png")
    entry = {"code": code_key(source(name)), "date": f"{datetime.now(UTC):%d %B %Y}", "version": rplvq.__version__}
    text = json.dumps({**entry, "output": output}, indent=1)
    (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def notebook(text: str) -> str:
    """Return a script as a Jupyter notebook: its docstring, then one cell of code per ``# %%``."""
    title, story, data, code = split(text)
    words = "\n\n".join(filter(None, [f"# {title}", story, data and f"**Data.** {data}"]))
    parts = [part.strip() for part in re.split(r"^(?=# %%)", code, flags=re.M)]
    cells = [{"cell_type": "markdown", "metadata": {}, "source": words.splitlines(keepends=True)}]
    for part in filter(None, parts):
        heading = re.match(r"# %% ?(.*)\n?", part)
        if heading and heading[1]:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": [f"**{heading[1]}**"]})
        lines = (part[heading.end() :] if heading else part).strip().splitlines(keepends=True)
        cells.append({"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def page(name: str, outcome: dict[str, Any]) -> str:
    """Return the Markdown of the page of one example."""
    title, story, data, code = split(source(name))
    recorded = ""
    if data:
        recorded = f"""
!!! info "Recorded results"
    A build of this site does not run this example. Its results were recorded on {outcome["date"]} with rplvq
    {outcome["version"]}. {data[0].upper()}{" ".join(data[1:].split())}
    [Where all data come from](../api/datasets.md#data-to-get-by-hand).
"""
    return f"""---
title: {json.dumps(title)}
hide: [toc]
---

# {title}

{story}
{recorded}
[Download the script]({name}.py){{ download="{name}.py" }} or [the notebook]({name}.ipynb){{ download="{name}.ipynb" }}.

[![Figure of the example: {title}]({name}.png)]({name}.png)

## What it prints

```text
{outcome["output"]}
```

## The script

`python {name}.py` runs it and opens a window with the figure.

```python title="{name}.py"
{code}
```
"""


def index(found: dict[str, list[str]]) -> str:
    """Return the Markdown of the overview: one card per example, by topic."""
    parts = [
        "# Examples\n\nThese are short scripts from the folder `examples/`. Each page shows what its script printed "
        "and drew, and offers it as a file and as a notebook. They need `pip install '.[plot]'` in the folder of the "
        "repository.\n"
    ]
    for topic, listed in found.items():
        parts.append(f'## {topic}\n\n<div class="grid cards gallery" markdown>\n')
        for name in listed:
            title, story, *_ = split(source(name))
            first = re.split(r"(?<=[.?])\s", " ".join(story.split()))[0]
            picture = f"[![Figure: {title}]({name}.png)]({name}.md)"
            parts.append(f"-   {picture}\n\n    **[{title}]({name}.md)**\n\n    {first}\n")
        parts.append("</div>\n")
    return "\n".join(parts)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, figures and downloads; mkdocs calls this with all files of the site."""
    from mkdocs.structure.files import File

    # An example runs in its own process with one thread, so that one per core can run at once.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(run, names())
    for name, outcome in zip(names(), outcomes, strict=True):
        log.info("example %s", name)
        content = {"md": page(name, outcome), "py": source(name), "ipynb": notebook(source(name))}
        for ending, text in content.items():
            files.append(File.generated(config, f"examples/{name}.{ending}", content=text))
        files.append(File.generated(config, f"examples/{name}.png", abs_src_path=str(outcome["figure"])))
    files.append(File.generated(config, "examples/index.md", content=index(topics())))
    return files


def main() -> None:
    """Run every example that has changed, and print what it printed; or record those that need large data."""
    if sys.argv[1:2] == ["--record"]:
        for name in sys.argv[2:] or [name for name in names() if split(source(name))[2]]:
            record(name)
        return
    for name in names():
        print(f"== {name}\n{run(name)['output']}")


if __name__ == "__main__":
    main()
