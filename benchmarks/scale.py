"""A made-up class of a thousand: is a submission as quick at the end as at the start, and is the report still usable?

    python benchmarks/scale.py [--count 1000] [--jobs 2] [--cluster 120] [--json]

Every student answers every question of hw1 at random: as the reference, as a right variant, as a known mistake, or
not at all. They are graded with the public checks. Then one and two Dask workers grade a part of them, one run after
the other.
With --json the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil

from autograder.builder.notebooks import student_cells
from autograder.homework import Homework, read_homework

BIN = Path(sys.executable).parent
HOMEWORK = "hw1_attention"
DONE = b'"type": "submission"'
MB = 2**20


def main() -> None:
    """Measure, print, and with --json one object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="submissions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cluster", type=int, default=120, help="submissions for the Dask workers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        place = Path(folder)
        write_class(read_homework(HOMEWORK), place / "in", options.count)
        figures = {"grading": grading(place, options.jobs)}
        figures["report"] = report(place)
        for path in sorted((place / "in").iterdir())[options.cluster :]:
            path.unlink()
        figures["dask"] = {f"{n} workers": cluster(place, n) for n in (1, 2)}
    for name, found in figures.items():
        print(name, *(f"  {key}: {value}" for key, value in found.items()), sep="\n")
    if options.json:
        print(json.dumps(figures))


def write_class(homework: Homework, folder: Path, count: int) -> None:
    """So many students, each with answers drawn at random."""
    folder.mkdir(parents=True)
    solved, stub = (student_cells(homework, solved=kind) for kind in (True, False))
    for number in range(count):
        draw = random.Random(number)
        skill = draw.random()
        cells = []
        for right, empty in zip(solved, stub, strict=True):
            cell = nbformat.from_dict(empty)
            question = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if question in homework.mistakes and draw.random() < 0.5 + skill / 2:
                wrong = draw.random() > 0.3 + 0.7 * skill
                drawn = draw.choice((homework.mistakes if wrong else homework.variants)[question]).source
                cell.source = right.source if not wrong and draw.random() < 0.5 else f"{right.source}\n\n{drawn}"
            cells.append(cell)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"student{number:04d}.ipynb")


def grading(place: Path, jobs: int) -> dict[str, Any]:
    """Grade the class; wall seconds per submission and the judge's memory, in tenths of the class."""
    count = len(list((place / "in").iterdir()))
    command = [str(BIN / "autograder"), "grade", "in", "--assignment", HOMEWORK, "--out", "out", "--public-only"]
    journal = place / "out" / "results.jsonl"
    with open(place / "log", "wb") as log:
        run = subprocess.Popen([*command, "--jobs", str(jobs)], cwd=place, stdout=log, stderr=log)
        judge, moments, sizes, read, done = psutil.Process(run.pid), [time.perf_counter()], [], 0, 0
        while run.poll() is None:
            time.sleep(0.1)
            if not journal.exists():
                continue
            with open(journal, "rb") as file, contextlib.suppress(psutil.Error):
                file.seek(read)
                data = file.read()
                data = data[: data.rfind(b"\n") + 1]
                read += len(data)
                done += data.count(DONE)
                if done * 10 >= count * len(moments):
                    moments.append(time.perf_counter())
                    workers = [child.memory_info().rss for child in judge.children() if child.name() != "bwrap"]
                    sizes.append((judge.memory_info().rss + sum(workers)) // MB)
    if run.returncode:
        raise SystemExit((place / "log").read_text()[-3000:])
    tenths = [(after - before) * 10 / count for before, after in zip(moments, moments[1:], strict=False)]
    return {
        "submissions": count,
        "seconds per submission, by tenth (the first starts up)": [round(value, 3) for value in tenths],
        "MB of the judge and its workers, by tenth": sizes,
        "last tenth as times the second": round(tenths[-1] / tenths[1], 2),
        "MB of journal": round(journal.stat().st_size / MB, 1),
    }


def report(place: Path) -> dict[str, Any]:
    """Write the class report, and use it in a browser."""
    start = time.perf_counter()
    command = [str(BIN / "autograder"), "report", "out", "--submissions", "in"]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    page = place / "out" / "report.html"
    found = {"seconds to write": round(time.perf_counter() - start, 1), "MB": round(page.stat().st_size / MB, 2)}
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    return found | (_used(page, chromium) if chromium else {"browser": "none here"})


def _used(page: Path, chromium: str) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page()
        start = time.perf_counter()
        view.goto(page.as_uri())
        opened = time.perf_counter()
        view.locator("#students ~ div th", has_text="total").locator("button").click()
        view.locator("#students ~ div table tbody tr").first.inner_text()
        ordered = time.perf_counter()
        view.fill("#search", "student0007")
        left = view.locator("#students ~ div tbody tr:visible").count()
        searched = time.perf_counter()
        browser.close()
    return {
        "seconds to open": round(opened - start, 2),
        "seconds to sort the students": round(ordered - opened, 2),
        "seconds to search": round(searched - ordered, 2),
        "rows left by the search": left,
    }


def cluster(place: Path, workers: int) -> dict[str, float]:
    """Seconds per submission on so many Dask workers: from the command to the grades, and from the first result on."""
    count, journal, ahead = len(list((place / "in").iterdir())), place / f"out{workers}" / "results.jsonl", 0
    with _scheduler(place / f"cluster{workers}", workers) as address:
        command = [str(BIN / "autograder"), "grade", "in", "--assignment", HOMEWORK, "--public-only"]
        command += ["--scheduler", address, "--out", f"out{workers}"]
        start, first = time.perf_counter(), 0.0
        with open(place / "log", "wb") as log:
            run = subprocess.Popen(command, cwd=place, stdout=log, stderr=log)
            while run.poll() is None:
                time.sleep(0.05)
                if not first and journal.exists() and DONE in (begun := journal.read_bytes()):
                    first, ahead = time.perf_counter(), begun.count(DONE)
        end = time.perf_counter()
        if run.returncode:
            raise SystemExit((place / "log").read_text()[-3000:])
    return {"in all": round((end - start) / count, 3), "after the first": round((end - first) / (count - ahead), 3)}


@contextlib.contextmanager
def _scheduler(folder: Path, workers: int) -> Iterator[str]:
    folder.mkdir()
    told = folder / "scheduler.json"
    common = ["--scheduler-file", str(told), "--no-dashboard", "--host", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0"]
    started = [subprocess.Popen([*dask, *common], env=environment, **quiet)]
    try:
        while not told.exists():
            time.sleep(0.1)
        for _ in range(workers):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--nworkers", "1"]
            started.append(subprocess.Popen([*worker, *common], env=environment, **quiet))
        address = json.loads(told.read_text())["address"]
        _wait_for(address, workers)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()


def _wait_for(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(workers)


if __name__ == "__main__":
    main()
