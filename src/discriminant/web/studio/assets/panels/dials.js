/** The dials: model, hyperparameters, priors, costs, rejection, features. */

import { byId, count, h, mark, number, percent, rounded } from "../elements.js";
import { MODELS } from "../model.js";
import { post } from "../server.js";

const MANY = 8; // classes beyond which costs and priors are folded

export class Dials {
  constructor(session) {
    this.session = session;
    this.surface = null;
    const { K, labels } = session;
    const scale = this.ridgeScale();
    this.root = byId("dials");
    this.root.replaceChildren(
      section("Model", null,
        h("label", { class: "unseen", for: "model" }, "Model"),
        h("select", { id: "model", class: "wide", onchange: (event) => this.set({ model: event.target.value }) },
          Object.entries(MODELS).map(([id, { title }]) => h("option", { value: id }, title))),
        h("p", { id: "model-about", class: "small" }),
        h("label", { class: "check", id: "dial-degree" }, h("input", { type: "checkbox", id: "degree",
          onchange: (event) => this.set({ degree: event.target.checked ? 2 : 1 }) }), "Add squares and products of the features"),
        this.slider("pooling", "Pooling", 0, 1, 0.01, "0: each class has its own covariance (QDA). 1: one for all (LDA)."),
        this.slider("shrinkage", "Shrinkage", 0, 1, 0.01, "Moves covariances toward their diagonal. Helps with few rows or correlated features."),
        this.slider("ridge", "Penalty", -4, 3, 0.05, "Pulls the coefficients toward zero.",
          { to: (value) => rounded(10 ** value * scale(), 3), from: (value) => Math.log10(Math.max(value, 1e-12) / scale()) }),
        h("div", { id: "plane", hidden: true },
          h("canvas", { id: "surface", width: 264, height: 264, tabindex: "0", role: "slider",
            "aria-label": "Plane of pooling and shrinkage: arrow keys move", "aria-valuemin": "0", "aria-valuemax": "1", "aria-valuenow": "0" }),
          h("p", { id: "plane-about", class: "small" }),
          h("button", { type: "button", id: "best", hidden: true }, "Go to the minimum"))),
      this.priors = section("Priors", "How frequent each class is where the model will be used.",
        h("div", { class: "buttons" },
          h("button", { type: "button", onclick: () => this.set({ prior: null }) }, "As in the data"),
          h("button", { type: "button", onclick: () => this.set({ prior: new Array(K).fill(1 / K) }) }, "Equal")),
        labels.map((label, k) => h("div", { class: "dial" },
          h("label", { for: `prior-${k}` }, mark(k, 12), " ", h("bdi", {}, label)),
          h("output", { for: `prior-${k}`, id: `prior-value-${k}` }),
          h("input", { type: "range", id: `prior-${k}`, min: "0.001", max: "0.999", step: "0.001",
            oninput: (event) => this.setPrior(k, Number(event.target.value)) })))),
      this.costs = section("Costs", "What each error costs, relative to the others.",
        K <= MANY ? h("div", { class: "scroll" }, h("table", { class: "costs" },
          h("caption", { class: "unseen" }, "Cost of each decision for each true class"),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Decision"), labels.map((label, k) =>
            h("th", { scope: "col", title: `true class ${label}` }, mark(k, 12), h("span", { class: "unseen" }, `true class ${label}`))))),
          h("tbody", {}, labels.map((action, a) => h("tr", {},
            h("th", { scope: "row" }, mark(a, 12), " ", h("bdi", {}, action)),
            labels.map((label, k) => h("td", {}, a === k ? "0"
              : h("input", { type: "number", min: "0", step: "any", id: `cost-${a}-${k}`,
                "aria-label": `Cost of deciding ${action} if the class is ${label}`,
                oninput: () => this.setCosts() })))))))) : h("p", { class: "small" }, `With ${K} classes every error costs 1.`),
        h("label", { class: "check" }, h("input", { type: "checkbox", id: "rejects",
          onchange: (event) => this.set({ reject: event.target.checked ? 0.2 : null }) }),
        "Pass uncertain rows to a person"),
        this.slider("reject", "Cost of passing on", 0, 1, 0.01,
          "A row is passed on if the expected cost of every decision is higher than this.")),
      this.features = section("Features", "Leave a column out, and see what it was worth.",
        h("div", { class: "buttons" },
          h("button", { type: "button", onclick: () => this.set({ off: [] }) }, "All"),
          h("span", { id: "features-count", class: "small" })),
        h("div", { id: "columns-on", class: "list" }, session.columns.map(({ name, kind, features }) =>
          h("label", { class: "check" },
            h("input", { type: "checkbox", checked: true, onchange: () => this.setFeatures() , value: name }),
            h("bdi", {}, name), kind === "category" ? h("span", { class: "small" }, ` ${count(features.length + 1, "level")}`) : null)))),
    );
    this.#plane();
  }

  /** Penalties of least squares are in units of the features: their mean sum of squares. */
  ridgeScale() {
    return () => {
      const { session } = this;
      if (session.choice.model !== "ridge") return 1;
      const scatter = session.moments.pooled(), d = session.d;
      let sum = 0;
      for (let j = 0; j < d; j++) sum += scatter[j * d + j] / d;
      return sum || 1;
    };
  }

  slider(name, title, min, max, step, about, { to = Number, from = Number } = {}) {
    this.from = { ...this.from, [name]: from };
    return h("div", { class: "dial", id: `dial-${name}` },
      h("label", { for: name }, title), h("output", { for: name, id: `${name}-value` }),
      h("input", { type: "range", id: name, min: String(min), max: String(max), step: String(step),
        oninput: (event) => this.set({ [name]: to(Number(event.target.value)) }) }),
      h("p", { class: "small" }, about));
  }

  set(change) {
    this.session.choose(change);
  }

  /** Set one prior; the others keep their proportions. */
  setPrior(k, value) {
    const { session } = this, before = session.choice.prior ?? this.shares(), rest = 1 - before[k];
    const scale = rest > 0 ? (1 - value) / rest : 0;
    const prior = before.map((other, l) => Math.max(l === k ? value : other * scale, 1e-4));
    const total = prior.reduce((a, b) => a + b, 0), digits = 1e4;
    const shares = prior.map((each) => Math.max(Math.round((each / total) * digits), 1));
    shares[shares.indexOf(Math.max(...shares))] += digits - shares.reduce((a, b) => a + b, 0); // the sum is one
    this.set({ prior: shares.map((each) => each / digits) });
  }

  shares() {
    const { weight } = this.session.usedMoments, total = weight.reduce((a, b) => a + b, 0);
    return Array.from(weight, (value) => Math.max(value / total, 1e-9));
  }

  setCosts() {
    const { K } = this.session;
    const cost = Array.from({ length: K }, (_, a) => Array.from({ length: K }, (_, k) =>
      (a === k ? 0 : Math.max(Number(byId(`cost-${a}-${k}`).value) || 0, 0))));
    const plain = cost.every((row, a) => row.every((value, k) => value === (a === k ? 0 : 1)));
    this.set({ cost: plain ? null : cost });
  }

  setFeatures() {
    const boxes = [...byId("columns-on").querySelectorAll("input")], off = boxes.filter((box) => !box.checked).map((box) => box.value);
    this.shownOff = null;
    if (off.length < boxes.length) this.set({ off });
    else this.update();
  }

  // --- the plane of pooling and shrinkage ---

  #plane() {
    const canvas = byId("surface"), { session } = this;
    const place = (event) => {
      const box = canvas.getBoundingClientRect(), unit = (value) => rounded(Math.min(Math.max(value, 0), 1), 3);
      const x = Math.round(unit((event.clientX - box.left) / box.width) * 100) / 100;
      const y = Math.round(unit(1 - (event.clientY - box.top) / box.height) * 100) / 100;
      this.set({ model: "rda", pooling: x, shrinkage: y });
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      place(event);
    });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons & 1) place(event); });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!step) return;
      event.preventDefault();
      const move = (value, by) => Math.round(Math.min(Math.max(value + by * 0.02, 0), 1) * 100) / 100;
      this.set({ model: "rda", pooling: move(session.choice.pooling, step[0]), shrinkage: move(session.choice.shrinkage, step[1]) });
    });
    byId("best").addEventListener("click", () => {
      const [pooling, shrinkage] = this.surface.best;
      this.set({ model: "rda", pooling, shrinkage });
    });
  }

  async #fetchSurface(key) {
    this.surfaceKey = key;
    this.surface = null;
    const { facts, choice } = this.session, { off, prior } = choice;
    byId("plane-about").textContent = "Computing the cross-validation error …";
    try {
      const surface = await post(`/api/tables/${facts.id}/surface`, { model: { model: "rda", off, prior } });
      if (this.surfaceKey !== key) return;
      this.surface = surface;
    } catch (error) {
      if (this.surfaceKey === key) byId("plane-about").textContent = error.message;
      return;
    }
    this.update();
  }

  /** The errors as a small picture, stronger where they are smaller. */
  #tileOf({ error, pooling: P, shrinkage: S }, colour, low, high) {
    const tile = new OffscreenCanvas(P.length, S.length), ink = tile.getContext("2d");
    const image = ink.createImageData(P.length, S.length);
    P.forEach((_, p) => S.forEach((_, q) => {
      const good = high > low ? 1 - (error[p][q] - low) / (high - low) : 1;
      image.data.set([...colour, 20 + 200 * good * good], 4 * ((S.length - 1 - q) * P.length + p));
    }));
    ink.putImageData(image, 0, 0);
    return tile;
  }

  /** Colours of the theme, read once: reading them makes the browser lay out the page. */
  #colours() {
    const root = document.documentElement, theme = `${root.dataset.theme} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (this.theme !== theme) {
      const style = getComputedStyle(root);
      this.theme = theme;
      this.inks = Object.fromEntries(["--raised", "--ink", "--ground", "--accent"].map((name) => [name, style.getPropertyValue(name).trim()]));
    }
    return (name) => this.inks[name];
  }

  #drawPlane() {
    const canvas = byId("surface"), pen = canvas.getContext("2d"), { width: size } = canvas;
    const { pooling, shrinkage, model } = this.session.choice, read = this.#colours();
    pen.fillStyle = read("--raised");
    pen.fillRect(0, 0, size, size);
    if (this.surface) {
      const { error, pooling: P, shrinkage: S, best, rows, folds } = this.surface;
      const low = Math.min(...error.flat()), high = Math.max(...error.flat()), accent = read("--accent");
      if (this.tile?.surface !== this.surface || this.tile.accent !== accent) {
        this.tile = { surface: this.surface, accent, canvas: this.#tileOf(this.surface, rgbOf(accent), low, high) };
      }
      pen.imageSmoothingEnabled = true;
      const step = size / (P.length - 1);
      pen.drawImage(this.tile.canvas, -step / 2, -step / 2, size + step, size + step);
      pen.strokeStyle = read("--ink");
      pen.lineWidth = 1.5;
      const [bx, by] = [best[0] * size, (1 - best[1]) * size], inside = (value) => Math.min(Math.max(value, 7), size - 7);
      pen.beginPath();
      pen.moveTo(inside(bx) - 5, inside(by) - 5);
      pen.lineTo(inside(bx) + 5, inside(by) + 5);
      pen.moveTo(inside(bx) + 5, inside(by) - 5);
      pen.lineTo(inside(bx) - 5, inside(by) + 5);
      pen.stroke();
      const at = (values, value) => values.reduce((b, v, i) => (Math.abs(v - value) < Math.abs(values[b] - value) ? i : b), 0);
      const own = model === "lda" ? 1 : model === "qda" ? 0 : pooling;
      const here = error[at(P, own)][at(S, shrinkage)];
      byId("plane-about").textContent =
        `Across: pooling, from QDA to LDA. Up: shrinkage. The stronger the blue, the smaller the error of ${folds}-fold cross-validation on ${count(rows, "row")}, ` +
        `${percent(low)} to ${percent(high)}; here ${percent(here)}. Cross: smallest log loss.`;
    }
    const x = (model === "lda" ? 1 : model === "qda" ? 0 : pooling) * size, y = (1 - shrinkage) * size;
    pen.beginPath();
    pen.arc(Math.min(Math.max(x, 9), size - 9), Math.min(Math.max(y, 9), size - 9), 7, 0, 2 * Math.PI);
    pen.fillStyle = read("--ground");
    pen.fill();
    pen.lineWidth = 3;
    pen.strokeStyle = read("--ink");
    pen.stroke();
    canvas.setAttribute("aria-valuenow", String(pooling));
    canvas.setAttribute("aria-valuetext", `pooling ${number(pooling)}, shrinkage ${number(shrinkage)}`);
    byId("best").hidden = !this.surface;
  }

  // --- the state of the dials ---

  update() {
    const { session } = this, { choice } = session, { dials } = MODELS[choice.model];
    byId("model").value = choice.model;
    byId("model-about").textContent = MODELS[choice.model].about;
    for (const name of ["pooling", "shrinkage", "ridge"]) {
      byId(`dial-${name}`).hidden = !dials.includes(name);
      setSlider(name, this.from[name](choice[name]), number(choice[name]));
    }
    byId("dial-degree").hidden = !session.canExpand;
    byId("degree").checked = session.degree === 2;
    byId("dial-reject").hidden = choice.reject === null;
    byId("rejects").checked = choice.reject !== null;
    if (choice.reject !== null) setSlider("reject", choice.reject, number(choice.reject));
    this.priors.hidden = !dials.includes("prior");
    this.costs.hidden = !dials.includes("decision");
    const prior = choice.prior ?? (choice.model === "nearest_mean" ? session.labels.map(() => 1 / session.K) : this.shares());
    prior.forEach((value, k) => setSlider(`prior-${k}`, value, percent(value), `prior-value-${k}`));
    if (session.K <= MANY && this.shownCost !== choice.cost) {
      this.shownCost = choice.cost;
      session.labels.forEach((_, a) => session.labels.forEach((_, k) => {
        const input = byId(`cost-${a}-${k}`), value = choice.cost ? choice.cost[a][k] : 1;
        if (input && document.activeElement !== input) input.value = String(value);
      }));
    }
    if (this.shownOff !== choice.off) {
      this.shownOff = choice.off;
      const off = new Set(choice.off);
      byId("columns-on").querySelectorAll("input").forEach((box) => { box.checked = !off.has(box.value); });
      byId("features-count").textContent = `${session.columns.length - off.size} of ${count(session.columns.length, "column")} in use`;
    }
    const plane = ["lda", "qda", "rda"].includes(choice.model) && session.degree === 1 && session.facts.detail === "class" && session.d > 1;
    byId("plane").hidden = !plane;
    if (!plane) return;
    const key = JSON.stringify([choice.off, choice.prior]);
    if (this.surfaceKey !== key) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.#fetchSurface(key), this.surfaceKey === undefined ? 0 : 600);
      if (this.surfaceKey === undefined) this.surfaceKey = key;
    }
    this.#drawPlane();
  }
}

function rgbOf(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function setSlider(id, value, text, output = `${id}-value`) {
  const input = byId(id);
  if (document.activeElement !== input || Math.abs(Number(input.value) - value) > 1e-3) input.value = String(value);
  input.setAttribute("aria-valuetext", text);
  byId(output).textContent = text;
}

function section(title, about, ...children) {
  return h("section", {}, h("h2", {}, title), about ? h("p", { class: "small" }, about) : null, children);
}
