"""Times of the studio in Chromium: start, first paint, opening a large table, exact counts, frames.

    python benchmarks/studio.py [--rows 1000000] [--columns 30]

Prints a line for each measurement. The large table is a Parquet file of normal classes; frames are
measured with 5,000 and with 500 rows, 50 columns and 10 classes, while a dial moves. A frame is the
script time from a change to the end of drawing; its CPU time, from the trace of the browser, counts
where other work runs on the machine. The worker is timed from a change to all points left out.
Memory is the proportional set size of the processes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

_MOVE = """
async ([id, frames]) => {
  const dial = document.getElementById(id), times = [];
  for (let i = 0; i < frames; i++) {
    dial.value = String(0.1 + (0.4 * i) / frames);
    performance.clearMeasures();
    dial.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const measure = performance.getEntriesByName("studio-frame").at(-1);
    if (measure) times.push(measure.duration);
  }
  return times;
}
"""


def write_table(file: Path, rows: int, columns: int, classes: int) -> None:
    """Write normal classes with different means."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, classes, rows)
    X = rng.normal(size=(rows, columns)) + 0.5 * rng.normal(size=(classes, columns))[codes]
    names = np.array([f"class {k}" for k in range(classes)])
    pq.write_table(
        pa.table({**{f"x{j}": X[:, j] for j in range(columns)}, "kind": names[codes]}), file
    )


@contextmanager
def open_studio(file: Path, browser: Any) -> Iterator[tuple[Any, subprocess.Popen[str]]]:
    """Start the studio, open its page, and print how long both take."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "discriminant", "studio", "--no-browser", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[1]
            show("listening after the command", time.perf_counter() - start)
            listening = time.perf_counter()
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(url)
            page.locator("h1").first.wait_for()
            show("page shown after listening", time.perf_counter() - listening)
            page.locator("#open-table").wait_for(timeout=120_000)
            show("first rows shown after listening", time.perf_counter() - listening)
            opening = time.perf_counter()
            page.locator("#open-table").click()
            page.locator("#workbench").wait_for(timeout=120_000)
            show("table open after the click", time.perf_counter() - opening)
            yield page, process
            page.close()
        finally:
            process.terminate()


def measure_large(file: Path, browser: Any) -> None:
    """Exact counts over all rows, and memory."""
    with open_studio(file, browser) as (page, process):
        wait_for_counts(page)
        page.wait_for_timeout(3000)  # the plane of RDA
        times = []
        for prior in (0.3, 0.5, 0.2, 0.4, 0.35):
            start = time.perf_counter()
            page.evaluate(_MOVE, ["prior-1", 1])
            page.evaluate(
                "(value) => { const dial = document.getElementById('prior-1');"
                " dial.value = value; dial.dispatchEvent(new Event('input')); }",
                str(prior),
            )
            page.wait_for_timeout(40)
            wait_for_counts(page)
            times.append(time.perf_counter() - start)
        show("exact counts after a dial, median", median(times))
        show("exact counts after a dial, shortest", min(times))
        show("memory of the server", psutil.Process(process.pid).memory_full_info().pss / 1e6, "MB")
        own = [
            p for p in psutil.Process(os.getpid()).children(recursive=True) if "chrom" in p.name()
        ]
        memory = sum(each.memory_full_info().pss for each in own)
        show("memory of the browser", memory / 1e6, "MB")


DIALS = {
    "lda": ("prior-1", "shrinkage"),
    "qda": ("prior-1", "shrinkage"),
    "rda": ("pooling", "shrinkage"),
}


def measure_frames(file: Path, browser: Any, rows: int) -> None:
    """Script time of frames while a dial moves, with the panel Decide open."""
    with open_studio(file, browser) as (page, _):
        page.wait_for_timeout(3000)
        for model, dials in DIALS.items():
            page.select_option("#model", model)
            for dial in dials:
                page.wait_for_timeout(1000)
                times, cpu = traced_frames(page, dial)
                what = f"{model.upper()}, {dial.partition('-')[0]}, {rows:,} points"
                show(f"{what}: frame, median", median(times), "ms")
                show(f"{what}: frame, CPU, median", median(cpu), "ms")
        page.evaluate("performance.clearMeasures('studio-worker')")
        for model, _ in DIALS.items():
            page.select_option("#model", model)
            for value in (0.2, 0.4, 0.6):
                page.evaluate(_MOVE, ["shrinkage", 1])
                page.evaluate(
                    "(value) => { const dial = document.getElementById('shrinkage');"
                    " dial.value = value; dial.dispatchEvent(new Event('input')); }",
                    str(value),
                )
                page.wait_for_timeout(60)
                page.locator("#error-about:not(:has-text('updating'))").wait_for()
            entries = "performance.getEntriesByName('studio-worker').map((one) => one.duration)"
            durations = page.evaluate(entries)
            page.evaluate("performance.clearMeasures('studio-worker')")
            if durations:
                show(f"{model.upper()}, shrinkage: worker, median", median(durations), "ms")


def traced_frames(page: Any, dial: str, frames: int = 60) -> tuple[list[float], list[float]]:
    """Times of frames: as the page measures them, and CPU times from the trace of the browser."""
    events: list[dict[str, Any]] = []
    complete: list[bool] = []
    session = page.context.new_cdp_session(page)
    session.on("Tracing.dataCollected", lambda message: events.extend(message["value"]))
    session.on("Tracing.tracingComplete", lambda _: complete.append(True))
    categories = {"includedCategories": ["devtools.timeline"]}
    session.send("Tracing.start", {"transferMode": "ReportEvents", "traceConfig": categories})
    times = page.evaluate(_MOVE, [dial, frames])
    session.send("Tracing.end")
    while not complete:
        page.wait_for_timeout(20)
    cpu = sorted(one.get("tdur", 0) / 1000 for one in events if one["name"] == "FireAnimationFrame")
    return times, cpu[-len(times) :]  # the others are those in which nothing is drawn


def wait_for_counts(page: Any) -> None:
    """Wait until the counts are exact."""
    about = page.locator("#error-about", has_text="rows").and_(
        page.locator(":not(:has-text('updating'))")
    )
    about.wait_for(timeout=120_000)


def show(what: str, value: float, unit: str = "s") -> None:
    """Print a line."""
    print(f"{what:<45} {value:9.2f} {unit}", flush=True)


def main() -> None:
    """Measure."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        small, large = Path(folder) / "small.parquet", Path(folder) / "large.parquet"
        write_table(small, 5000, 50, 10)
        write_table(large, options.rows, options.columns, 4)
        measure_frames(small, browser, 5000)
        write_table(small, 500, 50, 10)
        measure_frames(small, browser, 500)
        measure_large(large, browser)
        browser.close()


if __name__ == "__main__":
    main()
