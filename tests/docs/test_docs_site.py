"""The built site in a browser: search finds the classifier, formulas are drawn, and no other machine is contacted."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import re
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser import CHROMIUM, Browser

ROOT = Path(__file__).resolve().parents[2]

needs_mkdocs = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason='the docs are not installed: pip install -e ".[dev,docs]"',
)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH: apt-get install chromium")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@needs_mkdocs
def test_every_page_is_built_without_leftovers(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 35
    for page in pages:
        text = page.read_text()
        assert "{{ " not in text, page
        assert "--8<--" not in text, page
        body = re.sub(r"<(code|pre)\b.*?</\1>", "", text, flags=re.S)
        assert not re.search(r":(class|func|meth|mod|attr|data|exc):", body), page
        assert "<autoref" not in text, page


@needs_mkdocs
def test_every_example_has_results_and_can_be_downloaded(site):
    pages = [page for page in (site / "examples").glob("*.html") if page.name != "index.html"]
    assert len(pages) > 15
    for page in pages:
        text = page.read_text()
        assert "Skipped" not in text, page
        for ending in ("py", "ipynb", "png"):
            assert f'href="{page.stem}.{ending}"' in text, page
            assert page.with_suffix(f".{ending}").stat().st_size > 500, page


@needs_mkdocs
def test_entries_of_several_parameters_are_split():
    spec = importlib.util.spec_from_file_location("griffe_roles", ROOT / "docs" / "griffe_roles.py")
    roles = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(roles)
    text = "Head.\n\na, b : A of x and B\n    Both.\n    Of them.\nc, d\n    More.\ne, f : E, default=0\n    Last."
    found = roles.one_entry_each(text).splitlines()
    assert found[:6] == ["Head.", "", "a : A of x", "    Both.", "    Of them.", "b : B"]
    assert [line for line in found[6:] if not line.startswith(" ")] == [
        "c",
        "d",
        "e : E, default=0",
        "f : E, default=0",
    ]


@needs_mkdocs
def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|img|link|iframe)\b[^>]*>", page.read_text()):
            assert not re.search(r"""(src|href)=["']?(https?:)?//""", tag) or 'rel="canonical"' in tag, (page, tag)


@needs_mkdocs
@needs_chromium
def test_search_finds_the_classifier(address, browser):
    browser.open(f"{address}/index.html")
    browser.run("document.querySelector('.md-search__input').focus()")
    browser.call("Input.insertText", text="RiemannianLVQ")
    link = browser.wait(
        "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
        ".find(address => address.includes('api/estimators'))"
    )
    browser.open(link)
    assert "RiemannianLVQ" in browser.run("document.querySelector('article').innerText")


@needs_mkdocs
@needs_chromium
def test_pages_fit_and_formulas_are_drawn(address, browser, site):
    """Each page is opened once, and looked at in both widths: a screen's and a telephone's."""
    formulas = 0
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue
        browser.resize(1280, 900)
        browser.open(f"{address}/{page.relative_to(site).as_posix()}")
        formulas += require_that_all_fits(browser, 1280, page)
        wide = browser.run(
            "[...document.querySelectorAll('.md-typeset__scrollwrap, div.arithmatex')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.className)"
        )
        assert wide == [], page
        browser.resize(390, 900)
        require_that_all_fits(browser, 390, page)
        broken = browser.run("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
        assert broken == [], page
    assert formulas > 30
    hosts = {urlsplit(url).netloc for url in browser.requests if url.startswith(("http", "ws"))}
    assert hosts == {urlsplit(address).netloc}


def require_that_all_fits(browser, width, page):
    """Check the page that is open, in the window's width, and return how many formulas are drawn."""
    # A telephone's window grows with what is too wide for it, so that its own width says nothing.
    assert browser.run("document.documentElement.scrollWidth") <= width, (page, width)
    assert browser.run("document.querySelectorAll('mjx-merror').length") == 0, page
    marked = browser.run("document.querySelectorAll('.arithmatex').length")
    drawn = browser.run(
        "[...document.querySelectorAll('mjx-container svg')].map(s => s.getBoundingClientRect())"
        ".filter(r => r.width > 4 && r.height > 4).length"
    )
    assert drawn == marked, (page, width)
    cut = browser.run(
        "[...document.querySelectorAll('.md-typeset__scrollwrap, article pre, article pre code, div.arithmatex')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'visible').length"
    )
    assert cut == 0, (page, width)
    return drawn
