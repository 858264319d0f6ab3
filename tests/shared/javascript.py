"""JavaScript engines: one process each, to which tests send many modules.

An engine imports a module, calls one of its functions for each row, and returns the results. An
error of a row is raised as `JavaScriptError`. Numbers that are not finite are sent as texts.
"""

import json
import math
import shutil
import subprocess
from itertools import count

CALL = """
async (load, name, text) => {
  const module = await load();
  const revive = (key, value) => (value?.number ? Number(value.number) : value);
  const rows = JSON.parse(text, revive);
  const safe = (key, value) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value)
    : typeof value === "bigint" ? Number(value) : value;
  const answer = (row) => {
    try { return { result: module[name](row) }; } catch (error) { return { error: error.message }; }
  };
  return JSON.stringify(rows.map(answer), safe);
}
"""
NODE = f"""
const call = {CALL.strip()};
const lines = require("node:readline").createInterface({{ input: process.stdin }});
lines.on("line", async (line) => {{
  const [text, name, rows] = JSON.parse(line);
  const url = "data:text/javascript;base64," + Buffer.from(text).toString("base64");
  console.log(await call(() => import(url), name, rows));
}});
"""
POLICY = "default-src 'none'; script-src 'self'; worker-src 'self'"
SITE = "http://model.test"


class JavaScriptError(Exception):
    """An error that a module has thrown."""


class Engine:
    """A JavaScript engine."""

    def outputs(self, text, rows):
        """Outputs of a module for each row; raise the first error."""
        return self.call(text, "outputs", rows)

    def call(self, text, name, rows):
        """Result of a function of a module for each row; raise the first error."""
        answers = self.answers(text, name, rows)
        for answer in answers:
            if "error" in answer:
                raise JavaScriptError(answer["error"])
        return [answer["result"] for answer in answers]

    def answers(self, text, name, rows):
        """For each row the result of a function of a module, or the message of its error."""
        prepared = [{key: plain(value) for key, value in row.items()} for row in rows]
        return json.loads(self.send(text, name, json.dumps(prepared, allow_nan=False)))


class Node(Engine):
    """A process of Node.js."""

    path = shutil.which("node")

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.path, "-e", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def send(self, text, name, rows):
        self.process.stdin.write(json.dumps([text, name, rows]) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


class Chromium(Engine):
    """A page under a strict policy: modules are files of its own site, and eval is forbidden."""

    def __init__(self, browser):
        self.browser = browser
        self.files = {"/": ("text/html", "<!doctype html><title>models</title>")}
        self.numbers = count()

    def __enter__(self):
        self.page = self.browser.new_page()
        self.page.route(f"{SITE}/**", self.serve)
        self.page.goto(f"{SITE}/")
        return self

    def __exit__(self, *error):
        self.page.close()

    def serve(self, route):
        kind, text = self.files[route.request.url.removeprefix(SITE)]
        headers = {"content-type": kind, "content-security-policy": POLICY}
        route.fulfill(body=text, headers=headers)

    def add(self, text):
        """Address of a module."""
        path = f"/model-{next(self.numbers)}.js"
        self.files[path] = "text/javascript; charset=utf-8", text
        return path

    def send(self, text, name, rows):
        function = f"([path, name, rows]) => ({CALL.strip()})(() => import(path), name, rows)"
        return self.page.evaluate(function, [self.add(text), name, rows])


def plain(value):
    """A cell as JSON has it: dates as ISO text, numbers that are not finite as objects."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value).replace("inf", "Infinity").replace("nan", "NaN")}
    return value.isoformat() if hasattr(value, "isoformat") else value
