"""A real JupyterLab on this machine, a real Chromium, and the release's notebooks opened in it."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from autograder.builder.release import release_files, zip_bytes
from autograder.homework import Homework, homework_names, read_homework

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SCREENSHOTS = os.environ.get("AUTOGRADER_SCREENSHOTS")  # a folder: keep pictures of what the tests see there
VIEWPORT = {"width": 1280, "height": 1200}
PATIENCE = 120_000  # milliseconds: a busy machine is slow, not wrong
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
STAFF_ONLY = {"disabledExtensions": {"@jupyter/nbgrader": True}}  # students do not have it


class Lab:
    """A running JupyterLab that serves the unpacked releases."""

    def __init__(self, root: Path, url: str, new_page: Callable[[], Page]) -> None:
        self.root, self.url, self.new_page = root, url, new_page

    def open(self, path: Path) -> NotebookPage:
        """Open a notebook below the root, and wait until all of it is there and its kernel is idle."""
        page = NotebookPage(self.new_page(), nbformat.read(path, 4))
        page.view.goto(f"{self.url}/lab/tree/{path.relative_to(self.root)}?reset")
        page.wait_until_loaded()
        return page


class NotebookPage:
    """A notebook in JupyterLab, worked with mouse and keyboard."""

    def __init__(self, view: Page, notebook: nbformat.NotebookNode) -> None:
        self.view, self.notebook = view, notebook
        self.place = {cell.id: position for position, cell in enumerate(notebook.cells)}

    def wait_until_loaded(self) -> None:
        """Every cell is in the page, and the kernel waits for work."""
        everything = "n => document.querySelectorAll('.jp-Notebook .jp-Cell').length === n"
        self.view.wait_for_function(everything, arg=len(self.notebook.cells))
        self.view.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")

    def cell(self, cell: str | int) -> Locator:
        """A cell, by its id or its position."""
        position = self.place[cell] if isinstance(cell, str) else cell
        return self.view.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{position}']")

    def below(self, cell: str) -> list[nbformat.NotebookNode]:
        """The cells that follow."""
        return self.notebook.cells[self.place[cell] + 1 :]

    def paste(self, cell: str, text: str) -> None:
        """Put this text in the place of the cell's."""
        self.cell(cell).locator(".cm-content").click()
        self.view.keyboard.press("Control+A")
        self.view.keyboard.insert_text(text)

    def run(self, cell: str) -> None:
        """Click beside the cell's code, press Shift and Enter, and wait until the kernel has done it."""
        before = self.number(cell)
        self.cell(cell).locator(".jp-InputPrompt").click()
        self.view.keyboard.press("Shift+Enter")
        self.wait_until_run(cell, before)

    def run_all_above(self, cell: str) -> None:
        """The menu's `Run All Above Selected Cell`."""
        above = enumerate(self.notebook.cells[: self.place[cell]])
        last = max(i for i, c in above if c.cell_type == "code" and "jupyter" not in c.metadata)  # not folded away
        before = self.number(last)
        self.cell(cell).locator(".jp-InputPrompt").click()
        self.view.get_by_role("menuitem", name="Run", exact=True).click()
        self.view.get_by_role("menuitem", name=re.compile("Run All Above")).click()
        self.wait_until_run(last, before)

    def number(self, cell: str | int) -> str:
        """What stands to the left of a cell: `[ ]:`, `[*]:` or `[7]:`."""
        return self.cell(cell).locator(".jp-InputPrompt").text_content()

    def wait_until_run(self, cell: str | int, before: str) -> None:
        """The cell has a number that it did not have before."""
        position = self.place[cell] if isinstance(cell, str) else cell
        done = """([position, before]) => {
            const cell = document.querySelector(`.jp-Notebook .jp-Cell[data-windowed-list-index='${position}']`)
            const now = cell.querySelector('.jp-InputPrompt').textContent
            return /\\d/.test(now) && now !== before
        }"""
        self.view.wait_for_function(done, arg=[position, before])
        self.view.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")

    def region(self, cell: str) -> Locator:
        """What `grader.check` shows below its cell."""
        return self.cell(cell).locator(".jp-OutputArea section[role=region]")

    def input(self, cell: str) -> Locator:
        """What stands in a cell."""
        return self.cell(cell).locator(".jp-Cell-inputWrapper")

    def output(self, cell: str) -> Locator:
        """What a cell shows."""
        return self.cell(cell).locator(".jp-Cell-outputWrapper")

    def keep(self, name: str, *parts: Locator) -> None:
        """Where pictures for the docs are wanted, one of the page from the first to the last of these parts."""
        if SCREENSHOTS:
            self.view.mouse.move(0, 0)  # nothing lights up under it
            parts[-1].scroll_into_view_if_needed()
            boxes = [part.bounding_box() for part in parts]
            left, top = min(b["x"] for b in boxes), min(b["y"] for b in boxes)
            right, bottom = max(b["x"] + b["width"] for b in boxes), max(b["y"] + b["height"] for b in boxes)
            area = {"x": left, "y": top, "width": right - left, "height": bottom - top}
            self.view.screenshot(clip=area, path=Path(SCREENSHOTS) / f"{name}.png")

    def close(self) -> None:
        """Close the page."""
        self.view.close()


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab with nobody's settings, and a browser; the releases lie unpacked in its folder."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright here")
    home = tmp_path_factory.mktemp("lab")
    root = home / "work"
    for name in homework_names():
        zipfile.ZipFile(io.BytesIO(zip_bytes(release_files(name)))).extractall(root)
    server, url = _start(home, root)
    try:
        with sync_api.sync_playwright() as tool:
            browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
            context = browser.new_context(viewport=VIEWPORT, device_scale_factor=1.5 if SCREENSHOTS else 1)
            context.set_default_timeout(PATIENCE)
            sync_api.expect.set_options(timeout=PATIENCE)
            yield Lab(root, url, context.new_page)
            browser.close()
    finally:
        server.terminate()  # and with it every kernel
        server.wait(PATIENCE / 1000)


def _start(home: Path, root: Path) -> tuple[subprocess.Popen[bytes], str]:
    from course_utils.notebook.grader import GRADING  # brings torch

    config = home / "config" / "labconfig"
    config.mkdir(parents=True)
    (config / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    (config / "page_config.json").write_text(json.dumps(STAFF_ONLY))
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    places |= {"IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "spaces"}
    environment = {key: value for key, value in os.environ.items() if key not in {GRADING, "PYTHONPATH"}}
    environment |= {key: str(home / folder) for key, folder in places.items()}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", "--IdentityProvider.token=", f"--ServerApp.root_dir={root}"]
    log = home / "log.txt"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/api/status").close()
            return server, url
        except urllib.error.URLError:
            time.sleep(0.2)
    server.kill()
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


@pytest.fixture(scope="package", params=homework_names())
def homework(request: pytest.FixtureRequest) -> Homework:
    """Each homework in turn."""
    return read_homework(request.param)


@pytest.fixture(scope="package")
def opened(lab: Lab, homework: Homework) -> Iterator[NotebookPage]:
    """The student's notebook of this homework, open in the browser."""
    page = lab.open(lab.root / homework.name / f"{homework.name}.ipynb")
    yield page
    page.close()
