"""A headless Chromium, spoken to over its debugging pipe with the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60.0  # seconds that an answer may take; no test depends on how long it does take
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-pipe",
)
# Chromium expects its two ends of the pipe at the numbers 3 and 4.
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One tab; a context manager. ``requests`` holds the address of everything that the page asked for."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCHER, str(to_read), str(to_write)),
                *(str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}"),
            ],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest, self._session = 0, b"", None
        self.requests: list[str] = []
        try:
            self._begin(width, height)
        except BaseException:
            self.close()
            raise

    def _begin(self, width: int, height: int) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Page", "Runtime"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        os.close(self._write)
        os.close(self._read)
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("method") == "Network.requestWillBeSent":
                self.requests.append(answer["params"]["request"]["url"])
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait(self, script: str) -> Any:
        """First true value of an expression."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.05)
        raise TimeoutError(f"never true: {script}")

    def open(self, url: str) -> None:
        """Load a page and wait until its formulas are set."""
        self.call("Page.navigate", url=url)
        self.wait(
            f"location.href.split('#')[0] === {json.dumps(url.split('#')[0])} && document.readyState === 'complete'"
        )
        self.wait("window.MathJax?.startup?.promise ? MathJax.startup.promise.then(() => true) : true")

    def screenshot(self, path: Path) -> None:
        """Write the window as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
