"""Mkdocs hook: what the Python blocks of a page print and draw, shown between them.

A line ``{{ output }}`` becomes what the Python block above it printed, and ``{{ figure: text }}`` the figure that it
drew, with this description. A build runs the blocks of such a page in order, in one process, if the blocks or the
library have changed since they last ran; results are kept in build/pages.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "pages"
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.M | re.S)
PLACE = re.compile(r"^\{\{ (output|figure: .+?) \}\}$", flags=re.M)
RUN = """
import contextlib, io, json, sys, types
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
module = sys.modules["page"] = types.ModuleType("page")
printed = []
for number, block in enumerate(json.load(sys.stdin)):
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(compile(block, f"block {number}", "exec"), module.__dict__)
    printed.append(stream.getvalue().rstrip())
    if plt.get_fignums():
        plt.savefig(f"{sys.argv[1]}-{number}.png", dpi=110, bbox_inches="tight")
        plt.close("all")
json.dump(printed, sys.stdout)
"""
"""Program that runs blocks, writes the figure of each to a file, and prints what each printed as a list."""


def run(name: str, markdown: str) -> list[str]:
    """Return what each Python block of a page prints; its figures are written to ``BUILD``."""
    blocks = BLOCK.findall(markdown)
    digest = hashlib.sha256(json.dumps(blocks).encode())
    for path in sorted((ROOT / "rplvq").rglob("*.py")):
        digest.update(path.read_bytes())
    kept, key = BUILD / f"{name}.json", digest.hexdigest()
    if kept.is_file():
        known = json.loads(kept.read_text(encoding="utf-8"))
        if known["key"] == key:
            return list(known["printed"])
    BUILD.mkdir(parents=True, exist_ok=True)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    found = subprocess.run(  # noqa: S603 - our own blocks
        [sys.executable, "-c", RUN, str(BUILD / name)],
        input=json.dumps(blocks),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | threads | {"PYTHONPATH": str(ROOT)},
        check=False,
    )
    if found.returncode:
        raise RuntimeError(f"the blocks of docs/{name}.md failed:\n{found.stderr}")
    kept.write_text(json.dumps({"key": key, "printed": json.loads(found.stdout)}, indent=1), encoding="utf-8")
    return list(json.loads(found.stdout))


def fill(name: str, markdown: str, printed: list[str]) -> str:
    """Replace the places of a page by what the block above each of them printed or drew."""

    def shown(place: re.Match[str]) -> str:
        number = len(BLOCK.findall(markdown[: place.start()])) - 1
        if place[1] == "output":
            return f"``` {{.text .output}}\n{printed[number]}\n```"
        return f"![{place[1].removeprefix('figure: ')}](assets/pages/{name}-{number}.png)"

    return PLACE.sub(shown, markdown)


def on_files(files: Any, config: Any) -> Any:
    """Mkdocs event: run the pages that show what their blocks do, and add their figures to the site."""
    from mkdocs.structure.files import File

    for path in sorted((ROOT / "docs").glob("*.md")):
        markdown = path.read_text(encoding="utf-8")
        if PLACE.search(markdown):
            run(path.stem, markdown)
            for figure in sorted(BUILD.glob(f"{path.stem}-*.png")):
                files.append(File.generated(config, f"assets/pages/{figure.name}", abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mkdocs event: a page's text before it is rendered."""
    if not PLACE.search(markdown):
        return markdown
    name = Path(page.file.src_uri).stem
    return fill(name, markdown, run(name, markdown))
