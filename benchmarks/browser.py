"""Script time of one frame of `report/assets/moments.js` in Chromium: refits while a control moves.

    python benchmarks/browser.py [--frames 60]

Prints a line for each kind of frame: the median and the shortest script time over the frames, in
milliseconds of the renderer's main thread (Chromium's ScriptDuration in thread time, so that other
processes on the machine do not count), and the goal. Every frame changes what it refits.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib.resources import files
from statistics import median

SITE = "http://moments.test"
SOURCE = files("discriminant.report").joinpath("assets", "moments.js").read_text(encoding="utf-8")

# Each function of `frames` is one frame; `t` counts the frames.
FRAMES = """
import {
  LeaveOneOut, Moments, argmax, decide, fit, logPosterior, selectColumns,
} from "./moments.js";
const K = 10, d = 50;
let seed = 7;
const uniform = () => {  // a linear congruential generator, so that runs are equal
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return (seed + 0.5) / 4294967296;
};
const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
const centres = Float64Array.from({ length: K * d }, normal);
const sample = (n) => {
  const codes = Int32Array.from({ length: n }, (_, i) => i % K);
  const rows = Float64Array.from({ length: n * d }, (_, p) =>
    0.5 * centres[codes[Math.floor(p / d)] * d + (p % d)] + normal());
  return { rows, codes };
};
const many = sample(5000), few = sample(500);
const moments = Moments.ofRows(many.rows, many.codes, { classes: K });
const left = new LeaveOneOut(moments, many.rows, many.codes), out = new Float64Array(5000 * K);
const fewMoments = Moments.ofRows(few.rows, few.codes, { classes: K });
const fewLeft = new LeaveOneOut(fewMoments, few.rows, few.codes);
const priors = (t) => {
  const prior = new Float64Array(K).fill(1);
  prior[t % K] = 1 + (t % 7);
  const total = prior.reduce((a, b) => a + b);
  return prior.map((value) => value / total);
};
const nodes = Float64Array.from({ length: 2 * 80 * 80 }, (_, p) =>
  (p % 2 ? Math.floor(p / 160) : Math.floor(p / 2) % 80) / 10 - 4);
const axes = [0, 1].map((j) => Float64Array.from({ length: d }, (_, i) => Number(i === j)));
const errors = (codes, truth) =>
  codes.reduce((sum, code, i) => sum + (code !== truth[i] ? 1 : 0), 0);
const frames = {
  prior: (t) => {
    const prior = priors(t), rule = fit(moments, { prior });
    const scores = left.scores({ prior }, out);
    const actions = decide(logPosterior(scores, K), K, { reject: { cost: 0.1 + 0.001 * t } });
    return errors(actions, many.codes) + rule.intercept[0];
  },
  drag: (t) => {
    const shift = new Float64Array(d);
    shift[t % d] = 0.01;
    moments.moveClass(t % K, shift);
    for (let i = t % K; i < 5000; i += K) many.rows[i * d + (t % d)] += 0.01;
    const rule = fit(moments);
    return errors(argmax(left.scores({}, out), K), many.codes) + rule.intercept[0];
  },
  features: (t) => {
    const columns = axes[0].reduce((all, _, j) => (j === t % d ? all : [...all, j]), []);
    const part = moments.select(columns), rows = selectColumns(many.rows, d, columns);
    return errors(argmax(new LeaveOneOut(part, rows, many.codes).scores({}, out), K), many.codes);
  },
  shrinkage: (t) => {
    const rule = fit(moments, { shrinkage: 0.001 * (t + 1) });
    return errors(rule.predict(many.rows), many.codes);
  },
};
for (const model of ["qda", "rda"]) {
  frames[model] = (t) => {
    const options = model === "qda" ? { model, shrinkage: 0.1 + 0.001 * t }
      : { model, pooling: 0.3 + 0.001 * t, shrinkage: 0.2 };
    const rule = fit(fewMoments, options);
    const regions = argmax(rule.onPlane(fewMoments.origin, axes).scores(nodes), K);
    return errors(rule.predict(few.rows), few.codes) + regions[0];
  };
}
frames.left = (t) => {
  const options = { model: "rda", pooling: 0.3 + 0.001 * t };
  const rule = fit(fewMoments, options);
  const regions = argmax(rule.onPlane(fewMoments.origin, axes).scores(nodes), K);
  return errors(argmax(fewLeft.scores(options), K), few.codes) + regions[0];
};
frames.refit = (t) => {
  const options = { model: "rda", pooling: 0.3 + 0.001 * t, shrinkage: 0.2 };
  return errors(argmax(fewLeft.scores(options), K), few.codes);
};
globalThis.frame = (name, t) => frames[name](t);
"""
RUN = """
([name, t]) => new Promise((done) => requestAnimationFrame(() => { frame(name, t); done(); }))
"""
LDA, QDA = "d = 50, K = 10, 5,000 points", "d = 50, K = 10, 500 points"
CASES = (
    ("prior", "LDA: prior and reject cost, all rows left out", LDA, 8.0),
    ("drag", "LDA: a class dragged, all rows left out", LDA, 8.0),
    ("features", "LDA: one feature off, all rows left out", LDA, 8.0),
    ("shrinkage", "LDA: shrinkage, all rows predicted", LDA, 8.0),
    ("qda", "QDA: shrinkage, boundary on 80 x 80 nodes, points predicted", QDA, 16.0),
    ("rda", "RDA: pooling and shrinkage, boundary, points predicted", QDA, 16.0),
    ("left", "RDA: pooling, boundary, all rows left out", QDA, 16.0),
    ("refit", "RDA: shrinkage, all rows left out by refits (in a worker)", QDA, 200.0),
)


def main(frames: int) -> int:
    """Print the table; return 1 if a goal is missed."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("Chromium is not installed.")
    missed = 0
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.route(f"{SITE}/**", _serve)
        page.goto(f"{SITE}/")
        page.add_script_tag(url=f"{SITE}/frames.js", type="module")
        page.wait_for_function("() => globalThis.frame")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        print(f"{'frame':62}{'size':30}{'median':>8}{'least':>8}{'goal':>7}  (ms)")
        for name, title, size, goal in CASES:
            times = frame_times(page, session, name, frames)
            missed += median(times) > goal
            figures = f"{median(times):8.2f}{min(times):8.2f}{goal:7.0f}"
            print(f"{title:62}{size:30}{figures}", flush=True)
        browser.close()
    return int(missed > 0)


def frame_times(page, session, name, frames):
    """Return the script time of each frame in milliseconds, after ten that warm the compiler."""
    times = []
    for t in range(frames + 10):
        before = script_time(session)
        page.evaluate(RUN, [name, t])
        times.append(1000.0 * (script_time(session) - before))
    return times[10:]


def script_time(session):
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "ScriptDuration")


def _serve(route):
    path = route.request.url.removeprefix(SITE)
    if path == "/moments.js":
        return route.fulfill(body=SOURCE, content_type="text/javascript")
    if path == "/frames.js":
        return route.fulfill(body=FRAMES, content_type="text/javascript")
    return route.fulfill(body="<!doctype html><title>frames</title>", content_type="text/html")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frames", type=int, default=60)
    sys.exit(main(parser.parse_args().frames))
