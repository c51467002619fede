"""Mkdocs hook: the addresses of the site and the repository come from pyproject.toml, where they are filled in once.

With the environment variable RPLVQ_DOCS_VERSIONS, as in `RPLVQ_DOCS_VERSIONS=1 mike deploy 0.1.0 latest`, each page
lets the reader choose the version.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

PLACEHOLDER = ".invalid/"
"""What marks an address that is not filled in yet."""


def on_config(config: Any) -> Any:
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    urls = {name: url for name, url in project["project"]["urls"].items() if PLACEHOLDER not in url}
    config["site_url"] = urls.get("Documentation", config["site_url"])
    config["repo_url"] = urls.get("Repository", config["repo_url"])
    if os.environ.get("RPLVQ_DOCS_VERSIONS"):
        config["extra"]["version"] = {"provider": "mike"}
    return config
