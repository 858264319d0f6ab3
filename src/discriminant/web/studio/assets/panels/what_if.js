/** What if: one row, changed value by value; why the model decides so, and what would change it. */

import { byId, colourOf, h, mark, number, percent, rounded } from "../elements.js";
import { MomentsError, REJECT, decide, smallestChange } from "../moments.js";

const SHOWN = 40; // columns with a field of their own

export class WhatIf {
  constructor(session) {
    this.session = session;
    this.root = byId("what-if");
  }

  /** Explain a point, or an average row. */
  open(point) {
    const { session } = this;
    const row = point === null ? this.#average() : session.row(point).slice();
    session.current = { point: point ?? undefined, row, start: row.slice(), changed: false };
    this.built = false;
    session.changed();
  }

  #average() {
    const { moments, d } = this.session, centre = moments.centre();
    return Float64Array.from({ length: d }, (_, j) => centre[j] + moments.origin[j]);
  }

  #set(places, values) {
    const { current } = this.session;
    places.forEach((j, p) => { current.row[j] = values[p]; });
    current.changed = current.row.some((value, j) => value !== current.start[j]);
    this.session.changed();
  }

  #build() {
    const { session } = this, { current } = session;
    this.built = true;
    const off = new Set(session.choice.off), columns = session.columns.filter(({ name }) => !off.has(name));
    this.fields = columns.slice(0, SHOWN).map((column) => this.#field(column));
    this.root.replaceChildren(
      h("div", { class: "columns" },
        h("section", {}, h("h2", {}, current.point === undefined ? "The average row" : `Point ${current.point + 1}`),
          h("p", { class: "small" }, "Change a value and watch the marker in the space and the probabilities follow. The rows of the table do not change."),
          h("div", { class: "fields" }, this.fields.map(({ element }) => element)),
          columns.length > SHOWN ? h("p", { class: "small" }, `The first ${SHOWN} of ${columns.length} columns.`) : null,
          h("div", { class: "buttons" },
            h("button", { type: "button", onclick: () => {
              current.row.set(current.start);
              current.changed = false;
              session.changed();
            } }, "As it was"),
            h("button", { type: "button", onclick: () => this.open(null) }, "Average row"))),
        h("section", {}, h("h2", {}, "Prediction"), h("div", { id: "prediction" }),
          h("h3", {}, "Why"), h("p", { id: "why-about", class: "small" }), h("div", { id: "why" }),
          h("h3", {}, "What would change it"), h("p", { id: "flip" }), h("div", { id: "flip-buttons", class: "buttons" }))));
  }

  #field(column) {
    const { session } = this, { name, kind, places, levels, reference } = column, id = `field-${places[0]}`;
    if (kind === "category" && levels.length) {
      const shown = levels.filter((level) => level !== reference);
      const select = h("select", { id, onchange: (event) =>
        this.#set(places.slice(0, shown.length), shown.map((level) => (level === event.target.value ? 1 : 0))) },
      levels.map((level) => h("option", { value: level }, level)));
      return { element: h("div", { class: "field" }, h("label", { for: id }, h("bdi", {}, name)), select),
        show: (row) => { select.value = shown.find((_, p) => row[places[p]] === 1) ?? reference ?? levels[0]; } };
    }
    const [j] = places, [low, high] = this.#range(j);
    const box = h("input", { type: "number", id, step: "any", onchange: (event) => this.#set([j], [Number(event.target.value)]) });
    const slide = h("input", { type: "range", min: String(low), max: String(high), step: String((high - low) / 200 || 1),
      "aria-label": `${name}, slider`, oninput: (event) => this.#set([j], [rounded(Number(event.target.value), 4)]) });
    return { element: h("div", { class: "field" }, h("label", { for: id }, h("bdi", {}, name)), box, slide),
      show: (row) => {
        if (document.activeElement !== box) box.value = String(rounded(row[j], 6));
        if (document.activeElement !== slide) slide.value = String(row[j]);
      } };
  }

  #range(j) {
    const { session } = this;
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < session.n; i++) {
      const value = session.rows[i * session.d + j];
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    const room = (high - low) * 0.1 || 1;
    return [low - room, high + room];
  }

  update(visible) {
    const { session } = this;
    if (!visible) return;
    if (!session.current) {
      this.built = false;
      this.root.replaceChildren(h("p", {}, "Click a point in the space, or start with the average row."),
        h("button", { type: "button", onclick: () => this.open(null) }, "Average row"));
      return;
    }
    const key = session.choice.off.join("\n");
    if (!this.built || this.offKey !== key) this.#build();
    this.offKey = key;
    const { row } = session.current;
    this.fields.forEach(({ show }) => show(row));
    if (!session.rule) return;
    this.#predict(row);
  }

  #predict(row) {
    const { session } = this, { K, labels } = session, logs = session.logPosteriorOf(row);
    const { cost, reject } = session.choice, decides = session.has("decision");
    const [action] = decide(logs, K, decides ? { cost: cost && cost.flat(), reject: reject === null ? null : { cost: reject } } : {});
    const order = [...logs.keys()].sort((a, b) => logs[b] - logs[a]), [first, second] = order;
    byId("prediction").replaceChildren(
      h("p", { class: "decision" }, action === REJECT ? "Passed to a person" : [mark(action, 18), " ", h("bdi", {}, labels[action])]),
      h("ul", { class: "bars" }, order.slice(0, 8).map((k) => h("li", {},
        h("span", { class: "name" }, mark(k, 12), " ", h("bdi", {}, labels[k])),
        bar(Math.exp(logs[k]), colourOf(k)), h("span", { class: "value" }, percent(Math.exp(logs[k])))))));
    const parts = this.#contributions(row, first, second);
    const most = Math.max(...parts.map(({ value }) => Math.abs(value)), 1e-12);
    byId("why-about").textContent =
      `How much each column speaks for “${labels[first]}” (right) or “${labels[second]}” (left), in log odds, compared with the average row.`;
    byId("why").replaceChildren(h("ul", { class: "bars signed" }, parts.slice(0, 10).map(({ name, value }) => h("li", {},
      h("span", { class: "name" }, h("bdi", {}, name)), signedBar(value / most, colourOf(value >= 0 ? first : second)),
      h("span", { class: "value" }, number(value, 2))))));
    this.#flip(row, first);
  }

  /** Change of the log odds if a column is set to its average, for the most probable classes. */
  #contributions(row, first, second) {
    const { session } = this, average = this.#average(), odds = (logs) => logs[first] - logs[second];
    const here = odds(session.logPosteriorOf(row)), off = new Set(session.choice.off);
    return session.columns.filter(({ name }) => !off.has(name)).map(({ name, places }) => {
      const other = Float64Array.from(row);
      places.forEach((j) => { other[j] = average[j]; });
      return { name, value: here - odds(session.logPosteriorOf(other)) };
    }).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  }

  #flip(row, first) {
    const { session } = this, { labels, used } = session, sentence = byId("flip"), buttons = byId("flip-buttons");
    const lines = [], actions = [], apply = (target) => () => this.#set([...target.keys()], [...target]);
    const scale = used.map((_, p) => Math.sqrt(session.spread.within[p * used.length + p]) || 1);
    if (session.rule.coef && session.degree === 1 && !(session.choice.model === "logistic" && session.choice.prior)) {
      try {
        const change = smallestChange(session.rule, session.selectUsed(row), { scale });
        if (change) {
          const target = Float64Array.from(row);
          used.forEach((j, p) => { target[j] = change.row[p]; });
          lines.push(`The smallest change of all columns together leads to “${labels[change.after]}”: ${number(change.size, 2)} standard deviations.`);
          actions.push(h("button", { type: "button", onclick: apply(target) }, `To the boundary with ${labels[change.after]}`));
        }
      } catch (error) {
        if (!(error instanceof MomentsError)) throw error;
        lines.push(error.message);
      }
    }
    const single = this.#singleFlip(row, first, scale);
    if (single) {
      const { j, value, to, size } = single, target = Float64Array.from(row);
      target[j] = value;
      lines.push(`The nearest change of one column: ${session.features[j]} from ${number(row[j], 4)} to ${number(value, 4)} (${number(size, 2)} standard deviations) leads to “${labels[to]}”.`);
      actions.push(h("button", { type: "button", onclick: apply(target) }, `Change ${session.features[j]}`));
    } else lines.push("No change of a single number of up to 8 standard deviations changes the prediction.");
    sentence.textContent = lines.join(" ");
    if (!buttons.contains(document.activeElement)) buttons.replaceChildren(...actions);
  }

  /** The smallest change of one number that changes the most probable class, by a search in both directions. */
  #singleFlip(row, first, scale) {
    const { session } = this, { used, K } = session, steps = 33, reach = 8;
    const numbers = new Set(session.columns.filter(({ kind }) => kind !== "category").flatMap(({ places }) => places));
    const best = (logs, at) => { let k = 0; for (let l = 1; l < K; l++) if (logs[at + l] > logs[at + k]) k = l; return k; };
    let nearest = null;
    used.forEach((j, p) => {
      if (!numbers.has(j)) return;
      for (const sign of [1, -1]) {
        const limit = Math.min(reach, nearest?.size ?? reach), table = new Float64Array(steps * session.d);
        for (let i = 0; i < steps; i++) {
          table.set(row, i * session.d);
          table[i * session.d + j] += (sign * scale[p] * limit * (i + 1)) / steps;
        }
        const logs = session.logPosteriorOf(table);
        let i = 0;
        while (i < steps && best(logs, i * K) === first) i++;
        if (i === steps) continue;
        let low = (limit * i) / steps, high = (limit * (i + 1)) / steps, to = best(logs, i * K);
        for (let halving = 0; halving < 24; halving++) {
          const middle = (low + high) / 2, tried = Float64Array.from(row);
          tried[j] += sign * scale[p] * middle;
          const k = best(session.logPosteriorOf(tried), 0);
          if (k === first) low = middle;
          else [high, to] = [middle, k];
        }
        if (!nearest || high < nearest.size) nearest = { j, value: row[j] + sign * scale[p] * high, to, size: high };
      }
    });
    return nearest;
  }
}

function bar(value, colour) {
  const element = h("span", { class: `bar k${colour}` }, h("i", {}));
  element.firstChild.style.width = `${100 * Math.min(Math.max(value, 0), 1)}%`;
  return element;
}

function signedBar(value, colour) {
  const element = h("span", { class: `bar both k${colour}` }, h("i", {})), size = 50 * Math.min(Math.abs(value), 1);
  element.firstChild.style.width = `${size}%`;
  element.firstChild.style.marginLeft = `${value >= 0 ? 50 : 50 - size}%`;
  return element;
}
