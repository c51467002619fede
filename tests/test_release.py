"""What a release consists of: metadata, workflows, forms, recipe, citation, paper, cheat sheet."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml

import rplvq

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
SUPPORTED = ["3.11", "3.12", "3.13", "3.14"]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def read_yaml(path: str | Path) -> dict:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_metadata_name_what_is_there():
    module, name = PROJECT["scripts"]["rplvq"].split(":")
    tree = ast.parse(read(f"{module.replace('.', '/')}.py"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    versions = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert versions == SUPPORTED
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"
    assert (ROOT / "rplvq" / "py.typed").is_file()
    assert {"Documentation", "Repository", "Issues", "Changelog"} <= PROJECT["urls"].keys()


def test_addresses_are_filled_in_at_one_place():
    """The addresses of pages and repository are in pyproject.toml only, at first as placeholders."""
    hosts = {urlsplit(url).hostname for url in PROJECT["urls"].values()}
    files = [*WORKFLOWS, *(ROOT / ".github").rglob("*.md"), *(ROOT / "conda").iterdir(), ROOT / "CITATION.cff"]
    for path in [*files, ROOT / "mkdocs.yml", ROOT / "CODE_OF_CONDUCT.md", *(ROOT / "paper").iterdir(), *FORMS]:
        addresses = re.findall(r"https?://[^\s\"')>]+", path.read_text(encoding="utf-8"))
        own = {urlsplit(url).hostname for url in addresses} - {"127.0.0.1", "doi.org"}
        assert not own & hosts, path
        assert not own, path


def test_workflows_have_the_shape_of_workflows():
    assert [path.stem for path in WORKFLOWS] == ["docs", "publish", "tests"]
    for path in WORKFLOWS:
        content = read_yaml(path)
        assert {"name", True, "permissions", "jobs"} <= content.keys(), path  # YAML reads the key "on" as True
        for job in content["jobs"].values():
            assert {"runs-on", "steps"} <= job.keys()
            assert set(job.get("needs", "build").split()) <= content["jobs"].keys() | {"build"}
            for step in job["steps"]:
                assert ("run" in step) != ("uses" in step)
                assert re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./]+", step.get("uses", "a/b@v1"))


def test_workflows_follow_the_schema_of_their_host():
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed: it is in the extra dev")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    ran = subprocess.run([*command, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_tests_run_on_three_systems_and_all_versions():
    jobs = read_yaml(".github/workflows/tests.yml")["jobs"]
    matrix = jobs["newest"]["strategy"]["matrix"]
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "windows", "macos"]
    assert matrix["python"] == SUPPORTED
    assert any("tests/oldest.txt" in step.get("run", "") for step in jobs["oldest"]["steps"])


def test_publishing_is_trusted_and_checks_before():
    jobs = read_yaml(".github/workflows/publish.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "secrets." not in read(".github/workflows/publish.yml")
    commands = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    for needed in ("python -m build", "twine check --strict", "__version__", "rplvq compare"):
        assert needed in commands


def test_forms_and_templates_are_whole():
    assert len(FORMS) == 2
    for path in FORMS:
        form = read_yaml(path)
        assert {"name", "description", "body"} <= form.keys()
        names = [part["id"] for part in form["body"]]
        assert len(names) == len(set(names))
        assert all(part["attributes"]["label"] for part in form["body"])
    assert "CHANGELOG.md" in read(".github/pull_request_template.md")
    assert "pyproject.toml" in read("CODE_OF_CONDUCT.md")


def requirement(text: str) -> tuple[str, str]:
    name, bound = re.fullmatch(r"([\w-]+) ?>=([\d.]+)", text).groups()
    return name, bound


def test_the_conda_recipe_follows_the_package():
    recipe = read_yaml("conda/recipe.yaml")
    assert recipe["context"]["version"] == rplvq.__version__
    runs = dict(requirement(text) for text in recipe["requirements"]["run"])
    assert runs.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert runs == dict(requirement(text) for text in PROJECT["dependencies"])
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script == f"rplvq = {PROJECT['scripts']['rplvq']}"
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_citation_is_valid_and_names_the_paper():
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == rplvq.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["preferred-citation"]["doi"] == "10.1016/j.neunet.2021.04.024"
    if "repository-code" in citation:
        assert citation["repository-code"] == PROJECT["urls"]["Repository"]
    kinds = {"cff-version": str, "message": str, "title": str, "authors": list, "keywords": list, "abstract": str}
    assert all(isinstance(citation[name], kind) for name, kind in kinds.items())
    assert citation["cff-version"] == "1.2.0"
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors", "journal", "year", "volume", "start", "end"} <= paper.keys()
    assert all({"family-names", "given-names"} == author.keys() for author in paper["authors"])
    assert set(citation["keywords"]) == set(PROJECT["keywords"])


def test_the_paper_has_the_length_the_sections_and_the_references_of_the_journal():
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", read("paper/paper.md"), flags=re.S).groups()
    about = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= about.keys()
    assert {"Summary", "Statement of need", "Acknowledgements", "References"} <= set(re.findall("^# (.*)$", body, re.M))
    prose = re.sub(r"^\|.*$|^#.*$", "", body, flags=re.M)
    assert 250 <= len(prose.split()) <= 1000
    entries = dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", read("paper/paper.bib"), flags=re.M | re.S))
    assert set(re.findall(r"@(\w+)", body)) == entries.keys()
    known = read("docs/background.md")
    for name, entry in entries.items():
        (doi,) = re.findall(r"doi\s*=\s*\{(.+)\}", entry)
        assert doi in known, name
        assert {"author", "title", "journal", "year"} <= set(re.findall(r"^\s*(\w+)\s*=", entry, flags=re.M)), name


def test_the_paper_shows_what_was_measured():
    numbers = re.findall(r"\b0\.\d{3}\b", re.sub(r"\([^)]*\)", "", read("docs/recorded/home.txt")))
    assert len(numbers) == 20
    assert re.findall(r"\b0\.\d{3}\b", read("paper/paper.md")) == numbers


def test_the_cheat_sheet_fits_on_one_sheet_and_names_what_exists():
    sheet = read("docs/cheatsheet.md")
    assert len(sheet.split()) < 500
    assert len(sheet.splitlines()) < 70
    for name in re.findall(r"\b([A-Z]\w+)\(", sheet):
        assert any(hasattr(room, name) for room in (rplvq, rplvq.preprocessing)), name
    for name in re.findall(r'`"(\w+)"`', sheet.partition("| number |")[0]):
        assert name in rplvq.manifolds.MANIFOLDS or name in rplvq.costs.COSTS, name


def test_the_addresses_of_the_pages_are_those_of_the_project(monkeypatch):
    from tests.docs.test_docs import load

    links = load("links")
    config = links.on_config({"site_url": "", "repo_url": None, "extra": {}})
    real = ".invalid/" not in PROJECT["urls"]["Documentation"]
    assert bool(config["site_url"]) == real
    assert config["extra"] == {}
    monkeypatch.setenv("RPLVQ_DOCS_VERSIONS", "1")
    assert links.on_config({"site_url": "", "repo_url": None, "extra": {}})["extra"]["version"] == {"provider": "mike"}


@pytest.mark.slow
def test_from_the_wheel_to_a_prediction_in_another_folder(tmp_path):
    """In an empty environment: install with [plot], compare, train a pipeline, predict elsewhere, print the card."""

    def run(*command: str, folder: Path = tmp_path) -> str:
        ran = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (command, ran.stdout[-2000:], ran.stderr[-2000:])
        return ran.stdout

    from sklearn.pipeline import make_pipeline

    from rplvq.datasets import make_syn1

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env")
    programs = tmp_path / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    installed = ("install", "--quiet", "--no-compile", f"{wheel}[plot]")
    run(sys.executable, "-m", "pip", "--python", programs / "python", *installed)
    few = ("--epochs", "1", "--samples", "100", "--splits", "2", "--repeats", "1", "--jobs", "1")
    report = run(programs / "rplvq", "compare", *few, "--quiet", "--out", "report")
    assert " MDM" in report
    assert (tmp_path / "report" / "comparison.png").stat().st_size > 1000
    X, y = make_syn1(n_per_class=20, n=4, random_state=0)
    np.savez(tmp_path / "data.npz", X=X[::2], y=y[::2])
    (tmp_path / "elsewhere").mkdir()
    np.savez(tmp_path / "elsewhere" / "new.npz", X=X[1::2])
    train = ["train", "--data", "data.npz", "--model", "model.npz", "--steps", "recenter", "--quiet"]
    run(programs / "rplvq", *train)
    (tmp_path / "model.npz").rename(tmp_path / "elsewhere" / "moved.npz")
    predict = ["predict", "--model", "moved.npz", "--data", "new.npz"]
    labels = run(programs / "rplvq", *predict, folder=tmp_path / "elsewhere").split()
    notebook = make_pipeline(rplvq.Recenter(), rplvq.RiemannianLVQ(max_epochs=20, random_state=0))
    assert labels == ["label", *map(str, notebook.fit(X[::2], y[::2]).predict(X[1::2]))]
    card = run(programs / "rplvq", "info", "moved.npz", folder=tmp_path / "elsewhere")
    assert card.startswith("# Model card: StreamingPipeline\n")
    assert "- `Recenter()`" in card
