/**
 * The space: points on two axes, with the regions, boundaries and ellipses of the model.
 *
 * Tools: move (drag a point, or the mean of a class), draw, lasso. All work with a pointer and with
 * the keyboard. Tables with more rows than points show the density of all rows, counted by the server.
 */

import { REJECT, decide, logPosterior } from "./moments.js";
import { announce, byId, colourOf, count, h, mark, number, percent, shapeAt } from "./elements.js";
import { postForBytes } from "./server.js";

const MOST_CELLS = 4e6; // of the density of all rows, for all classes together
const MARGIN = { left: 54, right: 14, top: 14, bottom: 46 };
const CELL = 7; // pixels of a cell of the region map
const NEAR = 14; // pixels within which a point is hit
const LEVEL = 5.991464547107979; // 95 % of a chi-square with two degrees of freedom
const TOOLS = [
  ["move", "Move", "Drag a point, or the mean of a class. Click a point to explain it."],
  ["draw", "Draw", "Click to add a point of the chosen class."],
  ["lasso", "Lasso", "Draw around points to select them."],
];

export class Space {
  constructor(session, { explain, select }) {
    this.session = session;
    this.explain = explain;
    this.selectPoints = select;
    this.tool = "move";
    this.drawClass = 0;
    this.hidden = new Set(); // what is not drawn
    this.ids = this.defaultAxes();
    this.density = null;
    this.canvas = byId("space");
    this.pen = this.canvas.getContext("2d");
    this.listen = new AbortController();
    this.#controls();
    this.#pointer();
    this.#keyboard();
    this.aim();
    this.resize = new ResizeObserver(() => this.#fit());
    this.resize.observe(this.canvas.parentElement);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", () => this.recolour(), { signal: this.listen.signal });
    this.recolour();
  }

  close() {
    this.listen.abort();
    this.resize.disconnect();
    clearTimeout(this.waiting);
  }

  defaultAxes() {
    return this.session.axisNames().slice(0, 2).map(({ id }) => id);
  }

  // --- the frame of axes and the view ---

  /** Compute the axes from the data as they are now. */
  aim() {
    const names = this.session.axisNames().map(({ id }) => id);
    this.ids = this.ids.map((id, i) => (names.includes(id) ? id : this.defaultAxes()[i]));
    if (this.ids[0] === this.ids[1]) this.ids = this.defaultAxes();
    this.frame = this.session.frame(this.ids);
    this.frameVersion = this.session.version;
    this.jitter = this.frame.flat ? Float64Array.from({ length: 8192 }, (_, i) => ((i * 0.618034) % 1) * 2 - 1) : null;
    this.whole();
  }

  setAxis(i, id) {
    const other = 1 - i;
    if (this.ids[other] === id) this.ids[other] = this.ids[i];
    this.ids[i] = id;
    this.aim();
    this.session.changed();
  }

  /** Coordinates (s, t) of a row of all features. */
  project(row, i = 0) {
    const { axes, centre, used } = this.frame;
    let s = 0, t = 0;
    for (let j = 0; j < used.length; j++) {
      const u = row[used[j]] - centre[j];
      s += u * axes[0].direction[j];
      t += u * axes[1].direction[j];
    }
    return [s + axes[0].offset, this.frame.flat ? this.jitter[i % 8192] : t + axes[1].offset];
  }

  /** Coordinates (n, 2) of all points, stored until points or axes change. */
  get coordinates() {
    const { session, frame } = this;
    if (this.projected?.version !== session.version || this.projected.frame !== frame) {
      const values = new Float64Array(2 * session.n);
      for (let i = 0; i < session.n; i++) values.set(this.project(session.row(i), i), 2 * i);
      this.projected = { version: session.version, frame, values };
    }
    return this.projected.values;
  }

  /** The change of a row that moves it by (ds, dt) on the axes. */
  lift(ds, dt) {
    const { axes, lift, used } = this.frame, step = new Float64Array(this.session.d);
    const features = axes.map(({ id }) => /^f\d+$/.test(id));
    if (features[0] && features[1]) { // only the two features change
      step[Number(axes[0].id.slice(1))] = ds;
      step[Number(axes[1].id.slice(1))] = dt;
      return step;
    }
    used.forEach((j, p) => { step[j] = lift[0][p] * ds + lift[1][p] * dt; });
    return step;
  }

  /** The row expected at (s, t). */
  rowAt(s, t) {
    const { session } = this, { centre, used, axes } = this.frame, row = new Float64Array(session.d);
    const total = session.moments.centre();
    for (let j = 0; j < session.d; j++) row[j] = total[j] + session.moments.origin[j];
    used.forEach((j, p) => { row[j] = centre[p]; });
    const { lift } = this.frame, ds = s - axes[0].offset, dt = t - axes[1].offset;
    used.forEach((j, p) => { row[j] += lift[0][p] * ds + (this.frame.flat ? 0 : lift[1][p] * dt); });
    return row;
  }

  /** Show all points. */
  whole() {
    const { session } = this;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    const { coordinates } = this;
    for (let i = 0; i < session.n; i++) {
      const s = coordinates[2 * i], t = coordinates[2 * i + 1];
      x0 = Math.min(x0, s);
      x1 = Math.max(x1, s);
      y0 = Math.min(y0, t);
      y1 = Math.max(y1, t);
    }
    if (!(x1 > x0)) [x0, x1] = [x0 - 1, x0 + 1];
    if (!(y1 > y0)) [y0, y1] = [y0 - 1, y0 + 1];
    if (this.frame.flat) [y0, y1] = [-2.2, 2.2];
    const px = (x1 - x0) * 0.07, py = (y1 - y0) * 0.07;
    this.box = [x0 - px, x1 + px, y0 - py, y1 + py];
    this.#equalScale();
    this.#viewChanged();
  }

  /** Discriminants have equal scales, so that distances can be compared. */
  #equalScale() {
    if (!this.frame.axes.every(({ id }) => id.startsWith("ld")) || !this.width) return;
    const [x0, x1, y0, y1] = this.box, { width, height } = this.#inside();
    const unit = Math.max((x1 - x0) / width, (y1 - y0) / height);
    const cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
    this.box = [cx - (unit * width) / 2, cx + (unit * width) / 2, cy - (unit * height) / 2, cy + (unit * height) / 2];
  }

  zoom(factor, at = null) {
    const [x0, x1, y0, y1] = this.box, [cx, cy] = at ?? [(x0 + x1) / 2, (y0 + y1) / 2];
    this.box = [cx + (x0 - cx) * factor, cx + (x1 - cx) * factor, cy + (y0 - cy) * factor, cy + (y1 - cy) * factor];
    this.#viewChanged();
  }

  pan(dx, dy) {
    const [x0, x1, y0, y1] = this.box, s = dx * (x1 - x0), t = dy * (y1 - y0);
    this.box = [x0 + s, x1 + s, y0 + t, y1 + t];
    this.#viewChanged();
  }

  #viewChanged() {
    this.nodes = null;
    this.density = null;
    if (!this.session.complete) {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.#countDensity(), 150);
    }
    this.session.changed();
  }

  #inside() {
    return { width: Math.max(this.width - MARGIN.left - MARGIN.right, 10),
      height: Math.max(this.height - MARGIN.top - MARGIN.bottom, 10) };
  }

  toPixel(s, t) {
    const [x0, x1, y0, y1] = this.box, { width, height } = this.#inside();
    return [MARGIN.left + ((s - x0) / (x1 - x0)) * width, MARGIN.top + (1 - (t - y0) / (y1 - y0)) * height];
  }

  fromPixel(x, y) {
    const [x0, x1, y0, y1] = this.box, { width, height } = this.#inside();
    return [x0 + ((x - MARGIN.left) / width) * (x1 - x0), y0 + (1 - (y - MARGIN.top) / height) * (y1 - y0)];
  }

  #fit() {
    const { clientWidth } = this.canvas.parentElement;
    const height = Math.max(330, Math.min(clientWidth * 0.72, innerHeight * 0.68));
    if (clientWidth === this.width && Math.abs(height - (this.height ?? 0)) < 1) return;
    this.width = clientWidth;
    this.height = height;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.whole();
  }

  recolour() {
    const style = getComputedStyle(document.documentElement), read = (name) => style.getPropertyValue(name).trim();
    this.colours = Array.from({ length: 12 }, (_, k) => read(`--k${k}`));
    this.ink = read("--ink");
    this.soft = read("--soft");
    this.line = read("--line");
    this.ground = read("--ground");
    this.accent = read("--accent");
    this.rgb = this.colours.map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    this.session.changed();
  }

  // --- drawing ---

  draw() {
    const { session, pen } = this;
    if (!this.width) return;
    if (this.frame.used.join() !== session.used.join()) this.aim();
    pen.clearRect(0, 0, this.width, this.height);
    const { width, height } = this.#inside();
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, MARGIN.top, width, height);
    pen.clip();
    if (session.rule) this.#drawRegions();
    if (this.density && !this.hidden.has("points")) this.#drawDensity();
    if (!this.hidden.has("ellipses") && session.rule) this.#drawEllipses();
    if (!this.hidden.has("points")) this.#drawPoints();
    this.#drawMeans();
    if (this.lasso) this.#drawLasso();
    this.#drawCurrent();
    pen.restore();
    this.#drawAxes();
    this.#describe();
  }

  #grid() {
    if (this.nodes) return this.nodes;
    const { width, height } = this.#inside();
    const columns = Math.ceil(width / CELL) + 1, rows = Math.ceil(height / CELL) + 1;
    const points = new Float64Array(columns * rows * 2), [ox, oy] = this.frame.axes.map(({ offset }) => offset);
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const [s, t] = this.fromPixel(MARGIN.left + c * CELL, MARGIN.top + r * CELL), at = 2 * (r * columns + c);
        points[at] = s - ox;
        points[at + 1] = this.frame.flat ? 0 : t - oy;
      }
    }
    this.nodes = { columns, rows, points };
    return this.nodes;
  }

  #drawRegions() {
    const { session, pen } = this, { K } = session, { columns, rows, points } = this.#grid();
    const scores = session.planeScores(this.frame.centre, this.frame.lift, points);
    const logs = session.choice.model === "ridge" ? null : logPosterior(scores, K);
    const { cost, reject } = session.choice, decides = session.has("decision");
    const costs = decides && cost ? cost.flat() : null;
    const values = costs && logs ? this.#expectedCosts(logs, costs, K) : scores;
    const actions = logs && decides
      ? decide(logs, K, { cost: costs, reject: reject === null ? null : { cost: reject } }) : argmaxOf(scores, K);
    this.#tint(actions, logs, columns, rows, K);
    if (this.hidden.has("boundaries")) return;
    pen.lineWidth = 1.6;
    pen.strokeStyle = this.ink;
    pen.globalAlpha = 0.75;
    pen.setLineDash([]);
    for (const lead of leads(values, columns * rows, K)) this.#contour(lead, columns, rows);
    if (decides && reject !== null && logs) {
      pen.setLineDash([5, 4]);
      const bound = Math.log(Math.max(reject, 1e-300)); // logarithms are nearly linear between nodes
      this.#contour(Float64Array.from({ length: columns * rows }, (_, i) =>
        Math.log(leastCost(logs, costs, i, K)) - bound), columns, rows);
      pen.setLineDash([]);
    }
    pen.globalAlpha = 1;
  }

  #expectedCosts(logs, costs, K) {
    const out = new Float64Array(logs.length);
    for (let i = 0; i < logs.length; i += K) {
      for (let a = 0; a < K; a++) {
        for (let k = 0; k < K; k++) out[i + a] -= costs[a * K + k] * Math.exp(logs[i + k]);
      }
    }
    return out;
  }

  /** Tint every cell in the colour of its class, stronger where the model is more certain. */
  #tint(actions, logs, columns, rows, K) {
    if (this.tile?.width !== columns || this.tile?.height !== rows) {
      this.tile = new OffscreenCanvas(columns, rows);
    }
    const pen = this.tile.getContext("2d"), image = pen.createImageData(columns, rows), { data } = image;
    for (let i = 0; i < columns * rows; i++) {
      const action = actions[i];
      if (action === REJECT) {
        data.set([128, 128, 128, 52], 4 * i);
        continue;
      }
      const certain = logs ? (Math.exp(logs[i * K + action]) - 1 / K) / (1 - 1 / K) : 0.6;
      data.set(this.rgb[colourOf(action)], 4 * i);
      data[4 * i + 3] = 14 + 46 * Math.max(certain, 0);
    }
    pen.putImageData(image, 0, 0);
    this.pen.imageSmoothingEnabled = true;
    this.pen.drawImage(this.tile, MARGIN.left - CELL / 2, MARGIN.top - CELL / 2, columns * CELL, rows * CELL);
  }

  /** The line where values of the nodes are zero, by marching squares. */
  #contour(values, columns, rows) {
    const { pen } = this, edge = (a, b) => {
      const t = a / (a - b);
      return CELL * (t >= 0 && t <= 1 ? t : 0.5);
    };
    const ends = new Float64Array(8);
    pen.beginPath();
    for (let r = 1; r < rows; r++) {
      for (let c = 1; c < columns; c++) {
        const above = (r - 1) * columns + c, below = above + columns;
        const v0 = values[above - 1], v1 = values[above], v2 = values[below], v3 = values[below - 1];
        const s0 = v0 > 0, s1 = v1 > 0, s2 = v2 > 0, s3 = v3 > 0;
        if (s0 === s1 && s1 === s2 && s2 === s3) continue;
        const x = MARGIN.left + (c - 1) * CELL, y = MARGIN.top + (r - 1) * CELL;
        let n = 0;
        const end = (ex, ey) => { ends[n++] = ex; ends[n++] = ey; };
        if (s0 !== s1) end(x + edge(v0, v1), y);
        if (s1 !== s2) end(x + CELL, y + edge(v1, v2));
        if (s2 !== s3) end(x + edge(v3, v2), y + CELL);
        if (s3 !== s0) end(x, y + edge(v0, v3));
        for (let e = 0; e + 3 < n; e += 4) {
          pen.moveTo(ends[e], ends[e + 1]);
          pen.lineTo(ends[e + 2], ends[e + 3]);
        }
      }
    }
    pen.stroke();
  }

  #sprite(k, size, faded) {
    const key = `${k} ${size} ${faded} ${this.colours[colourOf(k)]} ${this.ground}`;
    this.sprites ??= new Map();
    if (this.sprites.has(key)) return this.sprites.get(key);
    const ratio = Math.min(devicePixelRatio || 1, 2), full = Math.ceil(size * 3.4);
    const canvas = new OffscreenCanvas(full * ratio, full * ratio), pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const path = shapeAt(k, full / 2, full / 2, size);
    pen.fillStyle = this.colours[colourOf(k)];
    pen.globalAlpha = faded ? 0.18 : 0.92;
    pen.fill(path);
    pen.strokeStyle = this.ground;
    pen.lineWidth = 0.9;
    pen.stroke(path);
    const sprite = { bitmap: canvas.transferToImageBitmap(), full };
    this.sprites.set(key, sprite);
    return sprite;
  }

  get pointSize() {
    const { n } = this.session;
    return n > 2500 ? 2.4 : n > 600 ? 3.2 : 4.4;
  }

  /** All points on a canvas of their own, stored until points, view, selection or colours change. */
  #pointLayer() {
    const { session, coordinates } = this, size = this.pointSize, { n, codes, selection } = session;
    const key = [session.version, this.box.join(), this.width, this.height, size, this.colours.join(), this.ground,
      selection.size, [...selection].slice(0, 50).join()].join(" ");
    if (this.layer?.key === key && this.layer.coordinates === coordinates) return this.layer.canvas;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const canvas = new OffscreenCanvas(Math.ceil(this.width * ratio), Math.ceil(this.height * ratio)), pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const [x0, x1, y0, y1] = this.box, { width, height } = this.#inside(), { left } = MARGIN, bottom = MARGIN.top + height;
    const across = width / (x1 - x0), up = height / (y1 - y0), brushed = selection.size > 0;
    const sprites = session.labels.map((_, k) => [this.#sprite(k, size, false), this.#sprite(k, size, true)]);
    this.pixels = new Float64Array(2 * n);
    for (const chosen of brushed ? [false, true] : [null]) {
      for (let i = 0; i < n; i++) {
        if (chosen !== null && selection.has(i) !== chosen) continue;
        const x = left + (coordinates[2 * i] - x0) * across, y = bottom - (coordinates[2 * i + 1] - y0) * up;
        this.pixels[2 * i] = x;
        this.pixels[2 * i + 1] = y;
        const { bitmap, full } = sprites[codes[i]][brushed && !chosen ? 1 : 0];
        pen.drawImage(bitmap, x - full / 2, y - full / 2, full, full);
      }
    }
    this.layer = { key, coordinates, canvas };
    return canvas;
  }

  #drawPoints() {
    const { session, pen } = this, size = this.pointSize, { n, codes, actions, selection } = session, wrong = [];
    const layer = this.#pointLayer();
    pen.globalAlpha = this.density ? 0.55 : 1;
    pen.drawImage(layer, 0, 0, this.width, this.height);
    pen.globalAlpha = 1;
    if (this.hidden.has("errors") || !actions) return;
    for (let i = 0; i < n; i++) {
      const missed = actions[i] !== codes[i] && actions[i] !== null && actions[i] !== REJECT;
      if (missed && (!selection.size || selection.has(i))) wrong.push(this.pixels[2 * i], this.pixels[2 * i + 1]);
    }
    const rings = wrong.length / 2, many = rings > 150, r = size + (many ? 1.6 : 3.2);
    pen.strokeStyle = this.ink;
    pen.lineWidth = many ? 0.9 : 1.3;
    pen.globalAlpha = many ? Math.max(0.7 * Math.sqrt(150 / rings), 0.15) : 1; // so that the points stay visible
    pen.beginPath();
    for (let i = 0; i < wrong.length; i += 2) {
      pen.moveTo(wrong[i] + r, wrong[i + 1]);
      pen.arc(wrong[i], wrong[i + 1], r, 0, 2 * Math.PI);
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  #means() {
    const { session } = this, { moments, d, K } = session;
    return Array.from({ length: K }, (_, k) => {
      if (!moments.weight[k]) return null;
      const row = Float64Array.from({ length: d }, (_, j) => moments.mean[k * d + j] + moments.origin[j]);
      const [s, t] = this.project(row, 0);
      return [s, this.frame.flat ? 0 : t];
    });
  }

  #drawMeans() {
    const { pen, session } = this;
    this.#means().forEach((mean, k) => {
      if (!mean) return;
      const [x, y] = this.toPixel(...mean);
      const path = shapeAt(k, x, y, 9);
      pen.fillStyle = this.ground;
      pen.fill(path);
      pen.lineWidth = 3;
      pen.strokeStyle = this.colours[colourOf(k)];
      pen.stroke(path);
      if (session.K > 14) return;
      pen.font = "600 12px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.lineWidth = 4;
      pen.strokeStyle = this.ground;
      pen.lineJoin = "round";
      const label = session.labels[k].slice(0, 24);
      pen.strokeText(label, x, y - 16);
      pen.fillStyle = this.ink;
      pen.fillText(label, x, y - 16);
    });
  }

  #drawEllipses() {
    const { session, pen } = this;
    if (this.frame.flat || session.choice.model === "nearest_mean" || session.degree === 2) return;
    this.#means().forEach((mean, k) => {
      if (!mean) return;
      const [a, b, c] = session.classCovariance(k, this.frame.directions), l11 = Math.sqrt(Math.max(a, 0)), l21 = l11 ? b / l11 : 0;
      const l22 = Math.sqrt(Math.max(c - l21 * l21, 0)), r = Math.sqrt(LEVEL);
      pen.beginPath();
      for (let step = 0; step <= 72; step++) {
        const angle = (step / 72) * 2 * Math.PI, u = r * Math.cos(angle), v = r * Math.sin(angle);
        pen.lineTo(...this.toPixel(mean[0] + l11 * u, mean[1] + l21 * u + l22 * v));
      }
      pen.closePath();
      pen.strokeStyle = this.colours[colourOf(k)];
      pen.lineWidth = 1.4;
      pen.globalAlpha = 0.8;
      pen.setLineDash([2, 3]);
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    });
  }

  #drawCurrent() {
    const { session, pen } = this, { current } = session;
    if (!current) return;
    const [x, y] = this.toPixel(...this.project(current.row, current.point ?? 0));
    pen.strokeStyle = this.accent;
    pen.lineWidth = 2.2;
    pen.beginPath();
    pen.arc(x, y, this.pointSize + 7, 0, 2 * Math.PI);
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      pen.moveTo(x + dx * (this.pointSize + 7), y + dy * (this.pointSize + 7));
      pen.lineTo(x + dx * (this.pointSize + 13), y + dy * (this.pointSize + 13));
    }
    pen.stroke();
    if (current.changed) {
      pen.beginPath();
      pen.arc(x, y, 4, 0, 2 * Math.PI);
      pen.fillStyle = this.accent;
      pen.fill();
    }
  }

  #drawLasso() {
    const { pen } = this;
    pen.beginPath();
    this.lasso.forEach(([x, y]) => pen.lineTo(x, y));
    pen.closePath();
    pen.fillStyle = this.accent;
    pen.globalAlpha = 0.12;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = this.accent;
    pen.lineWidth = 1.5;
    pen.stroke();
  }

  #drawAxes() {
    const { pen } = this, [x0, x1, y0, y1] = this.box, { width, height } = this.#inside();
    pen.strokeStyle = this.line;
    pen.lineWidth = 1;
    pen.strokeRect(MARGIN.left + 0.5, MARGIN.top + 0.5, width - 1, height - 1);
    pen.fillStyle = this.soft;
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(x0, x1, width / 90)) {
      const [x] = this.toPixel(value, y0);
      pen.fillText(number(value), x, MARGIN.top + height + 6);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    if (!this.frame.flat) {
      for (const value of ticks(y0, y1, height / 60)) {
        const [, y] = this.toPixel(x0, value);
        pen.fillText(number(value), MARGIN.left - 7, y);
      }
    }
    pen.textBaseline = "alphabetic";
    pen.textAlign = "center";
    pen.fillStyle = this.ink;
    pen.font = "13px system-ui, sans-serif";
    const [ax, ay] = this.frame.axes;
    pen.fillText(axisTitle(ax), MARGIN.left + width / 2, this.height - 8);
    pen.save();
    pen.translate(13, MARGIN.top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(axisTitle(ay), 0, 0);
    pen.restore();
  }

  // --- density of all rows ---

  async #countDensity() {
    const { session } = this, { axes, centre, used } = this.frame, { width, height } = this.#inside();
    const cell = Math.max(4, Math.sqrt((width * height * session.K) / MOST_CELLS)), view = this.box;
    const w = Math.max(Math.floor(width / cell), 1), h = Math.max(Math.floor(height / cell), 1);
    const full = (direction) => {
      const out = new Array(session.d).fill(0);
      used.forEach((j, p) => { out[j] = direction[p]; });
      return out;
    };
    if (this.frame.flat) return;
    const body = {
      centre: full(centre), axes: axes.map(({ direction }) => full(direction)), width: w, height: h,
      box: [view[0] - axes[0].offset, view[1] - axes[0].offset, view[2] - axes[1].offset, view[3] - axes[1].offset],
    };
    this.counting?.abort();
    this.counting = new AbortController();
    try {
      const bytes = await postForBytes(`/api/tables/${session.facts.id}/density`, body, this.counting.signal);
      if (view !== this.box) return;
      this.density = { counts: new Int32Array(bytes), width: w, height: h, image: null };
      session.changed();
    } catch (error) {
      if (error.name !== "AbortError") announce(error.message);
    }
  }

  #drawDensity() {
    const { density, session } = this, { counts, width, height } = density, cells = width * height;
    const key = this.colours.join();
    if (density.image?.key !== key) {
      const canvas = new OffscreenCanvas(width, height), pen = canvas.getContext("2d");
      const image = pen.createImageData(width, height);
      let most = 1;
      for (let c = 0; c < cells; c++) {
        let sum = 0;
        for (let k = 0; k < session.K; k++) sum += counts[k * cells + c];
        most = Math.max(most, sum);
      }
      for (let r = 0; r < height; r++) {
        for (let c = 0; c < width; c++) {
          const from = r * width + c, to = 4 * ((height - 1 - r) * width + c), mix = [0, 0, 0];
          let sum = 0;
          for (let k = 0; k < session.K; k++) {
            const n = counts[k * cells + from];
            sum += n;
            for (let p = 0; p < 3; p++) mix[p] += n * this.rgb[colourOf(k)][p];
          }
          if (!sum) continue;
          for (let p = 0; p < 3; p++) image.data[to + p] = mix[p] / sum;
          image.data[to + 3] = 30 + 190 * (Math.log1p(sum) / Math.log1p(most));
        }
      }
      pen.putImageData(image, 0, 0);
      density.image = { key, canvas };
    }
    const inside = this.#inside();
    this.pen.drawImage(density.image.canvas, MARGIN.left, MARGIN.top, inside.width, inside.height);
  }

  // --- pointer ---

  #nearest(x, y) {
    if (!this.pixels || this.hidden.has("points")) return null;
    let best = null, least = NEAR * NEAR;
    for (let i = 0; i < this.session.n; i++) {
      const dx = this.pixels[2 * i] - x, dy = this.pixels[2 * i + 1] - y, size = dx * dx + dy * dy;
      if (size < least) [best, least] = [i, size];
    }
    return best;
  }

  #nearestMean(x, y) {
    let best = null, least = 11 * 11;
    this.#means().forEach((mean, k) => {
      if (!mean) return;
      const [px, py] = this.toPixel(...mean), size = (px - x) ** 2 + (py - y) ** 2;
      if (size < least) [best, least] = [k, size];
    });
    return best;
  }

  #pointer() {
    const { canvas, session } = this, on = (type, listener, options) =>
      canvas.addEventListener(type, listener, { signal: this.listen.signal, ...options });
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    on("pointerdown", (event) => {
      if (event.button !== 0) return;
      const [x, y] = at(event);
      canvas.setPointerCapture(event.pointerId);
      if (this.tool === "draw") {
        session.remember();
        session.add(this.rowAt(...this.fromPixel(x, y)), this.drawClass);
        session.sumAgain();
        return;
      }
      if (this.tool === "lasso") {
        this.lasso = [[x, y]];
        return;
      }
      const mean = this.#nearestMean(x, y), point = mean === null ? this.#nearest(x, y) : null;
      this.drag = { mean, point, from: this.fromPixel(x, y), start: [x, y], moved: false, view: this.box };
    });
    on("pointermove", (event) => {
      const [x, y] = at(event);
      if (this.lasso) {
        this.lasso.push([x, y]);
        session.changed();
        return;
      }
      const { drag } = this;
      if (!drag) {
        const over = this.tool === "move" && (this.#nearestMean(x, y) !== null || this.#nearest(x, y) !== null);
        canvas.style.cursor = this.tool === "move" ? (over ? "grab" : "default") : "crosshair";
        return;
      }
      if (!drag.moved && Math.hypot(x - drag.start[0], y - drag.start[1]) < 4) return;
      const to = this.fromPixel(x, y);
      if (drag.mean === null && drag.point === null) { // the view
        const { width, height } = this.#inside();
        this.box = drag.view;
        this.pan(-(x - drag.start[0]) / width, (y - drag.start[1]) / height);
        drag.moved = true;
        return;
      }
      if (!drag.moved) session.remember();
      drag.moved = true;
      const step = this.lift(to[0] - drag.from[0], to[1] - drag.from[1]);
      if (drag.mean !== null) session.moveClass(drag.mean, step);
      else session.move(drag.point, session.row(drag.point).map((value, j) => value + step[j]));
      drag.from = to;
      if (session.current?.point === drag.point && drag.point !== null) session.current.row = session.row(drag.point).slice();
    });
    const up = (event) => {
      const [x, y] = at(event), { drag, lasso } = this;
      this.drag = this.lasso = null;
      if (lasso) {
        this.selectPoints(this.#inLasso(lasso));
      } else if (drag && !drag.moved) {
        if (drag.point === null) {
          if (session.selection.size) this.selectPoints([]);
        } else this.explain(drag.point);
      } else if (drag?.moved && (drag.point !== null || drag.mean !== null)) session.sumAgain();
      session.changed();
    };
    on("pointerup", up);
    on("pointercancel", up);
    on("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.12 : 1 / 1.12, this.fromPixel(...at(event)));
    }, { passive: false });
  }

  #inLasso(lasso) {
    const inside = [];
    for (let i = 0; i < this.session.n; i++) {
      const x = this.pixels[2 * i], y = this.pixels[2 * i + 1];
      let odd = false;
      for (let a = 0, b = lasso.length - 1; a < lasso.length; b = a++) {
        const [xa, ya] = lasso[a], [xb, yb] = lasso[b];
        if (ya > y !== yb > y && x < ((xb - xa) * (y - ya)) / (yb - ya) + xa) odd = !odd;
      }
      if (odd) inside.push(i);
    }
    return inside;
  }

  // --- keyboard ---

  #keyboard() {
    const { canvas, session } = this;
    canvas.addEventListener("keydown", (event) => {
      const [x0, x1, y0, y1] = this.box, arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
      const arrow = arrows[event.key], point = session.current?.point ?? null;
      if (arrow && event.shiftKey && point !== null) {
        session.remember();
        const step = this.lift((arrow[0] * (x1 - x0)) / 50, (arrow[1] * (y1 - y0)) / 50);
        session.move(point, session.row(point).map((value, j) => value + step[j]));
        session.current.row = session.row(point).slice();
      } else if (arrow) this.#step(arrow, point);
      else if (event.key === "+" || event.key === "=") this.zoom(1 / 1.25);
      else if (event.key === "-") this.zoom(1.25);
      else if (event.key === "0") this.whole();
      else if (event.key === "Enter" && point !== null) this.explain(point, true);
      else if (event.key === "Delete" && (session.selection.size || point !== null)) this.forget();
      else if (event.key === "Escape") this.selectPoints([]);
      else return;
      event.preventDefault();
    }, { signal: this.listen.signal });
  }

  /** The nearest point in the direction of an arrow becomes the current one. */
  #step([dx, dy], from) {
    const { session } = this;
    if (!this.pixels || !session.n) return;
    const x = from === null ? this.width / 2 : this.pixels[2 * from], y = from === null ? this.height / 2 : this.pixels[2 * from + 1];
    let best = null, least = Infinity;
    for (let i = 0; i < session.n; i++) {
      if (i === from) continue;
      const u = (this.pixels[2 * i] - x) * dx - (this.pixels[2 * i + 1] - y) * dy;
      const v = Math.abs((this.pixels[2 * i] - x) * dy) + Math.abs((this.pixels[2 * i + 1] - y) * dx);
      if (u > 0.5 && u + 3 * v < least) [best, least] = [i, u + 3 * v];
    }
    if (best === null) return;
    this.explain(best);
    const p = session.logs ? Math.exp(Math.max(...session.logs.subarray(best * session.K, (best + 1) * session.K))) : null;
    const action = session.actions?.[best] ?? null, text = action === null ? "prediction not known yet"
      : action === REJECT ? "passed to a person" : `predicted ${session.labels[action]}`;
    announce(`Point of ${session.labels[session.codes[best]]}, ${text}${p ? `, probability ${percent(p, 0)}` : ""}.`);
  }

  forget() {
    const { session } = this;
    const points = session.selection.size ? [...session.selection] : session.current?.point !== undefined ? [session.current.point] : [];
    if (!points.length || points.length >= session.n - 1) return;
    session.remember();
    try {
      session.remove(points);
      session.sumAgain();
      announce(`${count(points.length, "point")} removed.`);
    } catch (error) {
      session.undo();
      announce(error.message);
    }
  }

  setClass(code) {
    const { session } = this;
    if (!session.selection.size) return;
    session.remember();
    for (const i of session.selection) session.move(i, session.row(i).slice(), code);
    session.sumAgain();
  }

  // --- controls ---

  #controls() {
    const { session } = this;
    const tools = byId("tools");
    tools.replaceChildren(
      h("fieldset", { class: "segments" }, h("legend", { class: "unseen" }, "Tool"),
        TOOLS.map(([id, title, about]) => h("label", { title: about },
          h("input", { type: "radio", name: "tool", value: id, checked: id === this.tool,
            onchange: () => { this.tool = id; this.draw(); this.#describe(); } }), h("span", {}, title)))),
      h("label", { id: "draw-class", class: "inline", hidden: true }, "Class ",
        h("select", { onchange: (event) => { this.drawClass = Number(event.target.value); } },
          session.labels.map((label, k) => h("option", { value: String(k) }, label)))),
      h("span", { class: "buttons" },
        h("button", { type: "button", id: "undo", title: "Undo (Ctrl+Z)", onclick: () => session.undo() }, "Undo"),
        h("button", { type: "button", id: "redo", title: "Redo (Ctrl+Shift+Z)", onclick: () => session.redo() }, "Redo"),
        h("button", { type: "button", title: "Zoom in (+)", "aria-label": "Zoom in", onclick: () => this.zoom(1 / 1.25) }, "+"),
        h("button", { type: "button", title: "Zoom out (−)", "aria-label": "Zoom out", onclick: () => this.zoom(1.25) }, "−"),
        h("button", { type: "button", title: "Show all points (0)", onclick: () => this.whole() }, "Fit"),
        h("button", { type: "button", id: "aim", title: "Compute the axes from the points as they are now", onclick: () => { this.aim(); session.changed(); } }, "Turn axes"),
        h("button", { type: "button", id: "reset", title: "Back to the rows of the table", onclick: () => session.reset() }, "Reset rows")),
    );
    byId("chosen-class").replaceChildren(h("option", { value: "" }, "choose"),
      ...session.labels.map((label, k) => h("option", { value: String(k) }, label)));
    const legend = byId("legend");
    legend.replaceChildren(...session.labels.map((label, k) =>
      h("span", { class: "key" }, mark(k), h("bdi", {}, label))));
    const shows = [["boundaries", "Boundaries"], ["ellipses", "Ellipses"], ["errors", "Errors"], ["points", "Points"]];
    byId("shows").replaceChildren(...shows.map(([id, title]) => h("label", { class: "check" },
      h("input", { type: "checkbox", checked: true, onchange: (event) => {
        this.hidden[event.target.checked ? "delete" : "add"](id);
        session.changed();
      } }), title)));
  }

  /** Menus of the axes, buttons that apply, and the caption. */
  #describe() {
    const { session } = this;
    const names = session.axisNames(), key = names.map(({ id }) => id).join();
    if (this.axesKey !== key) {
      this.axesKey = key;
      byId("axes").replaceChildren(...["Across", "Up"].map((title, i) => h("label", { class: "inline" }, `${title} `,
        h("select", { id: `axis-${i}`, onchange: (event) => this.setAxis(i, event.target.value) },
          names.map(({ id, title: text }) => h("option", { value: id }, text))))));
    }
    this.ids.forEach((id, i) => { byId(`axis-${i}`).value = id; });
    byId("undo").disabled = !session.canUndo;
    byId("redo").disabled = !session.canRedo;
    byId("reset").hidden = !session.edited;
    byId("aim").hidden = this.frameVersion === session.version;
    byId("draw-class").hidden = this.tool !== "draw";
    byId("space-caption").textContent = this.#caption();
    const chosen = session.selection.size;
    byId("chosen").hidden = !chosen;
    if (chosen) byId("chosen-count").textContent = `${count(chosen, "point")} selected`;
  }

  #caption() {
    const { session } = this, parts = [];
    const discriminants = this.frame.axes.filter(({ id }) => id.startsWith("ld")).length;
    if (this.tool === "draw") parts.push("Click to add a point of the chosen class.");
    else if (this.tool === "lasso") parts.push("Draw around points to select them; Delete removes them.");
    else parts.push("Drag a point, or the mean of a class (large outline); click a point to explain it.");
    if (discriminants) parts.push("Discriminants are the directions that separate the class means best, in standard deviations within classes.");
    parts.push("Tint: predicted class, stronger where the model is more certain. Ring: misclassified.");
    if (session.degree === 1 && session.choice.model !== "nearest_mean") parts.push("Dotted: 95% of a class, if it is normal.");
    if (session.used.length > 2) parts.push("Regions are those of the average row at each place.");
    if (!session.complete) parts.push(`Shading: all ${session.facts.rows.toLocaleString("en")} rows; points: a random sample of ${session.n.toLocaleString("en")}.`);
    return parts.join(" ");
  }
}

function axisTitle({ title, share }) {
  const short = title.length > 44 ? `${title.slice(0, 43)}…` : title;
  return share === undefined || share > 0.9995 ? short : `${short} (${percent(share, 0)} of the separation)`;
}

/** Round values between two ends. */
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((size) => size >= rough);
  const values = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) values.push(i === 0 ? 0 : i * step);
  return values;
}

function argmaxOf(scores, K) {
  const out = new Int32Array(scores.length / K);
  for (let i = 0; i < out.length; i++) {
    for (let k = 1; k < K; k++) if (scores[i * K + k] > scores[i * K + out[i]]) out[i] = k;
  }
  return out;
}

/** For each class that leads somewhere, its score minus the largest of the others, at every node. */
function leads(scores, n, K) {
  const best = new Int32Array(n), top = new Float64Array(n), second = new Float64Array(n);
  const leading = new Set();
  for (let i = 0; i < n; i++) {
    let first = -Infinity, next = -Infinity, at = 0;
    for (let k = 0; k < K; k++) {
      const score = scores[i * K + k];
      if (score > first) {
        next = first;
        first = score;
        at = k;
      } else if (score > next) next = score;
    }
    best[i] = at;
    top[i] = first;
    second[i] = next;
    leading.add(at);
  }
  return [...leading].map((k) => {
    const lead = new Float64Array(n);
    for (let i = 0; i < n; i++) lead[i] = best[i] === k ? top[i] - second[i] : scores[i * K + k] - top[i];
    return lead;
  });
}

function leastCost(logs, costs, i, K) {
  if (!costs) {
    let most = -Infinity;
    for (let k = 0; k < K; k++) most = Math.max(most, logs[i * K + k]);
    return -Math.expm1(most);
  }
  let least = Infinity;
  for (let a = 0; a < K; a++) {
    let sum = 0;
    for (let k = 0; k < K; k++) sum += costs[a * K + k] * Math.exp(logs[i * K + k]);
    least = Math.min(least, sum);
  }
  return least;
}
