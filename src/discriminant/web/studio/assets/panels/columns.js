/** Columns: how each column is used, and the findings of the data checks. */

import { byId, count, h, whole } from "../elements.js";
import { get } from "../server.js";

const KINDS = {
  number: "number", boolean: "yes or no", date: "date", ordered: "ordered category", category: "category",
  target: "target", weight: "weight", identifier: "identifier", constant: "constant", dropped: "left out",
};
const SEVERITY = { stop: "Stop", warning: "Warning", note: "Note" };
const MISSING = [
  ["error", "stop with an error"], ["drop", "drop the row"], ["mean", "fill in the mean"], ["indicator", "fill in the mean, and mark it"],
];

export class Columns {
  constructor(session, { reopen }) {
    this.session = session;
    const { facts } = session, { reading } = facts, categories = new Set(reading.categories ?? []);
    const use = (column) => {
      if (column.kind === "target") return "target";
      if ((reading.exclude ?? []).includes(column.name)) return "exclude";
      if (categories.has(column.name)) return "category";
      return "auto";
    };
    byId("columns").replaceChildren(
      h("section", {}, h("h2", {}, "Data checks"), h("div", { id: "checks", role: "status" }, h("p", { class: "small" }, "Checking …"))),
      h("section", {}, h("h2", {}, "Plan of columns"),
        h("p", { class: "small" }, "How each column becomes features. Change it here, then read the table again."),
        h("div", { class: "scroll" }, h("table", { class: "numbers plan" }, h("caption", { class: "unseen" }, "Columns and their use"),
          h("thead", {}, h("tr", {}, ["Column", "Use", "Read as", "Features", "Missing cells"].map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", {}, facts.columns.map((column) => h("tr", {},
            h("th", { scope: "row" }, h("bdi", {}, column.name), column.note ? h("div", { class: "small" }, column.note) : null),
            h("td", {}, column.kind === "target" ? "target" : h("select", { "data-column": column.name, "aria-label": `Use of ${column.name}` },
              [["auto", "as read"], ["category", "as a category"], ["exclude", "leave out"]].map(([id, text]) =>
                h("option", { value: id, selected: use(column) === id }, text)))),
            h("td", {}, KINDS[column.kind] ?? column.kind), h("td", {}, whole(column.features.length)), h("td", {}, whole(column.missing))))))),
        h("div", { class: "buttons" },
          h("label", { class: "inline" }, "Missing cells: ", h("select", { id: "missing" },
            MISSING.map(([id, text]) => h("option", { value: id, selected: (reading.missing || "error") === id }, text)))),
          h("button", { type: "button", id: "reread", onclick: () => reopen(this.plan()) }, "Read the table again")),
        h("p", { id: "plan-note", class: "small", role: "status" }),
        h("ul", { class: "small" }, [...facts.notes, ...facts.warnings].map((text) => h("li", {}, text)))));
    this.#check();
  }

  /** The options of the plan. */
  plan() {
    const selects = [...byId("columns").querySelectorAll("select[data-column]")];
    const chosen = (value) => selects.filter((select) => select.value === value).map((select) => select.dataset.column);
    return { exclude: chosen("exclude"), categories: chosen("category"), missing: byId("missing").value };
  }

  async #check() {
    const { session } = this;
    try {
      const { findings } = await get(`/api/tables/${session.facts.id}/checks`);
      const severe = findings.filter(({ severity }) => severity !== "note").length;
      const badge = byId("checks-badge");
      badge.hidden = !severe;
      badge.textContent = String(severe);
      byId("checks").replaceChildren(findings.length
        ? h("ul", { class: "findings" }, findings.map(({ severity, title, text }) => h("li", { class: severity },
          h("strong", {}, `${SEVERITY[severity]}: ${title}`), h("p", {}, text))))
        : h("p", {}, `No findings in ${count(session.facts.columns.length - 1, "column")}.`));
    } catch (error) {
      byId("checks").textContent = error.message;
    }
  }

  update() {}
}
