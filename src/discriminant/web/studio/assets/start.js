/** The start page: choose a table, then its target. */

import { byId, count, h } from "./elements.js";
import { get, post, upload } from "./server.js";

export class Start {
  constructor({ open }) {
    this.open = open;
    byId("file").addEventListener("change", (event) => this.#upload(event.target.files[0]));
    byId("paste-open").addEventListener("click", () => {
      const text = byId("paste").value;
      if (text.trim()) this.#upload(new Blob([text], { type: "text/csv" }), "pasted.csv");
    });
    byId("database").addEventListener("submit", (event) => {
      event.preventDefault();
      this.preview({ address: byId("address").value, table: byId("address-table").value || null });
    });
    addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
    addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      const file = event.dataTransfer.files[0];
      if (file) {
        this.show();
        this.#upload(file);
      }
    });
  }

  note(text) {
    byId("start-note").textContent = text;
  }

  /** Fill the page with what the server offers. */
  async load() {
    const { examples, given, lectures } = await get("/api/start");
    byId("lectures").replaceChildren(...Object.entries(lectures).map(([n, title]) => h("li", {},
      h("a", { href: `/lectures/lecture_${n}.html`, target: "_blank", rel: "noopener" }, `Lecture ${n}: ${title}`))));
    byId("examples").replaceChildren(...examples.map(({ name, about }) => h("button", { type: "button", class: "card",
      "data-example": name, onclick: () => this.openAtOnce({ example: name }, examples.find((each) => each.name === name).target) },
    h("strong", {}, name.replace("_", " ")), h("span", { class: "small" }, about))));
    return { examples, given };
  }

  show() {
    byId("start").hidden = false;
    byId("workbench").hidden = true;
    byId("table-title").textContent = "";
  }

  hide() {
    byId("start").hidden = true;
    byId("workbench").hidden = false;
    this.note("");
    byId("target-step").hidden = true;
  }

  async #upload(file, name = file?.name) {
    if (!file) return;
    this.note(`Sending ${name} …`);
    try {
      const { upload: number } = await upload(file, name);
      await this.preview({ upload: number });
    } catch (error) {
      this.note(error.message);
    }
  }

  /** Show the first rows of a source, and ask for the target. */
  async preview(source) {
    this.show();
    this.note("Reading the first rows …");
    try {
      this.#ask(source, await post("/api/preview", { source }));
      this.note("");
    } catch (error) {
      this.note(error.message);
    }
  }

  #ask(source, { name, columns, rows, target, previewed }) {
    const step = byId("target-step");
    step.hidden = false;
    step.replaceChildren(
      h("h2", {}, name),
      h("div", { class: "scroll" }, h("table", { class: "numbers" }, h("caption", { class: "unseen" }, "First rows"),
        h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, h("bdi", {}, column.name))))),
        h("tbody", {}, rows.slice(0, 4).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))))))),
      h("form", { class: "buttons", onsubmit: (event) => {
        event.preventDefault();
        this.openAtOnce(source, byId("target").value, { missing: byId("start-missing").value });
      } },
      h("label", { class: "inline", for: "target" }, "Column to predict "),
      h("select", { id: "target" }, columns.map((column) => h("option", { value: column.name, selected: column.name === target },
        `${column.name} (${count(column.distinct, "value")} in ${count(previewed, "row")})`))),
      h("label", { class: "inline" }, "Missing cells ", h("select", { id: "start-missing" },
        h("option", { value: "error" }, "stop with an error"), h("option", { value: "drop" }, "drop the row"),
        h("option", { value: "mean" }, "fill in the mean"), h("option", { value: "indicator" }, "fill in, and mark"))),
      h("button", { type: "submit", class: "primary", id: "open-table" }, "Open")));
    step.scrollIntoView({ block: "nearest" });
    byId("target").focus();
  }

  /** Open a table, and report what is wrong with it. */
  async openAtOnce(source, target, plan = {}) {
    this.note("Reading the rows …");
    try {
      await this.open(source, target, plan);
    } catch (error) {
      const missing = error.kind === "MissingCellError";
      const text = missing ? `${error.message.split(". ")[0]}. Choose how to treat missing cells.` : error.message;
      if (byId("start").hidden) byId("plan-note").textContent = text;
      else this.note(text);
      if (missing) byId(byId("start").hidden ? "missing" : "start-missing").focus();
    }
  }
}
