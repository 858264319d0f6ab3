/** Decide: the confusion matrix, and curves of one class against the others. */

import { byId, colourOf, count, h, mark, number, percent, whole } from "../elements.js";
import { chart, unit } from "../charts.js";
import { totals, wilson } from "../measures.js";
import { post } from "../server.js";
import { REJECT } from "../moments.js";

const share = (value) => percent(value, 0);
const WAIT = 250; // milliseconds without a change, after which the server counts
const PAUSE = 2000; // milliseconds after a failed count, after which the next change asks again

export class Decide {
  constructor(session, { select }) {
    this.session = session;
    this.select = select;
    this.label = hardest(session);
    this.threshold = 0.5;
    this.exact = null;
    this.root = byId("decide");
    this.root.replaceChildren(
      h("div", { class: session.K > 3 ? "columns many" : "columns" },
        h("section", {}, h("h2", {}, "Confusion matrix"), h("p", { id: "confusion-about", class: "small" }),
          h("div", { id: "confusion", class: "scroll" }), h("p", { id: "confusion-note", class: "small" })),
        h("section", {}, h("h2", {}, "One class against the others"),
          h("div", { class: "buttons" }, h("label", { class: "inline" }, "Class ", h("select", { id: "own-class",
            onchange: (event) => { this.label = Number(event.target.value); this.exact = null; session.changed(); } },
          session.labels.map((label, k) => h("option", { value: String(k), selected: k === this.label }, label))))),
          h("div", { class: "dial" }, h("label", { for: "threshold" }, "Threshold on its probability"),
            h("output", { id: "threshold-value", for: "threshold" }),
            h("input", { type: "range", id: "threshold", min: "0", max: "1", step: "0.01", value: "0.5",
              oninput: (event) => { this.threshold = Number(event.target.value); this.draw(); } })),
          h("p", { id: "threshold-about", class: "small" }))),
      h("div", { id: "curves", class: "curves" }));
  }

  /** Measures of all rows, from the server; those of the points until they arrive. */
  measures(visible) {
    const { session } = this;
    const own = visible ? session.measures(this.label) : session.summary();
    if (session.complete || session.choice.model === "logistic") return { ...own, updating: session.updating };
    const body = { model: modelOf(session), edits: session.edits(), label: session.labels[this.label] };
    const key = JSON.stringify(body);
    if (this.exact?.key === key) return this.exact.value;
    if (this.failed?.key === key && performance.now() < this.failed.until) return { ...own, updating: false, failure: this.failed.message };
    if (this.asked !== key) {
      this.asked = key;
      clearTimeout(this.waiting);
      this.asking?.abort();
      this.waiting = setTimeout(() => this.#count(key, body), WAIT);
    }
    return { ...own, updating: true };
  }

  async #count(key, body) {
    this.asking = new AbortController();
    try {
      const answer = await post(`/api/tables/${this.session.facts.id}/evaluate`, body, this.asking.signal);
      if (this.asked !== key) return;
      const { K } = this.session, confusion = [...answer.confusion];
      while (confusion.length < K + 1) confusion.push(new Array(K).fill(0));
      const value = { ...answer, confusion, totals: totals(confusion, K), of: "rows", updating: false };
      this.exact = { key, value };
      this.session.changed();
    } catch (error) {
      if (error.name === "AbortError" || this.asked !== key) return;
      this.failed = { key, message: error.message, until: performance.now() + PAUSE };
      this.asked = null;
      this.session.changed();
    }
  }

  /** The measures in a sentence beside the space, and the panel if it is open. */
  update(visible) {
    const { session } = this;
    if (!session.logs) {
      this.current = null;
      byId("error").textContent = "–";
      byId("error-about").textContent = session.problem ?? session.problemOfWorker ?? "Fitting …";
      return;
    }
    this.current = this.measures(visible);
    const { totals: sums, updating, of } = this.current, [low, high] = wilson(sums.wrong, sums.decided);
    byId("error").textContent = percent(sums.error);
    byId("error").classList.toggle("updating", updating);
    const sampled = session.facts.partial && sums.rows < session.facts.rows;
    const how = of === "points" ? session.howPredicted
      : `${sampled ? "a sample of the rows, " : ""}by the model fitted to all rows`;
    const rejected = sums.rejected ? `; ${count(sums.rejected, "row")} (${percent(sums.rejected / sums.rows)}) passed to a person` : "";
    const mean = this.#meanCost(), cost = mean === null ? "" : `; mean cost ${number(mean)}`;
    byId("error-about").textContent =
      `${whole(sums.wrong)} of ${count(sums.decided, of === "rows" ? "row" : "point")} misclassified, 95% interval ${percent(low)} to ${percent(high)}${rejected}${cost} (${how})` +
      `${updating ? " — updating" : ""}`;
    if (visible) this.draw();
  }

  /** Mean cost of the decisions; null if every error costs 1 and no row is passed on. */
  #meanCost() {
    const { session } = this, { cost, reject } = session.choice, { confusion, totals: sums } = this.current, { K } = session;
    if (!session.has("decision") || (!cost && reject === null) || !sums.rows) return null;
    let total = 0;
    confusion.forEach((row, a) => row.forEach((n, k) => {
      total += n * (a === K ? reject ?? 0 : cost ? cost[a][k] : Number(a !== k));
    }));
    return total / sums.rows;
  }

  draw() {
    if (!this.current) return;
    this.#confusion();
    this.#curves();
  }

  #confusion() {
    const { session, current } = this, { K, labels, selection } = session, { confusion } = current;
    const most = Math.max(...confusion.flat(), 1), rejects = session.has("decision") && session.choice.reject !== null;
    const actions = [...Array(K).keys(), ...(rejects ? [K] : [])];
    const selected = (a, k) => [...selection].filter((i) => session.codes[i] === k && session.actions[i] === (a === K ? REJECT : a)).length;
    byId("confusion-about").textContent = "Rows: decision. Columns: true class. Click a cell to see its points in the space.";
    const layout = `${rejects} ${labels.join("\n")}`;
    if (this.layout !== layout || !byId("confusion").firstChild) this.#layOut(layout, actions);
    for (const a of actions) {
      for (let k = 0; k < K; k++) {
        const { cell, button, text, small } = this.cells[a][k], n = confusion[a][k];
        const chosen = selection.size ? selected(a, k) : 0, strength = Math.round(10 * Math.sqrt(n / most));
        const state = `${n} ${chosen} ${strength}`;
        if (this.cells[a][k].state === state) continue;
        this.cells[a][k].state = state;
        cell.className = `${a === k ? "right" : "wrong"} s${strength}`;
        text.data = whole(n);
        small.textContent = chosen ? ` ${chosen} selected` : "";
        small.hidden = !chosen;
        button.setAttribute("aria-label", `${whole(n)} of true class ${labels[k]}, ${a === K ? "passed to a person" : `decided ${labels[a]}`}`);
      }
    }
    this.recalls.forEach((cell, k) => {
      const column = actions.reduce((sum, a) => sum + confusion[a][k], 0);
      cell.textContent = column ? percent(confusion[k][k] / column) : "–";
    });
    const { log_loss: loss } = current;
    byId("confusion-note").textContent =
      `${current.of === "rows" ? count(current.rows, "row") : count(current.rows, "point")}.` +
      `${loss === null || loss === undefined ? "" : ` Log loss ${number(loss)}: lower is better, 0 is certain and right.`}` +
      `${current.updating ? " Updating …" : ""}${current.failure ? ` All rows could not be counted: ${current.failure}` : ""}`;
  }

  /** An empty matrix; `cells` and `recalls` are filled in. */
  #layOut(layout, actions) {
    const { K, labels } = this.session;
    this.layout = layout;
    this.cells = actions.map((a) => labels.map((_, k) => {
      const text = document.createTextNode(""), small = h("small", { hidden: true });
      const button = h("button", { type: "button", onclick: () => this.select(this.#pointsOf(a, k)) }, text, small);
      return { cell: h("td", {}, button), button, text, small };
    }));
    this.recalls = labels.map(() => h("td"));
    byId("confusion").replaceChildren(h("table", { class: "confusion" },
      h("caption", { class: "unseen" }, "Confusion matrix"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Decision"),
        labels.map((label, k) => h("th", { scope: "col" }, mark(k, 12), " ", h("bdi", {}, label))))),
      h("tbody", {}, actions.map((a) => h("tr", {},
        h("th", { scope: "row" }, a === K ? "to a person" : [mark(a, 12), " ", h("bdi", {}, labels[a])]),
        this.cells[a].map(({ cell }) => cell)))),
      h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Recall"), this.recalls))));
  }

  #pointsOf(a, k) {
    const { session } = this, wanted = a === session.K ? REJECT : a, points = [];
    for (let i = 0; i < session.n; i++) if (session.codes[i] === k && session.actions[i] === wanted) points.push(i);
    return points;
  }

  #curves() {
    const { current, threshold, session } = this, { curve, reliability } = current, k = this.label;
    const drawn = [curve, reliability, current.certainty, threshold, k];
    if (this.drawn?.every((value, i) => value === drawn[i])) return;
    this.drawn = drawn;
    const line = `line k${colourOf(k)}`, figures = [];
    byId("threshold-value").textContent = percent(threshold, 0);
    if (curve) {
      let at = 0;
      while (at + 1 < curve.threshold.length && curve.threshold[at + 1] >= threshold) at++;
      const [fpr, tpr] = [curve.fpr[at], curve.tpr[at]];
      const precision = (i) => {
        const tp = curve.tpr[i] * curve.positive, fp = curve.fpr[i] * curve.negative;
        return tp + fp > 0 ? tp / (tp + fp) : 1;
      };
      byId("threshold-about").textContent =
        `“${session.labels[k]}” if its probability is at least ${percent(threshold, 0)}: recall ${percent(tpr)}, precision ${percent(precision(at))}, ` +
        `false positive rate ${percent(fpr)}.`;
      figures.push(figure(`ROC curve, area ${number(curve.auc, 4)}`,
        "Every threshold at once: how many rows of the class are recognised, at the price of how many false alarms.",
        chart({ label: `ROC curve of ${session.labels[k]}, area ${number(curve.auc)}`,
          x: { ...unit, title: "False positive rate", format: share }, y: { ...unit, title: "Recall", format: share },
          lines: [{ class: "guide", points: [[0, 0], [1, 1]] }, { class: line, points: curve.fpr.map((x, i) => [x, curve.tpr[i]]) }],
          dots: [{ at: [fpr, tpr], r: 5, class: "here" }] })));
      const points = curve.tpr.map((x, i) => [x, precision(i)]).slice(1), base = curve.positive / (curve.positive + curve.negative);
      figures.push(figure("Precision and recall", "Of the rows called by the class, how many are right. Dashed: calling every row so.",
        chart({ label: `Precision and recall of ${session.labels[k]}`,
          x: { ...unit, title: "Recall", format: share }, y: { ...unit, title: "Precision", format: share },
          lines: [{ class: "guide", points: [[0, base], [1, base]] }, { class: line, points }],
          dots: at ? [{ at: [tpr, precision(at)], r: 5, class: "here" }] : [] })));
      figures.push(figure("Cost curve", "The lowest expected cost as the class becomes more frequent or more costly to miss. Dashed: always the cheaper constant decision.",
        chart({ label: `Cost curve of ${session.labels[k]}`,
          x: { ...unit, title: "Weight of the class (share × cost)", format: share }, y: { low: 0, high: 0.5, title: "Expected cost", format: (v) => number(v, 2) },
          lines: [{ class: "guide", points: [[0, 0], [0.5, 0.5], [1, 0]] }, { class: line, points: costCurve(curve) }] })));
    } else byId("threshold-about").textContent = "This class has no rows, or all of them.";
    if (reliability) {
      const most = Math.max(...reliability.map(({ weight }) => weight));
      figures.push(figure("Reliability", "Of the rows given a probability, how many were of the class. On the diagonal, probabilities can be taken at their word.",
        chart({ label: `Reliability of the probability of ${session.labels[k]}`,
          x: { ...unit, title: "Predicted probability", format: share }, y: { ...unit, title: "Observed share", format: share },
          lines: [{ class: "guide", points: [[0, 0], [1, 1]] }, { class: line, points: reliability.map(({ predicted, observed }) => [predicted, observed]) }],
          dots: reliability.map(({ predicted, observed, weight, rows }) => ({
            at: [predicted, observed], r: 3 + 6 * Math.sqrt(weight / most), class: `dot k${colourOf(k)}`,
            title: `${count(weight, "row")}: predicted ${percent(predicted)}, observed ${percent(observed)}`,
            onclick: rows ? () => this.select(rows) : null })) })));
      figures.push(figure("Rows passed to a person", "If the least certain rows are passed on, how many of the others are misclassified.",
        this.#passing()));
    }
    byId("curves").replaceChildren(...figures);
  }

  #passing() {
    const { rows, wrong } = this.current.certainty, total = rows.reduce((a, b) => a + b, 0) || 1, points = [];
    let left = 0, errors = 0;
    for (let b = rows.length - 1; b >= 0; b--) {
      left += rows[b];
      errors += wrong[b];
      if (rows[b]) points.push([1 - left / total, errors / left]);
    }
    const high = Math.max(...points.map(([, y]) => y), 0.01) * 1.1, sums = this.current.totals;
    const here = sums.rejected && sums.decided ? [{ at: [sums.rejected / sums.rows, Math.min(sums.error, high)], r: 5, class: "here" }] : [];
    return chart({ label: "Error of the rows that are decided, against the share passed to a person",
      x: { ...unit, title: "Share passed to a person", format: share }, y: { low: 0, high, title: "Error of the others", format: (v) => percent(v, 1) },
      lines: [{ class: "line ink", points }], dots: here });
  }
}

/** The class of which the smallest share is predicted correctly. */
function hardest({ confusion, K }) {
  let hard = 0, least = 2;
  for (let k = 0; confusion && k < K; k++) {
    const rows = confusion.reduce((sum, row) => sum + row[k], 0), recall = rows ? confusion[k][k] / rows : 2;
    if (recall < least) [hard, least] = [k, recall];
  }
  return hard;
}

/** Lower envelope of the expected cost over all thresholds (Drummond and Holte). */
function costCurve({ fpr, tpr }) {
  const hull = []; // only corners of the convex hull of the ROC curve can have the lowest cost
  for (let i = 0; i < fpr.length; i++) {
    const above = () => {
      const [a, b] = hull.slice(-2);
      return (fpr[b] - fpr[a]) * (tpr[i] - tpr[a]) >= (tpr[b] - tpr[a]) * (fpr[i] - fpr[a]);
    };
    while (hull.length > 1 && above()) hull.pop();
    hull.push(i);
  }
  return Array.from({ length: 61 }, (_, step) => {
    const w = step / 60;
    return [w, Math.min(...hull.map((i) => (1 - tpr[i]) * w + fpr[i] * (1 - w)))];
  });
}

function figure(title, about, body) {
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title), h("span", { class: "small" }, about)), body);
}

/** The model as the server takes it. */
export function modelOf(session) {
  const { model, pooling, shrinkage, ridge, prior, cost, reject, off } = session.choice;
  return { model, degree: session.degree, pooling, shrinkage, ridge, prior, cost, reject, off };
}
