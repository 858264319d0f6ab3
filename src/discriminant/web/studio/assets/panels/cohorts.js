/** Cohorts: the error in groups of rows, and drift against a second table. */

import { byId, count, h, number, percent, whole } from "../elements.js";
import { modelOf } from "./decide.js";
import { wilson } from "../measures.js";
import { post, upload } from "../server.js";

export class Cohorts {
  constructor(session, { select }) {
    this.session = session;
    this.select = select;
    this.label = 0;
    this.known = new Map();
    const names = session.facts.columns.map(({ name }) => name);
    byId("cohorts").replaceChildren(
      h("section", {}, h("h2", {}, "Groups of rows"),
        h("p", { class: "small" }, "Does the model serve every group equally well? Numbers are cut at their quartiles."),
        h("div", { class: "buttons" },
          h("label", { class: "inline" }, "Column ", h("select", { id: "slice-column", onchange: () => this.#choose() },
            names.map((name) => h("option", { value: name }, name)))),
          h("label", { class: "inline" }, "Recall and calibration of ", h("select", { id: "slice-class",
            onchange: (event) => { this.label = Number(event.target.value); this.update(true); } },
          session.labels.map((label, k) => h("option", { value: String(k) }, label))))),
        h("p", { id: "slice-note", class: "small", role: "status" }),
        h("div", { id: "slices", class: "scroll" })),
      h("section", {}, h("h2", {}, "Drift"),
        h("p", { class: "small" }, "Compare the means of a second file with these rows, such as last month's. Only the moments of both are compared."),
        h("label", { class: "file" }, "Second file ", h("input", { type: "file", id: "drift-file", onchange: (event) => this.#drift(event.target.files[0]) })),
        h("p", { id: "drift-note", class: "small", role: "status" }),
        h("div", { id: "drift", class: "scroll" })));
    this.column = names[0];
  }

  #choose() {
    this.column = byId("slice-column").value;
    this.update(true);
  }

  update(visible) {
    if (!visible || !this.session.logs) return;
    const { session } = this, rows = !session.complete && !session.edited;
    const body = { model: modelOf(session), column: this.column };
    const key = rows ? JSON.stringify(body) : this.column;
    const known = this.known.get(this.column);
    if (known?.key !== key && this.asked !== key) {
      this.asked = key;
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.#ask(key, body), known && rows ? 300 : 0);
    }
    if (known) this.#draw(known, rows && known.key !== key);
  }

  async #ask(key, body) {
    try {
      const answer = await post(`/api/tables/${this.session.facts.id}/slices`, body);
      this.known.set(body.column, { key, ...answer });
      byId("slice-note").textContent = "";
      this.session.changed();
    } catch (error) {
      byId("slice-note").textContent = error.message;
    }
  }

  /** Rows, correct rows, and the class, in each group: of all rows, or of the points. */
  #counts({ names, group, counts }) {
    const { session, label } = this, { K } = session;
    if (counts && !session.edited && session.choice.model !== "logistic") {
      return names.map((_, g) => {
        const sum = (values) => values[g].reduce((a, b) => a + b, 0);
        return { rows: sum(counts.rows), correct: sum(counts.correct), own: counts.rows[g][label],
          hit: counts.correct[g][label], expected: counts.probability[g][label] };
      });
    }
    const result = names.map(() => ({ rows: 0, correct: 0, own: 0, hit: 0, expected: 0, points: [] }));
    const place = new Map(Array.from(session.original.numbers, (number, i) => [number, i]));
    const predicted = session.predicted;
    for (let i = 0; i < session.n; i++) {
      if (session.numbers[i] < 0) continue; // points that were added or changed are in no group
      const cell = result[group[place.get(session.numbers[i])]], own = session.codes[i] === label, right = predicted[i] === session.codes[i];
      cell.rows++;
      cell.correct += right;
      cell.own += own;
      cell.hit += own && right;
      cell.expected += Math.exp(session.logs[i * K + label]);
      cell.points.push(i);
    }
    return result;
  }

  #draw(known, updating) {
    const { session, label } = this, cells = this.#counts(known), calibrated = session.has("decision");
    const all = cells.reduce((sum, { rows, correct }) => [sum[0] + rows, sum[1] + correct], [0, 0]);
    const overall = all[0] ? 1 - all[1] / all[0] : 0;
    const high = Math.max(...cells.map(({ rows, correct }) => (rows ? wilson(rows - correct, rows)[1] : 0)), 0.01);
    byId("slice-note").textContent = `Error overall: ${percent(overall)} of ${whole(all[0])}.${updating ? " Updating …" : ""}`;
    byId("slices").replaceChildren(h("table", { class: "numbers" },
      h("caption", { class: "unseen" }, `Error by ${known.column}`),
      h("thead", {}, h("tr", {}, ["Group", "Rows", "Error", "95% interval", "Error and interval", `Recall of ${session.labels[label]}`,
        ...(calibrated ? [`Mean probability of ${session.labels[label]}`, "Observed share"] : [])].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, cells.map((cell, g) => {
        if (!cell.rows) return null;
        const wrong = cell.rows - cell.correct, [a, b] = wilson(wrong, cell.rows);
        const name = h("bdi", {}, known.names[g]);
        return h("tr", {},
          h("th", { scope: "row" }, cell.points ? h("button", { type: "button", class: "plain", onclick: () => this.select(cell.points) }, name) : name),
          h("td", {}, whole(cell.rows)), h("td", {}, percent(wrong / cell.rows)), h("td", {}, `${percent(a)} to ${percent(b)}`),
          h("td", {}, interval(a, wrong / cell.rows, b, overall, high)),
          h("td", {}, cell.own ? (cell.own < 30 ? `${cell.hit} of ${cell.own}` : percent(cell.hit / cell.own)) : "–"),
          ...(calibrated ? [h("td", {}, percent(cell.expected / cell.rows)), h("td", {}, percent(cell.own / cell.rows))] : []));
      }))));
  }

  async #drift(file) {
    if (!file) return;
    const note = byId("drift-note");
    note.textContent = "Reading …";
    byId("drift").replaceChildren();
    try {
      const { upload: number } = await upload(file, file.name);
      this.#drawDrift(await post(`/api/tables/${this.session.facts.id}/drift`, { source: { upload: number } }));
    } catch (error) {
      note.textContent = error.message;
    }
  }

  #drawDrift({ name, rows, p, d2, features }) {
    const level = 0.05 / features.length, moved = features.filter((each) => each.p < level);
    byId("drift-note").textContent = `${name}: ${count(rows[1], "row")}, compared with ${whole(rows[0])}. ` +
      (p === null ? "The features are linearly dependent, so that they have no joint test; each is tested on its own."
        : p < 0.05 ? `The means differ (Hotelling's T², p ${p < 0.001 ? "< 0.001" : number(p, 2)}); squared Mahalanobis distance ${number(d2)}.`
        : `The means do not differ significantly (Hotelling's T², p ${number(p, 2)}).`) +
      (p === null || p < 0.05 ? ` ${moved.length} of ${count(features.length, "feature")} differ on their own (Bonferroni).` : "");
    const most = Math.max(...features.map(({ effect }) => Math.abs(effect)), 1e-9);
    byId("drift").replaceChildren(h("table", { class: "numbers" }, h("caption", { class: "unseen" }, "Features by their drift"),
      h("thead", {}, h("tr", {}, ["Feature", "Change of the mean", "In standard deviations", "Size"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, features.slice(0, 20).map((each) => h("tr", {},
        h("th", { scope: "row" }, h("bdi", {}, each.feature)), h("td", {}, number(each.difference)), h("td", {}, number(each.effect, 2)),
        h("td", {}, shift(each.effect / most)))))));
  }
}

function interval(low, value, high, overall, most) {
  const at = (share) => `${Math.min((100 * share) / most, 100)}%`;
  const element = h("span", { class: "interval", "aria-hidden": "true" }, h("i", {}), h("b", {}), h("u", {}));
  const [range, middle, guide] = element.children;
  range.style.left = at(low);
  range.style.width = `${Math.min((100 * (high - low)) / most, 100)}%`;
  middle.style.left = at(value);
  guide.style.left = at(overall);
  return element;
}

function shift(value) {
  const element = h("span", { class: "bar both k0", "aria-hidden": "true" }, h("i", {})), size = 50 * Math.abs(value);
  element.firstChild.style.width = `${size}%`;
  element.firstChild.style.marginLeft = `${value >= 0 ? 50 : 50 - size}%`;
  return element;
}
