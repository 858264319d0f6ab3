/** Take away: the model in several formats, the report, and the Python code. */

import { byId, h } from "../elements.js";
import { modelOf } from "./decide.js";
import { events, post, save } from "../server.js";

const FORMATS = [
  ["model", "Model file", "For discriminant.load, discriminant predict and discriminant serve. It cannot run code."],
  ["python", "Python", "One file that needs nothing but Python."],
  ["javascript", "JavaScript", "One module for browsers and Node.js."],
  ["sql", "SQL", "One SELECT for DuckDB, PostgreSQL or SQLite."],
  ["onnx", "ONNX", "A graph in double precision."],
];

export class Export {
  constructor(session) {
    this.session = session;
    byId("export").replaceChildren(
      h("div", { class: "columns" },
        h("section", {}, h("h2", {}, "Take the model away"),
          h("p", { class: "small" }, "The model as it is set now, fitted to all rows: with its priors, costs and features."),
          h("ul", { class: "formats" }, FORMATS.map(([id, title, about]) => h("li", {},
            h("button", { type: "button", "data-format": id, onclick: () => this.#save(id) }, title),
            h("span", { class: "small" }, about)))),
          h("p", { id: "export-note", class: "small", role: "status" })),
        h("section", {}, h("h2", {}, "Report"),
          h("p", { class: "small" }, "Compares the models of the catalogue by cross-validation on these columns, and explains the one it selects, in one page that works offline."),
          h("button", { type: "button", id: "write-report", onclick: () => this.#report() }, "Write the report"),
          h("p", { id: "report-note", class: "small", role: "status" }),
          h("progress", { id: "report-progress", max: "1", value: "0", hidden: true, "aria-label": "Progress of the report" }))),
      h("section", {}, h("h2", {}, "The same in Python"),
        h("p", { class: "small" }, "These lines make the model that you see."),
        h("pre", { id: "code", tabindex: "0" }),
        h("button", { type: "button", onclick: () => this.#copy() }, "Copy")));
  }

  #body() {
    return { model: modelOf(this.session), edits: this.session.edits() };
  }

  get #path() {
    return `/api/tables/${this.session.facts.id}`;
  }

  async #save(to) {
    const note = byId("export-note");
    note.textContent = "Fitting and writing …";
    try {
      await save(`${this.#path}/export`, { ...this.#body(), to });
      note.textContent = "Saved to your downloads.";
    } catch (error) {
      note.textContent = error.message;
    }
  }

  async #report() {
    const note = byId("report-note"), bar = byId("report-progress"), button = byId("write-report");
    button.disabled = true;
    bar.hidden = false;
    try {
      let failed = null, finished = false;
      await events(`${this.#path}/report`, this.#body(), (event) => {
        if (event.error) failed = event.error;
        else if (event.done === true) finished = true;
        else {
          note.textContent = `${event.step} …`;
          bar.value = event.total > 1 ? event.done / event.total : 0;
        }
      });
      if (finished) await save(`${this.#path}/report`);
      note.textContent = failed ?? (finished ? "The report is in your downloads." : "The report was not completed.");
    } catch (error) {
      note.textContent = error.message;
    }
    bar.hidden = true;
    button.disabled = false;
  }

  async #copy() {
    await navigator.clipboard.writeText(byId("code").textContent);
    byId("export-note").textContent = "The code is copied.";
  }

  update(visible) {
    if (!visible) return;
    const body = this.#body(), key = JSON.stringify(body);
    if (this.key === key) return;
    this.key = key;
    clearTimeout(this.waiting);
    this.waiting = setTimeout(async () => {
      try {
        const { code } = await post(`${this.#path}/code`, body);
        if (this.key === key) byId("code").textContent = code;
      } catch (error) {
        byId("code").textContent = error.message;
      }
    }, 150);
  }
}
