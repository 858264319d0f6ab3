/**
 * The table in the page, the model that is chosen, and everything that follows from both.
 *
 * The moments are those of all rows. The points are the rows that the page shows: all rows, or a
 * random sample of 5,000. Every change of a point updates the moments by a matrix of rank one.
 */

import {
  LeaveOneOut, LinearRule, Moments, MomentsError, argmax, canonicalDirections, decide, fit,
  logPosterior, logistic, selectColumns, symmetricEigen,
} from "./moments.js";
import { leftOutScores, workOf } from "./left_out.js";
import { certaintyOf, confusionOf, logLossOf, reliabilityOf, rocOf, totals } from "./measures.js";

export const MODELS = {
  lda: { title: "LDA", dials: ["shrinkage", "prior", "decision"],
    about: "Every class is a normal distribution, and all share one covariance. Boundaries are straight." },
  qda: { title: "QDA", dials: ["shrinkage", "prior", "decision"],
    about: "Every class is a normal distribution with a covariance of its own. Boundaries are curved." },
  rda: { title: "RDA", dials: ["pooling", "shrinkage", "prior", "decision"],
    about: "Between QDA and LDA: each covariance is pooled with that of all classes." },
  student: { title: "LDA, Student t", dials: ["shrinkage", "prior", "decision"],
    about: "LDA that allows for the uncertainty of its estimates: less certain with few rows." },
  nearest_mean: { title: "Nearest mean", dials: ["prior", "decision"],
    about: "A row belongs to the class with the nearest mean. Scales of the features matter." },
  ridge: { title: "Least squares, ridge", dials: ["ridge"],
    about: "Regression on class indicators with a penalty. Its values are not probabilities." },
  logistic: { title: "Logistic regression", dials: ["ridge", "prior", "decision"],
    about: "Models the probabilities directly, without assuming normal distributions." },
};
const INLINE = 1e7; // multiplications of a leave-one-out or a logistic fit that may run within a frame
const SAMPLE = 4e6; // multiplications for the points that are left out at once, while the worker does all
const FEWEST = 40, MOST = 500; // of these points
const PATIENCE = 400; // milliseconds after which the worker leaves a job for a newer one
const UNDO = 40;
const MOST_TERMS = 120; // features, squares and products that may be fitted while a dial moves

export const DEFAULTS = {
  model: "lda", degree: 1, pooling: 0.5, shrinkage: 0, ridge: 0.1, prior: null, cost: null, reject: null, off: [],
};

export class Session {
  #listeners = [];
  #pending = false;
  #parts = {}; // derived values, by what they depend on
  #undo = [];
  #redo = [];
  #worker = null;
  #sent = null; // the data that the worker has
  #job = null;
  #next = null; // the job that follows
  #wanted = null; // key of the result that is shown next
  #jobs = 0;
  #dial = null; // the last dial, and when it moved
  #slow = {}; // last results of the worker
  #normalised = null; // log posteriors, and the scores they follow from
  #decided = null; // actions and counts, and what they follow from
  #measured = null; // curves that follow from the actions
  #planes = null; // covariances along the axes

  constructor(facts, arrays) {
    this.facts = facts;
    this.labels = facts.classes.map(({ label }) => label);
    this.K = this.labels.length;
    this.features = facts.features;
    this.d = facts.features.length;
    this.columns = facts.columns.filter(({ features }) => features.length);
    let at = 0;
    for (const column of this.columns) {
      column.places = column.features.map(() => at++);
    }
    this.moments = new Moments({ ...arrays, labels: this.labels, features: this.features, detail: facts.detail });
    this.rows = arrays.points.slice();
    this.codes = arrays.codes.slice();
    this.numbers = arrays.numbers.slice(); // row of the table; -1 for a point that was changed
    this.original = { rows: arrays.points, codes: arrays.codes, numbers: arrays.numbers, moments: this.moments };
    this.shifts = this.labels.map(() => null);
    this.complete = facts.rows === arrays.codes.length; // whether every row is shown
    this.edited = false;
    this.choice = structuredClone(DEFAULTS);
    this.selection = new Set(); // points that are highlighted
    this.current = null; // point or row that "What if" explains
    this.version = 0;
  }

  get n() {
    return this.codes.length;
  }

  // --- changes ---

  /** Call `listener(session)` once a frame after changes. */
  onChange(listener) {
    this.#listeners.push(listener);
  }

  changed() {
    if (this.#pending) return;
    this.#pending = true;
    requestAnimationFrame(() => {
      this.#pending = false;
      const began = performance.now();
      this.update();
      for (const listener of this.#listeners) listener(this);
      performance.measure("studio-frame", { start: began, end: performance.now() });
    });
  }

  choose(change) {
    const dial = Object.keys(change).join(), now = performance.now();
    if (dial !== this.#dial?.name || now - this.#dial.at > 1000) this.#store(); // a gesture is one step
    this.#dial = { name: dial, at: now };
    Object.assign(this.choice, change);
    this.changed();
  }

  #state() {
    const { rows, codes, numbers, shifts, edited, choice } = this;
    return { rows, codes, numbers, shifts: [...shifts], edited, moments: this.moments, choice: structuredClone(choice) };
  }

  #store() {
    this.#undo.push(this.#state());
    if (this.#undo.length > UNDO) this.#undo.shift();
    this.#redo = [];
  }

  /** Store the state before a gesture, so that it can be undone; then change only copies. */
  remember() {
    this.#store();
    this.#dial = null;
    this.rows = this.rows.slice();
    this.codes = this.codes.slice();
    this.numbers = this.numbers.slice();
    this.moments = this.moments.clone();
  }

  /** Start with a choice that cannot be undone. */
  begin(choice) {
    Object.assign(this.choice, choice);
  }

  get canUndo() {
    return this.#undo.length > 0;
  }

  get canRedo() {
    return this.#redo.length > 0;
  }

  undo() {
    if (this.canUndo) this.#restore(this.#undo, this.#redo);
  }

  redo() {
    if (this.canRedo) this.#restore(this.#redo, this.#undo);
  }

  #restore(from, to) {
    to.push(this.#state());
    Object.assign(this, from.pop());
    this.selection.clear();
    this.current = null;
    this.#dial = null;
    this.version++;
    this.changed();
  }

  /** Back to the rows of the table. */
  reset() {
    this.remember();
    const { rows, codes, numbers, moments } = this.original;
    Object.assign(this, { rows: rows.slice(), codes: codes.slice(), numbers: numbers.slice(), moments });
    this.shifts = this.labels.map(() => null);
    this.edited = false;
    this.selection.clear();
    this.current = null;
    this.version++;
    this.changed();
  }

  row(i) {
    return this.rows.subarray(i * this.d, (i + 1) * this.d);
  }

  /** Move a point, or change its class. Call `remember` before the first of a gesture. */
  move(i, row, code = this.codes[i]) {
    this.#summed(() => this.moments.move(this.row(i), this.codes[i], row, code), () => {
      this.rows.set(row, i * this.d);
      this.codes[i] = code;
      this.numbers[i] = -1;
    });
  }

  add(row, code) {
    this.#summed(() => this.moments.add(row, code), () => {
      const rows = new Float64Array(this.rows.length + this.d);
      rows.set(this.rows);
      rows.set(row, this.rows.length);
      this.rows = rows;
      this.codes = Int32Array.of(...this.codes, code);
      this.numbers = Int32Array.of(...this.numbers, -1);
    });
  }

  remove(points) {
    const gone = new Set(points), left = [];
    for (let i = 0; i < this.n; i++) if (!gone.has(i)) left.push(i);
    this.#summed(() => gone.forEach((i) => this.moments.remove(this.row(i), this.codes[i])), () => {
      const rows = new Float64Array(left.length * this.d);
      left.forEach((i, to) => rows.set(this.row(i), to * this.d));
      this.rows = rows;
      this.codes = Int32Array.from(left, (i) => this.codes[i]);
      this.numbers = Int32Array.from(left, (i) => this.numbers[i]);
      this.selection.clear();
      this.current = null;
    });
  }

  moveClass(code, shift) {
    this.moments.moveClass(code, shift);
    for (let i = 0; i < this.n; i++) {
      if (this.codes[i] === code) for (let j = 0; j < this.d; j++) this.rows[i * this.d + j] += shift[j];
    }
    const before = this.shifts[code] ?? new Float64Array(this.d);
    this.shifts = this.shifts.slice();
    this.shifts[code] = before.map((value, j) => value + shift[j]);
    this.#edit();
  }

  /** Update the moments; where that would lose digits, sum the points again. */
  #summed(update, change) {
    try {
      update();
      change();
    } catch (error) {
      if (!(error instanceof MomentsError) || error.kind !== "precision" || !this.complete) throw error;
      change();
      this.sumAgain();
    }
    this.#edit();
  }

  /** Sum the moments of the points, so that no rounding of many updates remains. */
  sumAgain() {
    if (!this.complete) return;
    const { labels, features, moments } = this;
    this.moments = Moments.ofRows(this.rows, this.codes,
      { labels, features, origin: moments.origin, detail: moments.detail });
    this.version++;
    this.changed();
  }

  #edit() {
    this.edited = true;
    this.version++;
    this.changed();
  }

  /** The edits, as the server takes them; null without edits. */
  edits() {
    if (!this.edited) return null;
    const here = new Set(this.numbers), added = [];
    for (let i = 0; i < this.n; i++) if (this.numbers[i] < 0) added.push([this.codes[i], Array.from(this.row(i))]);
    return {
      removed: Array.from(this.original.numbers).filter((number) => !here.has(number)),
      shifts: this.shifts.flatMap((shift, k) => (shift ? [[k, Array.from(shift)]] : [])),
      added,
    };
  }

  // --- what follows ---

  /** Columns of features that are in use. */
  get used() {
    return this.#part("used", this.choice.off.join("\n"), () => {
      const off = new Set(this.choice.off);
      return this.columns.filter(({ name }) => !off.has(name)).flatMap(({ places }) => places);
    });
  }

  get usedMoments() {
    return this.#part("moments", `${this.version} ${this.used}`, () =>
      (this.used.length === this.d ? this.moments : this.moments.select(this.used)));
  }

  get usedRows() {
    return this.#part("rows", `${this.version} ${this.used}`, () => this.selectUsed(this.rows));
  }

  selectUsed(rows) {
    return this.used.length === this.d ? Float64Array.from(rows) : selectColumns(rows, this.d, this.used);
  }

  /** Whether squares and products of the features can be added. */
  get canExpand() {
    const d = this.used.length;
    return this.complete && (d * (d + 3)) / 2 <= MOST_TERMS && this.choice.model !== "nearest_mean";
  }

  get degree() {
    return this.choice.degree === 2 && this.canExpand ? 2 : 1;
  }

  /** Rows of the features in use with their squares and products, as `Basis(degree=2)` has them. */
  expand(rows) {
    if (this.degree === 1) return rows;
    const d = this.used.length, m = (d * (d + 3)) / 2, n = rows.length / d, out = new Float64Array(n * m);
    const origin = this.used.map((j) => this.facts.basis_origin[j]);
    for (let i = 0; i < n; i++) {
      let at = i * m;
      for (let j = 0; j < d; j++) out[at++] = rows[i * d + j];
      for (let j = 0; j < d; j++) {
        const u = rows[i * d + j] - origin[j];
        for (let l = j; l < d; l++) out[at++] = u * (rows[i * d + l] - origin[l]);
      }
    }
    return out;
  }

  /** Rows and moments that the model is fitted to. */
  get fitRows() {
    return this.#part("fit rows", `${this.version} ${this.used} ${this.degree}`, () => this.expand(this.usedRows));
  }

  get fitMoments() {
    if (this.degree === 1) return this.usedMoments;
    return this.#part("fit moments", `${this.version} ${this.used}`, () =>
      Moments.ofRows(this.fitRows, this.codes, { labels: this.labels, detail: this.moments.detail }));
  }

  #part(name, key, compute) {
    if (this.#parts[name]?.key !== key) this.#parts[name] = { key, value: compute() };
    return this.#parts[name].value;
  }

  has(dial) {
    return MODELS[this.choice.model].dials.includes(dial);
  }

  /** Options of `fit` in moments.js. */
  options(withPrior = true) {
    const { model, pooling, shrinkage, ridge, prior } = this.choice;
    const options = {
      lda: { model: "lda", shrinkage }, qda: { model: "qda", shrinkage }, rda: { model: "rda", pooling, shrinkage },
      student: { model: "lda", shrinkage, predictive: "student" }, nearest_mean: { model: "nearest_mean" },
      ridge: { model: "least_squares", ridge }, logistic: {},
    }[model];
    return withPrior && prior && this.has("prior") ? { ...options, prior } : options;
  }

  /** The model and its result: rule, log posteriors of the points, decisions, counts. */
  update() {
    this.problem = null;
    this.updating = false;
    try {
      this.rule = this.choice.model === "logistic" ? this.#logistic() : fit(this.fitMoments, this.options());
      this.warnings = this.rule?.warnings ?? [];
      this.logs = this.rule ? this.#heldOut() : null;
    } catch (error) {
      if (!(error instanceof MomentsError)) throw error;
      this.problem = error.message;
      this.rule = this.logs = null;
    }
    const { cost, reject } = this.choice, decides = this.has("decision"), { logs, codes, K } = this;
    const key = JSON.stringify([decides, cost, reject]), known = this.#decided;
    if (known?.logs !== logs || known.codes !== codes || known.key !== key || known.version !== this.version) {
      const actions = logs && Array.from(decide(logs, K, decides
        ? { cost: cost && cost.flat(), reject: reject === null ? null : { cost: reject } } : {}));
      for (let i = 0; actions && i < this.n; i++) if (Number.isNaN(logs[i * K])) actions[i] = null;
      const confusion = actions && confusionOf(actions, codes, K);
      this.#decided = { logs, codes, key, version: this.version, actions, confusion, totals: confusion && totals(confusion, K) };
      this.#measured = null;
    }
    const { actions, confusion, totals: sums } = this.#decided;
    Object.assign(this, { actions, confusion, totals: sums });
  }

  /** How the points were predicted, in words. */
  get howPredicted() {
    if (this.choice.model === "logistic") return "on the points of the fit";
    return "each point predicted by the model fitted to all others";
  }

  /** Log posteriors of the points, each by the model without it. */
  #heldOut() {
    const { K } = this;
    if (this.choice.model === "logistic") return this.#withPrior(logPosterior(this.rule.scores(this.fitRows), K));
    const data = `${this.version} ${this.used} ${this.degree}`;
    const options = this.options(), { fitMoments: moments } = this;
    const left = this.#part("left", data, () => new LeaveOneOut(moments, this.fitRows, this.codes));
    const equal = { ...options, prior: new Array(K).fill(1 / K) }, key = `${data} ${JSON.stringify(equal)}`;
    const work = workOf(options, moments.d, K);
    if (this.n * work < INLINE) return this.#leftOut(this.#part("scores", key, () => leftOutScores(left, equal)));
    const { origin, weight, weight2, rows, mean, scatter, lost, labels, features, detail } = moments;
    const scores = this.#ask("left", key, data, () => ({
      rows: this.fitRows, codes: this.codes,
      moments: { origin, weight, weight2, rows, mean, scatter, lost, labels, features, detail },
    }), { kind: "leave-one-out", options: equal }, ({ scores: answer }) => answer);
    if (!this.updating) return scores && this.#leftOut(scores);
    return this.#leftOut(this.#part("some scores", key, () => this.#someScores(data, equal, work)));
  }

  /** Scores of some points, each without itself; NaN for the others, until the worker has them. */
  #someScores(data, options, work) {
    const { n, K, codes } = this, size = Math.min(Math.max(Math.floor(SAMPLE / work), FEWEST), MOST, n);
    const sample = Int32Array.from({ length: size }, (_, j) => Math.floor(((j + 0.5) * n) / size));
    const { left, chosen } = this.#part("some", `${data} ${size}`, () => {
      const d = this.fitMoments.d, rows = new Float64Array(size * d);
      sample.forEach((i, j) => rows.set(this.fitRows.subarray(i * d, i * d + d), j * d));
      return { left: new LeaveOneOut(this.fitMoments, rows, sample.map((i) => codes[i])), chosen: sample };
    });
    const scores = new Float64Array(n * K).fill(NaN), some = leftOutScores(left, options);
    chosen.forEach((i, j) => scores.set(some.subarray(j * K, j * K + K), i * K));
    return scores;
  }

  /** Log posteriors from scores with equal priors: a prior only adds its logarithm. */
  #leftOut(scores) {
    const { K, codes } = this, { prior } = this.choice, { weight } = this.fitMoments;
    return this.#cached("left", [scores, prior, codes, this.choice.model, this.version], () => {
      if (this.choice.model === "ridge") return logPosterior(this.#scores(scores), K);
      const logs = Array.from({ length: K }, (_, own) => // by the class of the row that is left out
        Float64Array.from(prior ?? (this.choice.model === "nearest_mean" ? new Array(K).fill(1) : weight),
          (value, k) => Math.log(prior || this.choice.model === "nearest_mean" ? value : Math.max(value - (k === own ? 1 : 0), 0))));
      const sums = new Float64Array(scores.length);
      for (let i = 0, at = 0; i < codes.length; i++) {
        const own = logs[codes[i]];
        for (let k = 0; k < K; k++, at++) sums[at] = scores[at] + own[k];
      }
      return logPosterior(sums, K);
    });
  }

  /** A value that is computed again only if one of its parts is another object. */
  #cached(name, parts, compute) {
    const known = this.#normalised;
    if (known?.name !== name || !parts.every((part, i) => part === known.parts[i])) {
      this.#normalised = { name, parts, value: compute() };
    }
    return this.#normalised.value;
  }

  /** Fitted values of least squares, clipped, so that logarithms and decisions are defined. */
  #scores(scores) {
    if (this.choice.model !== "ridge") return scores;
    return scores.map((value) => Math.log(Math.max(value, 1e-300)));
  }

  #logistic() {
    const { fitRows: rows, codes, labels, K } = this, { ridge } = this.choice, d = rows.length / codes.length;
    const features = this.degree === 1 ? this.used.map((j) => this.features[j]) : undefined;
    const options = { labels, features, ridge };
    const width = (d + 1) * (K - 1), key = `${this.version} ${this.used} ${this.degree} ${ridge}`;
    if (this.n * width * width * 8 < INLINE) {
      return this.#part("logistic", key, () => {
        const { rule, converged, separated } = logistic(rows, codes, options);
        return Object.assign(rule, { converged, separated });
      });
    }
    const answer = this.#ask("logistic", key, `logistic ${this.version} ${this.used} ${this.degree}`, () => ({ rows, codes }),
      { kind: "logistic", options }, (given) => given);
    if (!answer || answer.rule.origin.length !== d) return null;
    const { coef, intercept, ...fields } = answer.rule;
    const names = features ?? Array.from(answer.rule.origin, (_, j) => `x${j}`);
    return new LinearRule({ ...fields, labels, features: names }, { coef, intercept });
  }

  /** Log posteriors of logistic regression with other priors than the class shares. */
  #withPrior(logs) {
    const { prior } = this.choice;
    if (!prior || this.choice.model !== "logistic") return logs;
    const { weight } = this.usedMoments, total = weight.reduce((a, b) => a + b, 0), K = this.K;
    const shift = prior.map((value, k) => Math.log(value) - Math.log(weight[k] / total));
    return logPosterior(logs.map((value, i) => value + shift[i % K]), K);
  }

  /** Log posteriors of rows (all features) by the fitted model. */
  logPosteriorOf(rows) {
    const scores = this.rule.scores(this.expand(this.selectUsed(rows)));
    return this.#withPrior(logPosterior(this.#scores(scores), this.K));
  }

  /** Scores of points on a plane of the features in use, with the priors of logistic regression. */
  planeScores(point, axes, nodes) {
    const scores = this.degree === 1 ? this.rule.onPlane(point, axes).scores(nodes)
      : this.rule.scores(this.expand(rowsOnPlane(point, axes, nodes))), { prior } = this.choice;
    if (!prior || this.choice.model !== "logistic") return scores;
    return this.#withPrior(logPosterior(scores, this.K));
  }

  /**
   * The last result of the worker for `key`; a new one is computed if there is none. The worker gets
   * the data, named by `dataKey`, once. While it computes, only the newest job waits.
   */
  #ask(name, key, dataKey, data, message, use) {
    const known = this.#slow[name];
    this.#wanted = key;
    if (known?.key === key) {
      this.#next = null;
      return known.value;
    }
    this.updating = true;
    if (this.#job?.key === key) this.#next = null;
    else {
      this.#next = { name, key, dataKey, data, message, use };
      if (this.#job && performance.now() - this.#job.began > PATIENCE) {
        this.#worker.terminate();
        this.#worker = this.#job = null;
      }
      if (!this.#job) this.#start();
    }
    return known?.value ?? null;
  }

  #start() {
    const { name, key, dataKey, data, message, use } = this.#next, id = ++this.#jobs;
    this.#next = null;
    if (!this.#worker) {
      this.#worker = new Worker("/assets/worker.js", { type: "module" });
      this.#sent = null;
    }
    this.#job = { id, key, began: performance.now() };
    this.#worker.onmessage = ({ data: answer }) => {
      if (answer.id !== this.#job?.id) return;
      performance.measure("studio-worker", { start: this.#job.began, end: performance.now() });
      this.#job = null;
      if (this.#slow[name]?.key !== this.#wanted) this.#slow[name] = { key, value: answer.error ? null : use(answer) };
      this.problemOfWorker = answer.error ?? null;
      if (this.#next) this.#start();
      this.changed();
    };
    this.#worker.postMessage({ id, ...message, data: this.#sent === dataKey ? null : data() });
    this.#sent = dataKey;
  }

  close() {
    this.#worker?.terminate();
    this.#listeners = [];
  }

  /** Counts of the points. */
  summary() {
    return { rows: this.n, confusion: this.confusion, totals: this.totals, of: "points" };
  }

  /** Counts and curves of the points, for the class `k`. */
  measures(k) {
    const { logs, codes, K } = this;
    if (this.#measured?.k === k) return this.#measured.value;
    const value = {
      ...this.summary(),
      curve: rocOf(logs, codes, K, k), reliability: this.has("decision") ? reliabilityOf(logs, codes, K, k) : null,
      certainty: certaintyOf(logs, codes, K), log_loss: this.has("decision") ? logLossOf(logs, codes, K) : null,
    };
    this.#measured = { k, value };
    return value;
  }

  /** Codes that the model predicts for the points when they are left out. */
  get predicted() {
    return argmax(this.logs, this.K);
  }

  // --- geometry ---

  /** Mean, total covariance and covariance within classes of the features in use. */
  get spread() {
    return this.#part("spread", `${this.version} ${this.used}`, () => {
      const { usedMoments: sums, K } = this, d = this.used.length;
      const total = sums.weight.reduce((a, b) => a + b, 0), centre = sums.centre();
      const covariance = sums.pooled().map((value) => value / total);
      const within = covariance.slice();
      for (let k = 0; k < K; k++) {
        const share = sums.weight[k] / total;
        for (let i = 0; i < d; i++) {
          const a = sums.mean[k * d + i] - (centre[i]);
          for (let j = 0; j < d; j++) covariance[i * d + j] += share * a * (sums.mean[k * d + j] - centre[j]);
        }
      }
      return { centre: centre.map((value, j) => value + sums.origin[j]), covariance, within };
    });
  }

  /** Values p'Cp, p'Cq and q'Cq of a matrix, and of its diagonal, for two directions. */
  #forms(C, at, [p, q]) {
    const d = p.length, full = [0, 0, 0], diagonal = [0, 0, 0];
    for (let i = 0; i < d; i++) {
      let cp = 0, cq = 0;
      for (let j = 0; j < d; j++) {
        const value = C[at + i * d + j];
        cp += value * p[j];
        cq += value * q[j];
      }
      const own = C[at + i * d + i];
      [p[i] * cp, q[i] * cp, q[i] * cq].forEach((value, form) => { full[form] += value; });
      [p[i] * p[i], p[i] * q[i], q[i] * q[i]].forEach((value, form) => { diagonal[form] += own * value; });
    }
    return { full, diagonal };
  }

  /** Covariance of class k under the model along two directions, up to shrinkage: three numbers. */
  classCovariance(k, directions) {
    const { usedMoments: sums } = this, d = this.used.length, { model, pooling, shrinkage } = this.choice;
    if (this.#planes?.sums !== sums || this.#planes.version !== this.version || this.#planes.directions !== directions) {
      const within = this.#forms(this.spread.within, 0, directions);
      const own = sums.detail !== "class" ? null
        : Array.from({ length: this.K }, (_, c) => this.#forms(sums.scatter, c * d * d, directions));
      this.#planes = { sums, version: this.version, directions, within, own };
    }
    const { within, own } = this.#planes, pooled = model === "rda" ? pooling : model === "qda" && own ? 0 : 1;
    const toward = ["lda", "qda", "rda", "student"].includes(model) ? shrinkage : 0;
    const rest = own ? (1 - pooled) / Math.max(sums.weight[k] - 1, 1) : 0;
    const mixed = (part, form) => pooled * within[part][form] + (rest ? rest * own[k][part][form] : 0);
    return [0, 1, 2].map((form) => (1 - toward) * mixed("full", form) + toward * mixed("diagonal", form));
  }

  /** Axes that can be drawn: discriminants, then features. */
  axisNames() {
    const r = Math.min(this.K - 1, this.used.length);
    const names = Array.from({ length: r }, (_, i) => ({ id: `ld${i + 1}`, title: `Discriminant ${i + 1}` }));
    if (r === 1) {
      names.push(this.used.length > 1 ? { id: "rest", title: "Largest spread besides" }
        : { id: "jitter", title: "Spread out at random" });
    }
    this.used.forEach((j) => names.push({ id: `f${j}`, title: this.features[j], feature: j }));
    return names;
  }

  /** Direction (in the features in use) of an axis, and the value at its zero. */
  axis(id) {
    const d = this.used.length, { centre } = this.spread, zero = new Float64Array(d);
    if (id === "jitter") return { id, title: "", direction: zero, offset: 0 };
    const feature = /^f(\d+)$/.exec(id);
    if (feature) {
      const place = this.used.indexOf(Number(feature[1]));
      zero[place] = 1;
      return { id, title: this.features[Number(feature[1])], direction: zero, offset: centre[place] };
    }
    const { directions, r, eigenvalues } = canonicalDirections(this.usedMoments), column = (i) =>
      Float64Array.from({ length: d }, (_, j) => directions[j * r + i]);
    if (id === "rest") return { id, title: "Largest spread besides", direction: this.#rest(column(0)), offset: 0 };
    const i = Number(id.slice(2)) - 1, share = eigenvalues[i] / eigenvalues.reduce((a, b) => a + b, 0);
    if (i >= r) return { id, title: `Discriminant ${i + 1}`, direction: this.#rest(column(0)), offset: 0 };
    return { id, title: `Discriminant ${i + 1}`, share, direction: column(i), offset: 0 };
  }

  /** The direction of largest variance, of standardised features, that is uncorrelated with `first`. */
  #rest(first) {
    const d = first.length, { covariance } = this.spread;
    const sd = Float64Array.from({ length: d }, (_, j) => Math.sqrt(covariance[j * d + j]) || 1);
    const R = covariance.map((value, i) => value / sd[Math.floor(i / d)] / sd[i % d]);
    const v = first.map((value, j) => value * sd[j]), Rv = multiply(R, v, d), size = inner(v, Rv);
    const M = R.map((value, i) => value - (size > 0 ? (Rv[Math.floor(i / d)] * Rv[i % d]) / size : 0));
    const { vectors } = symmetricEigen(M, d);
    const u = Float64Array.from({ length: d }, (_, j) => vectors[j * d + d - 1]);
    const along = size > 0 ? inner(u, Rv) / size : 0, w = u.map((value, j) => (value - along * v[j]) / sd[j]);
    const { within } = this.spread, scale = Math.sqrt(inner(w, multiply(within, w, d))) || 1;
    return w.map((value) => value / scale);
  }

  /**
   * Two axes, and how to come back from them: x = centre + s lift[0] + t lift[1] is the row that is
   * expected, by linear regression on the two coordinates, at (s, t).
   */
  frame(ids) {
    const d = this.used.length, { centre, covariance } = this.spread;
    const axes = ids.map((id) => this.axis(id)), P = axes.map(({ direction }) => direction);
    const C = P.map((p) => multiply(covariance, p, d));
    const a = inner(P[0], C[0]), b = inner(P[0], C[1]), c = inner(P[1], C[1]), det = a * c - b * b;
    const lift = !(det > 1e-12 * a * c)
      ? [C[0].map((value) => value / (a || 1)), new Float64Array(d)]
      : [C[0].map((value, j) => (c * value - b * C[1][j]) / det), C[1].map((value, j) => (a * value - b * C[0][j]) / det)];
    return { axes, directions: P, ids: [...ids], centre, lift, used: this.used, flat: ids[1] === "jitter" };
  }
}

/** Rows point + s axes[0] + t axes[1] for nodes (s, t). */
function rowsOnPlane(point, axes, nodes) {
  const d = point.length, n = nodes.length / 2, rows = new Float64Array(n * d);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < d; j++) rows[i * d + j] = point[j] + nodes[2 * i] * axes[0][j] + nodes[2 * i + 1] * axes[1][j];
  }
  return rows;
}

export function inner(a, b) {
  let total = 0;
  for (let j = 0; j < a.length; j++) total += a[j] * b[j];
  return total;
}

function multiply(matrix, v, d) {
  const out = new Float64Array(d);
  for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) out[i] += matrix[i * d + j] * v[j];
  return out;
}
