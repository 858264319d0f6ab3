/**
 * Figures whose points can be dragged, with the controls and numbers beside them.
 *
 * A page has one `Explorable` per section. It owns controls (`slider`, `choice`, `button`), numbers and
 * one or more plots (`Plane`), and calls its `render` function once per frame after anything has changed.
 * `docs/lectures/index.md` describes what readers can do; nothing here knows about models.
 */

const NAMESPACE = "http://www.w3.org/2000/svg";
const NEAR = 16; // distance in units of the drawing within which a press takes a point
const STEP = 1 / 60; // share of the axis that an arrow key moves a point; Shift makes it five times as far
const CELL = 4; // size in units of the drawing of the cells in which regions are computed
const SHAPES = [
  "M-6,0a6,6 0 1 0 12,0a6,6 0 1 0 -12,0Z", "M0,-7.5L7,5.5H-7Z", "M-5.5,-5.5H5.5V5.5H-5.5Z",
  "M0,-8L8,0L0,8L-8,0Z", "M-6,-6L6,6M-6,6L6,-6",
];
const HINT = "Arrow keys move the selected point, comma and full stop select another one, Enter adds one, " +
  "a digit changes its class, Delete removes it.";

const element = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const drawn = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(NAMESPACE, name), attributes, children);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** A number with up to three significant digits; powers of ten where zeros would hide it. */
export function short(value, digits = 3) {
  if (!Number.isFinite(value)) return value === Infinity ? "∞" : value === -Infinity ? "−∞" : "–";
  const size = Math.abs(value);
  if (Math.abs(value - Math.round(value)) < 1e-12 && size < 1e6) return plain(value);
  if (size >= 1e6 || size < 5e-4) {
    const [front, power] = value.toExponential(1).split("e");
    const raised = power.replace("+", "").replace(/[-0-9]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
    return `${front.replace("-", "−")} × 10${raised}`;
  }
  return value.toFixed(Math.max(0, Math.min(4, digits - 1 - Math.floor(Math.log10(size))))).replace("-", "−");
}

/** "3 of 40", with a percentage from thirty rows on. */
export const countOf = (part, whole) =>
  whole < 30 ? `${part} of ${whole}` : `${part} of ${whole} (${percent(part / whole)})`;

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

/** A number without trailing zeros. */
export const plain = (value) => String(Number(value.toFixed(4)) + 0).replace("-", "−");

const clamp = (value, [least, most]) => Math.min(most, Math.max(least, value));
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

// --- a section with its controls ---

const all = [];

/** Render every figure again, for example in other colours. */
export const renderAll = () => all.forEach((each) => each.update());

/** The figures, controls and numbers of one section of a page. */
export class Explorable {
  constructor(where) {
    this.section = typeof where === "string" ? document.getElementById(where) : where;
    this.section.classList.add("explorable");
    this.section.explorable = this;
    this.figures = element("div", { class: "figures" });
    this.controls = element("div", { class: "controls" });
    this.numbers = element("dl", { class: "numbers" });
    this.message = element("p", { class: "small message", role: "status" });
    this.live = element("p", { class: "unseen", "aria-live": "polite" });
    const panel = element("div", { class: "panel" }, this.controls, this.numbers, this.message, this.live);
    this.section.append(element("div", { class: "stage" }, this.figures, panel));
    this.planes = [];
    this.resets = [];
    this.render = () => {};
    all.push(this);
  }

  /** Render with this function now and after every change; adds the reset button. */
  start(render, { atReset = () => {} } = {}) {
    this.render = render;
    this.resets.push(atReset);
    this.buttons().append(this.#button("Reset", () => this.reset()));
    this.update();
  }

  reset() {
    this.resets.forEach((each) => each());
    this.update();
  }

  /** Render in the next frame. */
  update() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      try {
        this.message.textContent = "";
        this.render();
      } catch (error) {
        if (error.name !== "MomentsError") throw error;
        this.message.textContent = `No model: ${error.message}`;
        for (const plane of this.planes) plane.clear();
      }
      for (const plane of this.planes) plane.drawPoints();
    });
  }

  /** Forget this section, which has been removed from its page. */
  end() {
    all.splice(all.indexOf(this), 1);
  }

  say(text) {
    this.live.textContent = text;
  }

  buttons() {
    if (!this.buttonRow) this.controls.append(this.buttonRow = element("div", { class: "buttons" }));
    return this.buttonRow;
  }

  #button(text, action) {
    const button = element("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      action();
      this.update();
    });
    return button;
  }

  button(text, action) {
    const button = this.#button(text, action);
    this.buttons().append(button);
    return button;
  }

  /** A slider; `show` writes its value. */
  slider(text, { min, max, step = 1, value, show = plain }) {
    const output = element("output"), owner = this;
    const input = element("input", { type: "range", min, max, step, value });
    this.controls.append(element("label", {}, element("span", {}, text), output), input);
    const id = `${this.section.id}-${this.controls.children.length}`;
    input.id = id;
    input.previousSibling.setAttribute("for", id);
    const control = {
      input,
      get value() { return Number(input.value); },
      set value(next) {
        input.value = next;
        written();
      },
    };
    function written() {
      output.textContent = show(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    }
    input.addEventListener("input", () => {
      written();
      owner.update();
    });
    this.resets.push(() => { control.value = value; });
    written();
    return control;
  }

  /** Radio buttons; `options` maps values to texts. */
  choice(text, options, value = Object.keys(options)[0], onChange = () => {}) {
    const group = element("fieldset", {}, element("legend", {}, text)), name = `${this.section.id}-${text}`;
    const inputs = Object.entries(options).map(([key, title]) => {
      const input = element("input", { type: "radio", name, value: key });
      input.checked = input.defaultChecked = key === value;
      input.addEventListener("change", () => {
        onChange(key);
        this.update();
      });
      group.append(element("label", {}, input, element("span", {}, title)));
      return input;
    });
    this.controls.append(group);
    const control = {
      group,
      get value() { return inputs.find((input) => input.checked).value; },
      set value(next) {
        for (const input of inputs) input.checked = input.value === next;
      },
    };
    this.resets.push(() => { control.value = value; });
    return control;
  }

  /** A function that writes a number, with a note in small print. */
  number(text, key = text) {
    const value = element("dd", { "data-number": key }), note = element("dd", { class: "note" });
    this.numbers.append(element("div", {}, element("dt", {}, text), value, note));
    return (shown, more = "") => {
      value.textContent = shown;
      note.textContent = more;
    };
  }

  /** An element for a table or a list below the figures. */
  table(label) {
    const table = element("table"), region = { class: "table", tabindex: 0, role: "region", "aria-label": label };
    const box = element("div", region, table);
    this.figures.append(box);
    new ResizeObserver(() => box.classList.toggle("cut", box.scrollWidth > box.clientWidth + 1)).observe(table);
    return table;
  }

  plane(options) {
    const plane = new Plane(this, options);
    this.planes.push(plane);
    return plane;
  }
}

// --- a plot ---

/**
 * Axes with regions, lines, points and handles.
 *
 * Regions are painted on a canvas below the SVG. Points are { x, y, k }: place and class. `adding` names the
 * classes of which points can be added; `axis` "x" or "y" restricts the direction in which points move.
 */
export class Plane {
  constructor(owner, {
    label, x, y, width = 480, height = 380, equal = false, xLabel = "", yLabel = "", ticks = true, grid = false,
    points = [], adding = null, axis = null, place = (point) => point, caption = "", small = false, cell = CELL,
  }) {
    Object.assign(this, { owner, x, y, axis, place, adding, label, cell });
    const space = { left: ticks ? (yLabel ? 58 : 40) : 8, bottom: ticks ? (xLabel ? 50 : 30) : 8, top: 8, right: 10 };
    const inner = width - space.left - space.right;
    this.width = width;
    this.height = equal ? (inner * (y[1] - y[0])) / (x[1] - x[0]) + space.top + space.bottom : height;
    this.area = { left: space.left, top: space.top, right: width - space.right, bottom: this.height - space.bottom };
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.svg = drawn("svg", { viewBox: `0 0 ${width} ${this.height}`, class: "figure", role: "group", "aria-label": label });
    this.layers = drawn("g");
    this.marks = drawn("g", adding || points.length
      ? { class: "points", tabindex: 0, role: "application", "aria-label": `Points of the plot. ${HINT}` } : {});
    this.handles = drawn("g");
    this.axes = drawn("g", { "aria-hidden": "true" });
    this.names = { x: xLabel, y: yLabel, ticks, grid };
    this.#drawAxes();
    this.svg.append(this.axes, this.layers, this.marks, this.handles);
    this.box = element("div", { class: "box" }, this.canvas, this.svg);
    this.figure = element("figure", { class: small ? "plane small-plot" : "plane" }, this.box);
    if (caption) this.figure.append(element("figcaption", {}, caption));
    owner.figures.append(this.figure);
    this.handled = [];
    this.selected = 0;
    this.initial = () => points;
    this.points = points.map((point) => ({ ...point }));
    this.owner.resets.push(() => this.setPoints(this.initial()));
    if (adding) this.#tools();
    this.#listen();
  }

  /** Replace the points; also what a reset restores if `initial` is given. */
  setPoints(points) {
    this.points = points.map((point) => ({ ...point }));
    this.selected = 0;
    this.owner.update();
  }

  // --- coordinates ---

  px(x) {
    return this.area.left + ((x - this.x[0]) / (this.x[1] - this.x[0])) * (this.area.right - this.area.left);
  }

  py(y) {
    return this.area.bottom - ((y - this.y[0]) / (this.y[1] - this.y[0])) * (this.area.bottom - this.area.top);
  }

  /** Place of a pointer event: in units of the drawing (u, v) and of the axes (x, y). */
  under(event) {
    const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
    const u = (event.clientX - box.left) * scale, v = (event.clientY - box.top) * scale, { area } = this;
    const x = this.x[0] + ((u - area.left) / (area.right - area.left)) * (this.x[1] - this.x[0]);
    const y = this.y[0] + ((area.bottom - v) / (area.bottom - area.top)) * (this.y[1] - this.y[0]);
    const inside = x >= this.x[0] && x <= this.x[1] && y >= this.y[0] && y <= this.y[1];
    return { u, v, x: clamp(x, this.x), y: clamp(y, this.y), inside };
  }

  // --- drawing ---

  #drawAxes() {
    const { area, names: { x: xLabel, y: yLabel, ticks, grid } } = this, parts = [];
    for (const value of ticks ? nice(this.x) : []) {
      const u = this.px(value);
      if (grid) parts.push(`<line class="grid" x1="${u}" x2="${u}" y1="${area.top}" y2="${area.bottom}"/>`);
      parts.push(`<text x="${u}" y="${area.bottom + 19}" text-anchor="middle">${plain(value)}</text>`);
    }
    for (const value of ticks ? nice(this.y) : []) {
      const v = this.py(value);
      if (grid) parts.push(`<line class="grid" y1="${v}" y2="${v}" x1="${area.left}" x2="${area.right}"/>`);
      parts.push(`<text x="${area.left - 8}" y="${v + 5}" text-anchor="end">${plain(value)}</text>`);
    }
    if (ticks) {
      parts.push(`<rect class="frame" x="${area.left}" y="${area.top}" width="${area.right - area.left}" ` +
        `height="${area.bottom - area.top}"/>`);
    }
    const middle = (area.top + area.bottom) / 2;
    parts.push(`<text x="${(area.left + area.right) / 2}" y="${area.bottom + 41}" text-anchor="middle">${xLabel}</text>`,
      `<text transform="translate(16 ${middle}) rotate(-90)" text-anchor="middle">${yLabel}</text>`);
    this.axes.innerHTML = parts.join("");
  }

  /** Change the ranges of the axes. */
  rescale(x, y) {
    Object.assign(this, { x, y, lattice: null });
    this.#drawAxes();
  }

  /** Draw shapes (strings of `line`, `curve` and so on) below the points. */
  draw(...shapes) {
    this.layers.innerHTML = shapes.flat(3).join("");
  }

  clear() {
    this.layers.innerHTML = "";
    this.canvas.width = 1;
  }

  line([x1, y1], [x2, y2], kind = "") {
    return `<line class="${kind}" x1="${this.px(x1)}" y1="${this.py(y1)}" x2="${this.px(x2)}" y2="${this.py(y2)}"/>`;
  }

  /** A line through points, leaving the plot where they do. */
  curve(points, kind = "", closed = false) {
    const steps = points.map(([x, y], i) => `${i ? "L" : "M"}${round(this.px(x))} ${round(clamp(this.py(y), [-1e5, 1e5]))}`);
    return `<path class="${kind}" clip-path="url(#${this.#clip()})" d="${steps.join("")}${closed ? "Z" : ""}"/>`;
  }

  circle([x, y], radius, kind = "") {
    const clip = kind === "foot" ? ` clip-path="url(#${this.#clip()})"` : "";
    return `<circle class="${kind}"${clip} cx="${this.px(x)}" cy="${this.py(y)}" r="${radius}"/>`;
  }

  rectangle([x1, y1], [x2, y2], kind = "") {
    const [u1, u2] = [this.px(x1), this.px(x2)].sort((a, b) => a - b);
    const [v1, v2] = [this.py(y1), this.py(y2)].sort((a, b) => a - b);
    return `<rect class="${kind}" x="${u1}" y="${v1}" width="${u2 - u1}" height="${v2 - v1}"/>`;
  }

  text([x, y], words, { anchor = "middle", kind = "label", dx = 0, dy = 0 } = {}) {
    const u = this.px(x) + dx, v = this.py(y) + dy;
    return `<text class="${kind}" x="${u}" y="${v}" text-anchor="${anchor}">${escaped(words)}</text>`;
  }

  arrow(from, to, kind = "") {
    const u = this.px(to[0]) - this.px(from[0]), v = this.py(to[1]) - this.py(from[1]), size = Math.hypot(u, v);
    if (size < 1) return "";
    const [a, b] = [(u / size) * 11, (v / size) * 11], [x, y] = [this.px(to[0]), this.py(to[1])];
    const head = `M${x} ${y}L${x - a - b / 2} ${y - b + a / 2}L${x - a + b / 2} ${y - b - a / 2}Z`;
    return `<g class="arrow ${kind}">${this.line(from, [to[0], to[1]])}<path d="${head}"/></g>`;
  }

  #clip() {
    if (!this.clip) {
      const { area } = this;
      this.clip = `${this.owner.section.id || "figure"}-clip-${this.owner.planes.length}-${Math.random().toString(36).slice(2, 8)}`;
      const shape = drawn("rect", { x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top });
      this.svg.prepend(drawn("defs", {}, drawn("clipPath", { id: this.clip }, shape)));
    }
    return this.clip;
  }

  /** Change the names of the axes. */
  rename(x, y) {
    Object.assign(this.names, { x, y });
    this.#drawAxes();
  }

  /** The nodes (x, y) at which regions and contours are computed: a Float64Array of pairs. */
  nodes() {
    if (!this.lattice) {
      const { area, cell } = this, nx = Math.ceil((area.right - area.left) / cell), ny = Math.ceil((area.bottom - area.top) / cell);
      const pairs = new Float64Array(2 * (nx + 1) * (ny + 1));
      for (let j = 0, p = 0; j <= ny; j++) {
        for (let i = 0; i <= nx; i++) {
          pairs[p++] = this.x[0] + (i / nx) * (this.x[1] - this.x[0]);
          pairs[p++] = this.y[1] - (j / ny) * (this.y[1] - this.y[0]);
        }
      }
      this.lattice = { nx, ny, pairs };
    }
    return this.lattice.pairs;
  }

  /** Paint the class of each node; -1 is grey, and -2 is left blank. */
  shade(labels) {
    this.nodes();
    const { nx, ny } = this.lattice, { canvas, area } = this, style = getComputedStyle(this.owner.section);
    const cached = new Map(), image = new ImageData(nx + 1, ny + 1);
    const colour = (k) => {
      if (!cached.has(k)) cached.set(k, rgb(style.getPropertyValue(k < 0 ? "--soft" : `--k${k}`)));
      return cached.get(k);
    };
    const { data } = image;
    labels.forEach((k, i) => {
      if (k < -1) return;
      [data[4 * i], data[4 * i + 1], data[4 * i + 2]] = colour(k);
      data[4 * i + 3] = k < 0 ? 84 : 44;
    });
    canvas.width = nx + 1;
    canvas.height = ny + 1;
    canvas.getContext("2d").putImageData(image, 0, 0);
    const share = (value, whole) => `${(100 * value) / whole}%`;
    const [u, v] = [(area.right - area.left) / nx, (area.bottom - area.top) / ny]; // size of a cell, centred at its node
    Object.assign(canvas.style, {
      left: share(area.left - u / 2, this.width), top: share(area.top - v / 2, this.height),
      width: share(area.right - area.left + u, this.width), height: share(area.bottom - area.top + v, this.height),
      clipPath: `inset(${share(0.5, ny + 1)} ${share(0.5, nx + 1)})`,
    });
  }

  /** Where the values at the nodes equal zero: a path, by linear interpolation along the edges of cells. */
  contour(values, kind = "boundary") {
    this.nodes();
    const { nx, ny, pairs } = this.lattice, size = (nx + 1) * (ny + 1), ends = new Map();
    const edge = (i, j) => (i < j ? i * size + j : j * size + i);
    const join = (one, two) => {
      if (ends.has(one)) ends.get(one).push(two);
      else ends.set(one, [two]);
    };
    const triangle = (a, b, c) => { // crossed by at most one line, which cuts off the corner of the other sign
      const p = values[a] > 0, q = values[b] > 0, r = values[c] > 0;
      if (p === q && q === r) return;
      const [tip, one, two] = p === q ? [c, a, b] : p === r ? [b, a, c] : [a, b, c];
      join(edge(tip, one), edge(tip, two));
      join(edge(tip, two), edge(tip, one));
    };
    for (let j = 0; j < ny; j++) {
      for (let i = 0; i < nx; i++) {
        const a = j * (nx + 1) + i, b = a + 1, c = b + nx, d = c + 1, above = (values[a] > 0) + (values[b] > 0) + (values[c] > 0) + (values[d] > 0);
        if (above === 0 || above === 4) continue;
        triangle(a, b, c);
        triangle(d, b, c);
      }
    }
    const place = (key) => {
      const i = Math.floor(key / size), j = key % size, t = values[i] / (values[i] - values[j]);
      return `${round(this.px(pairs[2 * i] + t * (pairs[2 * j] - pairs[2 * i])))} ` +
        `${round(this.py(pairs[2 * i + 1] + t * (pairs[2 * j + 1] - pairs[2 * i + 1])))}`;
    };
    const steps = [], follow = (key) => { // a whole line, so that it can be dashed
      steps.push(`M${place(key)}`);
      for (let next = ends.get(key).pop(); next !== undefined; next = ends.get(key).pop()) {
        ends.get(next).splice(ends.get(next).indexOf(key), 1);
        steps.push(`L${place(next)}`);
        key = next;
      }
    };
    for (const [key, others] of ends) if (others.length === 1) follow(key);
    for (const [key, others] of ends) if (others.length) follow(key);
    return `<path class="${kind}" d="${steps.join("")}"/>`;
  }

  /** Shade the class with the largest score at each node, and draw the boundaries between them. */
  regions(scores, K, kind = "boundary") {
    const n = scores.length / K, labels = new Int8Array(n), leads = Array.from({ length: K }, () => new Float64Array(n));
    for (let i = 0; i < n; i++) {
      let first = 0, second = -1;
      for (let k = 1; k < K; k++) {
        if (scores[i * K + k] > scores[i * K + first]) [first, second] = [k, first];
        else if (second < 0 || scores[i * K + k] > scores[i * K + second]) second = k;
      }
      labels[i] = first;
      for (let k = 0; k < K; k++) leads[k][i] = scores[i * K + k] - scores[i * K + (k === first ? second : first)];
    }
    this.shade(labels);
    return leads.slice(K === 2 ? 1 : 0).map((lead) => this.contour(lead, kind));
  }

  /** Points in the shapes of their classes; `wrong` marks those that are misclassified. */
  drawPoints() {
    const mark = (point, i) => {
      const at = `translate(${round(this.px(point.x))} ${round(this.py(point.y))})`;
      const state = `${point.wrong ? " wrong" : ""}${point.fixed ? " fixed" : ""}${point.dropped ? " dropped" : ""}${i === this.selected ? " selected" : ""}`;
      return `<g class="point k${point.k}${state}" transform="${at}"><circle class="reach" r="${NEAR}"/>` +
        `<circle class="ring" r="10.5"/><path d="${SHAPES[point.k % SHAPES.length]}"/></g>`;
    };
    this.marks.innerHTML = this.points.map(mark).join("");
    for (const handle of this.handled) {
      const { x, y } = handle.where();
      handle.node.setAttribute("transform", `translate(${round(this.px(clamp(x, this.x)))} ${round(this.py(clamp(y, this.y)))})`);
      const said = handle.said();
      handle.node.setAttribute("aria-valuetext", said);
      handle.node.setAttribute("aria-valuenow", parseFloat(said.replace("−", "-")) || 0);
    }
  }

  /** A handle that is dragged or moved by arrow keys: `where` gives its place, `move` is called with a new one. */
  handle({ label, where, move, said = () => `${short(where().x)}, ${short(where().y)}`, kind = "" }) {
    const node = drawn("g", { class: `handle ${kind}`, tabindex: 0, role: "slider", "aria-label": label, "aria-valuenow": 0 });
    node.innerHTML = `<circle class="reach" r="${NEAR + 2}"/><circle class="grip" r="9"/>`;
    this.handles.append(node);
    const handle = { node, where, move, said };
    node.addEventListener("keydown", (event) => {
      const step = this.#arrow(event);
      if (!step) return;
      const { x, y } = where();
      move({ x: clamp(x + step[0], this.x), y: clamp(y + step[1], this.y), dx: step[0], dy: step[1] });
      this.owner.update();
    });
    this.handled.push(handle);
    return handle;
  }

  // --- dragging and keys ---

  #arrow(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way) return null;
    event.preventDefault();
    const size = STEP * (event.shiftKey ? 5 : 1);
    return [way[0] * size * (this.x[1] - this.x[0]), way[1] * size * (this.y[1] - this.y[0])];
  }

  #nearest({ u, v }, reach) {
    let best = null, least = reach;
    const look = (x, y, which) => {
      const far = Math.hypot(this.px(x) - u, this.py(y) - v);
      if (far < least) [best, least] = [which, far];
    };
    for (const handle of this.handled) {
      const { x, y } = handle.where();
      look(clamp(x, this.x), clamp(y, this.y), { handle });
    }
    if (!best) this.points.forEach((point, i) => { if (!point.fixed) look(point.x, point.y, { index: i }); });
    return best;
  }

  #moveTo(index, x, y) {
    const point = this.points[index];
    if (this.axis !== "y") point.x = clamp(x, this.x);
    if (this.axis !== "x") point.y = clamp(y, this.y);
    this.points[index] = this.place(point);
  }

  add(x, y, k) {
    this.points.push(this.place({ x, y, k }));
    this.selected = this.points.length - 1;
    this.owner.update();
  }

  removeSelected() {
    if (this.points[this.selected]?.fixed || this.points.length < 2) return;
    this.points.splice(this.selected, 1);
    this.selected = Math.min(this.selected, this.points.length - 1);
    this.owner.update();
  }

  #listen() {
    const { svg } = this;
    let held = null, pressed = null;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const at = this.under(event);
      held = this.#nearest(at, event.pointerType === "touch" ? 1.5 * NEAR : NEAR);
      pressed = held ? null : at;
      if (!held) return;
      this.owner.dragging = true;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("dragging");
      if (held.handle) held.handle.node.focus({ preventScroll: true });
      else this.selected = held.index;
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const { x, y } = this.under(event);
      if (held.handle) held.handle.move({ x, y, dx: 0, dy: 0 });
      else this.#moveTo(held.index, x, y);
      this.owner.update();
    });
    const release = (event) => {
      if (!held && pressed && event.type === "pointerup" && this.adding && pressed.inside) {
        const at = this.under(event);
        if (Math.hypot(at.u - pressed.u, at.v - pressed.v) < 5) this.add(at.x, at.y, this.next());
      }
      held = pressed = null;
      this.owner.dragging = false;
      svg.classList.remove("dragging");
      this.owner.update();
    };
    svg.addEventListener("pointerup", release);
    svg.addEventListener("pointercancel", release);
    svg.addEventListener("dblclick", (event) => {
      const under = this.#nearest(this.under(event), NEAR);
      if (!this.adding || !under || under.handle) return;
      this.selected = under.index;
      this.removeSelected();
    });
    this.marks.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    const step = this.#arrow(event), chosen = this.points[this.selected];
    const free = this.points.map((_, i) => i).filter((i) => !this.points[i].fixed);
    if (step && chosen && !chosen.fixed) this.#moveTo(this.selected, chosen.x + step[0], chosen.y + step[1]);
    else if ([",", ".", "PageUp", "PageDown"].includes(event.key) && free.length) {
      const by = event.key === "," || event.key === "PageUp" ? -1 : 1;
      this.selected = free[(free.indexOf(this.selected) + by + free.length) % free.length];
    } else if (event.key === "Enter" && this.adding) {
      const { x, y } = chosen ?? { x: (this.x[0] + this.x[1]) / 2, y: (this.y[0] + this.y[1]) / 2 };
      this.add(clamp(x + 3 * STEP * (this.x[1] - this.x[0]), this.x), y, this.next());
    } else if ((event.key === "Delete" || event.key === "Backspace") && this.adding) this.removeSelected();
    else if (/^[1-9]$/.test(event.key) && this.adding && Number(event.key) <= this.adding.length && chosen) {
      chosen.k = Number(event.key) - 1;
    } else return;
    event.preventDefault();
    const now = this.points[this.selected];
    this.owner.say(`Point ${this.selected + 1} of ${this.points.length}${this.adding ? `, class ${this.adding[now.k]}` : ""}, ` +
      `at ${short(now.x)}, ${short(now.y)}`);
    this.owner.update();
  }

  /** Class of the next point to add. */
  next() {
    return this.tools ? Number(this.tools.querySelector("input:checked")?.value ?? 0) : 0;
  }

  #tools() {
    const group = element("fieldset", { class: "tools" }, element("legend", {}, this.adding.length > 1 ? "A click adds" : "A click adds a point"));
    const name = `add-${this.owner.section.id}-${this.owner.planes.length}`;
    if (this.adding.length > 1) {
      this.adding.forEach((title, k) => {
        const input = element("input", { type: "radio", name, value: k });
        input.checked = k === 0;
        const sign = drawn("svg", { viewBox: "-9 -9 18 18", class: `sign point k${k}`, "aria-hidden": "true" }, drawn("path", { d: SHAPES[k] }));
        group.append(element("label", {}, input, sign, element("span", {}, title)));
      });
    }
    const remove = element("button", { type: "button", class: "plain" }, "Remove selected");
    remove.addEventListener("click", () => this.removeSelected());
    group.append(remove);
    this.tools = group;
    this.figure.append(group);
  }

  /** Show only the first classes to add. */
  limitClasses(K) {
    this.tools.querySelectorAll("label").forEach((label, k) => { label.hidden = k >= K; });
    if (this.next() >= K) this.tools.querySelector("input").checked = true;
  }
}

const round = (value) => Math.round(value * 100) / 100;

/** Round numbers that divide a range into three to six parts. */
function nice([least, most]) {
  const rough = (most - least) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, i) => (first + i) * step);
}

/** Red, green and blue of a colour written as #rrggbb. */
function rgb(text) {
  const value = parseInt(text.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** The button that switches between light and dark. */
export function themeButton(button) {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const written = () => {
    button.querySelector("span").textContent = dark() ? "Light" : "Dark";
    renderAll();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    written();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", written);
  written();
}
