/**
 * Linear and Gaussian classifiers fitted from class moments, while a page is open.
 *
 * docs/moments_js.md describes the functions. Conventions and numbers are those of the Python package
 * (tests/unit/report/test_moments_js.py). Saved models predict by the JavaScript export instead.
 *
 * Matrices are row-major Float64Arrays of N rows, d features and K classes; codes number the classes
 * from 0. Means are offsets from an origin near the data, and rules score (x - origin) . w + b, so
 * that columns with a mean of 1e8 lose no digits. All columns have the unit 1 (`anchor.unit`).
 */

const EPS = Number.EPSILON;
const ACCURATE = 1e-10; // reciprocal condition number from which solutions have six correct digits
const FLOOR = 1e-12; // variance, relative to the total, of a column that varies only between classes
const DIGITS = 6; // a removal that leaves fewer correct digits is an error
const ROUNDING = 1e-9; // differences below this multiple of a weight count as rounding
const TIE = 1e-9; // expected costs that differ by less, relatively, count as equal
const PER_FEATURE = 2; // degrees of freedom per feature below which a covariance is imprecise

export const REJECT = -1; // action of a rejected row

/** An input that cannot be used; `kind` names the reason. */
export class MomentsError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "MomentsError";
    this.kind = kind;
  }
}

function fail(kind, message) {
  throw new MomentsError(kind, message);
}

const zeros = (n) => new Float64Array(n);
const ones = (n) => new Float64Array(n).fill(1);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const largest = (values) => values.reduce((best, value) => Math.max(best, value), 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function dot(a, b, n, i = 0, j = 0) {
  let total = 0;
  for (let k = 0; k < n; k++) total += a[i + k] * b[j + k];
  return total;
}

// --- linear algebra ---

/** Lower factor L of a symmetric matrix A = L L'; null if A is not positive definite. */
export function cholesky(a, d) {
  const l = zeros(d * d);
  for (let i = 0; i < d; i++) {
    for (let j = 0; j <= i; j++) {
      const rest = a[i * d + j] - dot(l, l, j, i * d, j * d);
      if (j < i) l[i * d + j] = rest / l[j * d + j];
      else if (rest > 0) l[i * d + i] = Math.sqrt(rest);
      else return null;
    }
  }
  return l;
}

/** Inverse of a lower triangular matrix. */
export function invertLower(l, d) {
  const x = zeros(d * d);
  for (let i = 0; i < d; i++) {
    const row = i * d;
    for (let k = 0; k < i; k++) {
      const factor = l[row + k];
      if (factor !== 0) for (let j = 0; j <= k; j++) x[row + j] -= factor * x[k * d + j];
    }
    const pivot = l[row + i];
    for (let j = 0; j < i; j++) x[row + j] /= pivot;
    x[row + i] = 1 / pivot;
  }
  return x;
}

/** Solution x of L x = b, with L lower triangular. */
export function solveLower(l, b, d) {
  const x = Float64Array.from(b);
  for (let i = 0; i < d; i++) x[i] = (x[i] - dot(l, x, i, i * d)) / l[i * d + i];
  return x;
}

/** Solution x of L' x = b, with L lower triangular. */
export function solveUpper(l, b, d) {
  const x = Float64Array.from(b);
  for (let i = d - 1; i >= 0; i--) {
    x[i] /= l[i * d + i];
    for (let j = 0; j < i; j++) x[j] -= l[i * d + j] * x[i];
  }
  return x;
}

/**
 * Eigenvalues in increasing order and eigenvectors (in columns) of a symmetric matrix A: the singular
 * vectors of A + c I, which is positive semidefinite.
 */
export function symmetricEigen(a, d) {
  const c = norms(a, d)[0], shifted = a.slice();
  for (let j = 0; j < d; j++) shifted[j * (d + 1)] += c;
  const { right } = svd(shifted, d, d), vectors = zeros(d * d), values = zeros(d);
  for (let j = 0; j < d; j++) {
    const v = Float64Array.from(range(d), (i) => right[i * d + d - 1 - j]);
    for (let i = 0; i < d; i++) {
      vectors[i * d + j] = v[i];
      values[j] += v[i] * dot(a, v, d, i * d);
    }
  }
  return { values, vectors };
}

/**
 * Thin singular value decomposition A = U diag(values) V' of an (n, d) matrix, by one-sided Jacobi
 * rotations, which give small singular values with high relative accuracy.
 *
 * Returns `left` (n, r), `values` (r) in decreasing order and `right` (d, r), with r = min(n, d).
 */
export function svd(a, n, d) {
  if (n < d) {
    const { left, values, right } = svd(transpose(a, n, d), d, n);
    return { left: right, values, right: left };
  }
  const u = transpose(a, n, d), v = identity(d); // rows of u and v are the columns
  for (let sweep = 0, rotated = true; rotated && sweep < 60; sweep++) {
    rotated = false;
    for (let p = 0; p < d - 1; p++) {
      for (let q = p + 1; q < d; q++) {
        const alpha = dot(u, u, n, p * n, p * n), beta = dot(u, u, n, q * n, q * n);
        const gamma = dot(u, u, n, p * n, q * n);
        if (Math.abs(gamma) <= 4 * EPS * Math.sqrt(alpha) * Math.sqrt(beta)) continue;
        rotated = true;
        const zeta = (beta - alpha) / (2 * gamma);
        const t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(zeta, 1));
        const c = 1 / Math.hypot(t, 1), s = c * t;
        rotate(u, n, p * n, q * n, c, s);
        rotate(v, d, p * d, q * d, c, s);
      }
    }
  }
  const size = Float64Array.from(range(d), (j) => Math.sqrt(dot(u, u, n, j * n, j * n)));
  const order = range(d).sort((i, j) => size[j] - size[i]);
  const left = zeros(n * d), right = zeros(d * d);
  order.forEach((from, to) => {
    for (let i = 0; i < n; i++) left[i * d + to] = size[from] > 0 ? u[from * n + i] / size[from] : 0;
    for (let i = 0; i < d; i++) right[i * d + to] = v[from * d + i];
  });
  return { left, values: Float64Array.from(order, (j) => size[j]), right };
}

function rotate(x, n, p, q, c, s) {
  for (let i = 0; i < n; i++) {
    const first = x[p + i], second = x[q + i];
    x[p + i] = c * first - s * second;
    x[q + i] = s * first + c * second;
  }
}

function identity(d) {
  const a = zeros(d * d);
  for (let i = 0; i < d; i++) a[i * d + i] = 1;
  return a;
}

function transpose(a, n, d) {
  const b = zeros(n * d);
  for (let i = 0; i < n; i++) for (let j = 0; j < d; j++) b[j * n + i] = a[i * d + j];
  return b;
}

const diagonalOf = (a, d) => Float64Array.from(range(d), (j) => a[j * d + j]);

/** Largest column sum of absolute values: the 1-norm; of the transpose, the infinity norm. */
function norms(a, d) {
  const columns = zeros(d);
  let rows = 0;
  for (let i = 0; i < d; i++) {
    let row = 0;
    for (let j = 0; j < d; j++) {
      const size = Math.abs(a[i * d + j]);
      columns[j] += size;
      row += size;
    }
    rows = Math.max(rows, row);
  }
  return [largest(columns), rows];
}

/** The block of a matrix with `columns` of its d rows and columns. */
function block(a, d, columns) {
  const m = columns.length, b = zeros(m * m);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < m; j++) b[i * m + j] = a[columns[i] * d + columns[j]];
  }
  return b;
}

/** Rows with some of their d columns. */
export function selectColumns(rows, d, columns) {
  const n = rows.length / d, m = columns.length, out = zeros(n * m);
  for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) out[i * m + j] = rows[i * d + columns[j]];
  return out;
}

/**
 * Products of four rows x (4, d) with r rows of `b` (r, d): out (4, r) = x b'.
 *
 * Row k of `b` is zero from column reach[k] on. Two rows of `b` at a time stay in registers.
 */
function multiply4(x, b, reach, r, d, out) {
  for (let k = 0; k < r; k += 2) {
    const other = k + 1 < r ? k + 1 : k;
    const length = Math.max(reach[k], reach[other]);
    let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    for (let j = 0, p = k * d, q = other * d; j < length; j++, p++, q++) {
      const u = b[p], v = b[q];
      const x0 = x[j], x1 = x[d + j], x2 = x[2 * d + j], x3 = x[3 * d + j];
      a0 += u * x0;
      a1 += u * x1;
      a2 += u * x2;
      a3 += u * x3;
      b0 += v * x0;
      b1 += v * x1;
      b2 += v * x2;
      b3 += v * x3;
    }
    out[k] = a0;
    out[r + k] = a1;
    out[2 * r + k] = a2;
    out[3 * r + k] = a3;
    out[other] = b0;
    out[r + other] = b1;
    out[2 * r + other] = b2;
    out[3 * r + other] = b3;
  }
}

/** Call `use(first row, number of rows, x (4, d))` for each four rows, as offsets from `origin`. */
function forFour(rows, d, origin, use) {
  const n = rows.length / d, x = zeros(4 * d);
  for (let i = 0; i < n; i += 4) {
    const count = Math.min(4, n - i);
    for (let t = 0; t < count; t++) {
      const from = (i + t) * d, to = t * d;
      for (let j = 0; j < d; j++) x[to + j] = rows[from + j] - origin[j];
    }
    use(i, count, x);
  }
}

/** Numbers as one Float64Array; nested arrays are flattened. */
const numbers = (values) =>
  values instanceof Float64Array ? values : Float64Array.from(Array.isArray(values) ? values.flat(3) : values);

// --- moments ---

/**
 * Weight, mean and scatter of K classes in d features. With u = x - origin and rows of weight w,
 *
 *   weight_k = sum w     mean_k = sum w u / weight_k     scatter_k = sum w (u - mean_k)(u - mean_k)'
 *
 * `scatter` is (K, d, d), or with detail "pooled" the (d, d) sum over the classes. `rows` counts the
 * rows, `weight2` sums squared weights, and `lost` bounds the error that removals have caused in
 * each variance: (K, d), or (d). `version` changes with every update.
 */
export class Moments {
  constructor({ origin, weight, mean, scatter, rows, weight2, lost, labels, features, unit, detail }) {
    this.origin = numbers(origin).slice();
    this.weight = numbers(weight).slice();
    const d = (this.d = this.origin.length), K = (this.K = this.weight.length);
    if (unit && numbers(unit).some((value) => value !== 1)) {
      fail("unit", "A column has a unit other than 1. Divide it by its unit first.");
    }
    this.mean = numbers(mean).slice();
    this.scatter = numbers(scatter).slice();
    this.detail = detail ?? (this.scatter.length === K * d * d ? "class" : "pooled");
    const blocks = this.detail === "class" ? K : 1;
    if (this.mean.length !== K * d || this.scatter.length !== blocks * d * d) {
      fail("shape", `mean or scatter does not fit ${K} classes and ${d} features.`);
    }
    this.rows = numbers(rows ?? this.weight).slice();
    this.weight2 = numbers(weight2 ?? this.rows).slice();
    this.lost = lost ? numbers(lost).slice() : zeros(blocks * d);
    this.labels = labels ? [...labels] : range(K);
    this.features = features ? [...features] : range(d).map((j) => `x${j}`);
    this.version = 0;
  }

  /** Moments of zero rows. */
  static empty({ classes, labels = range(classes), features, origin, detail = "class" }) {
    const K = labels.length, d = origin.length;
    const scatter = zeros((detail === "class" ? K : 1) * d * d);
    return new Moments({
      origin, weight: zeros(K), mean: zeros(K * d), scatter, labels, features, detail,
    });
  }

  /** Moments of rows (N, d); the default origin is the median of the first 1,024 rows. */
  static ofRows(rows, codes, { classes, labels, features, weight, origin, detail = "class" } = {}) {
    rows = numbers(rows);
    const n = codes.length, d = rows.length / n;
    const K = labels?.length ?? classes ?? codes.reduce((most, code) => Math.max(most, code + 1), 0);
    const moments = Moments.empty({
      labels: labels ?? range(K), features, origin: origin ?? medians(rows, Math.min(n, 1024), d), detail,
    });
    const { mean, scatter } = moments, u = zeros(d), first = zeros(K * d);
    for (let i = 0; i < n; i++) { // about the first row of the class, so that constants are exact
      const k = codes[i], w = weight ? weight[i] : 1;
      if (w === 0) continue;
      if (moments.rows[k] === 0) for (let j = 0; j < d; j++) first[k * d + j] = rows[i * d + j];
      moments.weight[k] += w;
      moments.weight2[k] += w * w;
      moments.rows[k] += 1;
      for (let j = 0; j < d; j++) mean[k * d + j] += w * (rows[i * d + j] - first[k * d + j]);
    }
    for (let k = 0; k < K; k++) {
      for (let j = k * d; moments.rows[k] && j < (k + 1) * d; j++) {
        mean[j] = mean[j] / moments.weight[k] + (first[j] - moments.origin[j - k * d]);
      }
    }
    for (let i = 0; i < n; i++) {
      const w = weight ? weight[i] : 1;
      if (w === 0) continue;
      for (let j = 0; j < d; j++) u[j] = rows[i * d + j] - moments.origin[j] - mean[codes[i] * d + j];
      addOuter(scatter, detail === "class" ? codes[i] * d * d : 0, u, w, d);
    }
    return moments;
  }

  clone() {
    return Object.assign(new Moments(this), { version: this.version });
  }

  /** Where the scatter of class k begins. */
  #at(k) {
    return this.detail === "class" ? k * this.d * this.d : 0;
  }

  #lostAt(k) {
    return this.detail === "class" ? k * this.d : 0;
  }

  /**
   * Add a row: with n' = n + w and step = u - mean,
   *
   *   mean' = mean + w/n' step          scatter' = scatter + n w/n' step step'
   */
  add(row, code, weight = 1) {
    return weight === 0 ? this : this.#join(code, this.#single(row, weight));
  }

  /** A row as a class of its own. */
  #single(row, weight) {
    const mean = this.origin.map((value, j) => row[j] - value);
    return { mean, weight, weight2: weight * weight, rows: 1 };
  }

  /** Class k of other moments, about the origin of these. */
  #classOf(other, k) {
    const { d } = this, own = other.detail === "class";
    return {
      mean: this.origin.map((value, j) => other.mean[k * d + j] + (other.origin[j] - value)),
      weight: other.weight[k], weight2: other.weight2[k], rows: other.rows[k],
      scatter: own && other.scatter.subarray(k * d * d, (k + 1) * d * d),
      lost: own && other.lost.subarray(k * d, (k + 1) * d),
    };
  }

  #join(code, { mean: theirs, weight, weight2, rows, scatter: added, lost }) {
    const { d, mean, scatter } = this, n = this.weight[code], share = weight / (n + weight);
    const step = theirs.map((value, j) => value - mean[code * d + j]), start = this.#at(code);
    addOuter(scatter, start, step, n * share, d);
    for (let j = 0; j < d; j++) mean[code * d + j] += share * step[j];
    if (added) added.forEach((value, i) => { scatter[start + i] += value; });
    if (lost) lost.forEach((value, j) => { this.lost[code * d + j] += value; });
    this.weight[code] = n + weight;
    this.weight2[code] += weight2;
    this.rows[code] += rows;
    this.version++;
    return this;
  }

  /**
   * Remove a row that is included: with n' = n - w and step = mean - u,
   *
   *   mean' = mean + w/n' step          scatter' = scatter - w n/n' step step'
   *
   * If a variance would have fewer than `digits` correct digits, nothing is removed, and an error of
   * kind "precision" is thrown.
   */
  remove(row, code, weight = 1, { digits = DIGITS } = {}) {
    if (weight === 0) return this;
    return this.#part(code, this.#single(row, weight), digits);
  }

  #part(code, { mean: theirs, weight, weight2, rows, scatter: removed, lost: otherLost }, digits) {
    const { d, mean, scatter, lost } = this, n = this.weight[code], left = this.rows[code] - rows;
    if (left < 0 || weight > n * (1 + ROUNDING) || (left === 0 && Math.abs(weight - n) > ROUNDING * n)) {
      fail("not_included", `Class '${this.labels[code]}' has fewer rows, or less weight.`);
    }
    const start = this.#at(code), lostAt = this.#lostAt(code);
    const saved = [mean.slice(code * d, code * d + d), scatter.slice(start, start + d * d),
      lost.slice(lostAt, lostAt + d), this.weight[code], this.weight2[code], this.rows[code]];
    const share = left > 0 ? weight / (n - weight) : 0, step = zeros(d);
    for (let j = 0; j < d; j++) {
      const m = mean[code * d + j];
      step[j] = m - theirs[j];
      const shift = share * step[j], value = left > 0 ? m + shift : 0;
      mean[code * d + j] = Math.abs(value) <= 4 * EPS * (Math.abs(m) + Math.abs(shift)) ? 0 : value;
      const between = weight * (1 + share) * step[j] * step[j];
      const variance = scatter[start + j * (d + 1)];
      lost[lostAt + j] += 4 * EPS * (Math.abs(variance) + Math.abs(between));
      if (otherLost) lost[lostAt + j] += otherLost[j];
    }
    if (removed) removed.forEach((value, i) => { scatter[start + i] -= value; });
    addOuter(scatter, start, step, -weight * (1 + share), d);
    this.weight[code] = left > 0 ? n - weight : 0;
    this.weight2[code] = left > 0 ? this.weight2[code] - weight2 : 0;
    this.rows[code] = left;
    const single = this.detail === "class" ? left <= 1 : this.rows.every((count) => count <= 1);
    if (single) {
      scatter.fill(0, start, start + d * d);
      lost.fill(0, lostAt, lostAt + d);
    }
    this.version++;
    const remaining = this.#digitsOf(code);
    if (remaining < digits) {
      mean.set(saved[0], code * d);
      scatter.set(saved[1], start);
      lost.set(saved[2], lostAt);
      [this.weight[code], this.weight2[code], this.rows[code]] = saved.slice(3);
      fail("precision", `Too few digits would remain in class '${this.labels[code]}'. ` +
        "Compute the moments of the remaining rows again.");
    }
    return this;
  }

  #digitsOf(code) {
    const { d, scatter, lost } = this, start = this.#at(code), lostAt = this.#lostAt(code);
    if (this.detail === "class" && this.rows[code] <= 1) return 16;
    let least = 16;
    for (let j = 0; j < d; j++) {
      if (!(lost[lostAt + j] > 0)) continue;
      const ratio = scatter[start + j * (d + 1)] / lost[lostAt + j];
      least = Math.min(least, Math.log10(Math.max(ratio, 1e-16)));
    }
    return least;
  }

  /** Number of correct digits of the least accurate variance after removals. */
  digits() {
    return Math.min(16, ...range(this.detail === "class" ? this.K : 1).map((k) => this.#digitsOf(k)));
  }

  /** Move a row to another place or class. */
  move(row, code, newRow, newCode = code, weight = 1) {
    return this.remove(row, code, weight).add(newRow, newCode, weight);
  }

  /** Move all rows of a class by `shift`; their scatter does not change. */
  moveClass(code, shift) {
    for (let j = 0; j < this.d; j++) this.mean[code * this.d + j] += shift[j];
    this.version++;
    return this;
  }

  /** Add a class without rows, with the code K. */
  addClass(label = this.K) {
    const { d } = this;
    const widen = (values, by) => Float64Array.from([...values, ...zeros(by)]);
    for (const name of ["weight", "weight2", "rows"]) this[name] = widen(this[name], 1);
    this.mean = widen(this.mean, d);
    if (this.detail === "class") {
      this.scatter = widen(this.scatter, d * d);
      this.lost = widen(this.lost, d);
    }
    this.labels.push(label);
    this.K += 1;
    this.version++;
    return this;
  }

  #codesOf(other) {
    if (other.d !== this.d || other.features.some((name, j) => name !== this.features[j])) {
      fail("features", `The features differ: ${this.features} and ${other.features}.`);
    }
    if (other.detail !== this.detail) fail("detail", "Only one has a scatter for each class.");
    return other.labels.map((label) => this.labels.indexOf(label));
  }

  /** Add the moments of other rows. Classes are matched by label; new ones get the next codes. */
  merge(other) {
    this.#codesOf(other).forEach((known, k) => {
      if (known < 0) this.addClass(other.labels[k]);
      if (other.weight[k] > 0) this.#join(known < 0 ? this.K - 1 : known, this.#classOf(other, k));
    });
    if (this.detail === "pooled") {
      other.scatter.forEach((value, i) => { this.scatter[i] += value; });
      other.lost.forEach((value, i) => { this.lost[i] += value; });
    }
    return this;
  }

  /** Remove the moments of rows that are included; see `remove`. Needs detail "class". */
  subtract(other, { digits = DIGITS } = {}) {
    const { d } = this, codes = this.#codesOf(other), before = this.clone();
    this.needsClasses("Subtracting");
    try {
      codes.forEach((code, k) => {
        if (!(other.weight[k] > 0)) return;
        if (code < 0) fail("not_included", `There is no class '${other.labels[k]}'.`);
        this.#part(code, this.#classOf(other, k), digits);
        if (!semidefinite(this.scatter.subarray(code * d * d, (code + 1) * d * d), d)) {
          fail("not_included", `Class '${this.labels[code]}' does not have these rows.`);
        }
      });
    } catch (error) {
      Object.assign(this, before, { version: this.version + 1 });
      throw error;
    }
    return this;
  }

  /** Moments of some columns, by number and in this order. */
  select(columns) {
    const { K, d } = this, m = columns.length, blocks = this.detail === "class" ? K : 1;
    const scatter = zeros(blocks * m * m);
    for (let k = 0; k < blocks; k++) {
      scatter.set(block(this.scatter.subarray(k * d * d, (k + 1) * d * d), d, columns), k * m * m);
    }
    return new Moments({
      ...this,
      origin: columns.map((j) => this.origin[j]),
      features: columns.map((j) => this.features[j]),
      mean: selectColumns(this.mean, d, columns),
      lost: selectColumns(this.lost, d, columns),
      scatter,
    });
  }

  /**
   * Merge classes: class k becomes class codes[k] of `labels`, or is left out if that is -1, which
   * needs detail "class".
   */
  group(codes, labels = range(Math.max(...codes) + 1)) {
    const { origin, features, detail } = this, grouped = Moments.empty({ labels, features, origin, detail });
    if (codes.includes(-1)) this.needsClasses("Leaving out a class");
    if (detail === "pooled") {
      grouped.scatter.set(this.scatter);
      grouped.lost.set(this.lost);
    }
    codes.forEach((code, k) => {
      if (code >= 0 && this.weight[k] > 0) grouped.#join(code, grouped.#classOf(this, k));
    });
    return grouped;
  }

  needsClasses(what) {
    if (this.detail !== "class") {
      fail("detail", `${what} needs a scatter for each class, not the pooled one.`);
    }
  }

  /** Scatter within classes, (d, d): the sum of the class scatters. */
  pooled() {
    const { d, K, scatter } = this;
    if (this.detail === "pooled") return scatter.slice();
    const total = scatter.slice(0, d * d);
    for (let k = 1; k < K; k++) for (let i = 0; i < d * d; i++) total[i] += scatter[k * d * d + i];
    return total;
  }

  /** The same moments with detail "pooled", which linear models need. */
  reduce() {
    const { K, d, lost, detail } = this, total = zeros(d);
    lost.forEach((value, i) => { total[i % d] += value; });
    return detail === "pooled" ? this.clone()
      : new Moments({ ...this, scatter: this.pooled(), lost: total, detail: "pooled" });
  }

  /** Mean of all rows, as an offset. */
  centre() {
    const total = sum(this.weight);
    return combine(Array.from(this.weight, (w) => (total > 0 ? w / total : 0)), this.mean, this.d);
  }
}

/** a[start ..] += factor v v', the full (d, d) matrix. */
function addOuter(a, start, v, factor, d) {
  for (let i = 0; i < d; i++) {
    const scaled = factor * v[i];
    if (scaled !== 0) for (let j = 0, p = start + i * d; j < d; j++) a[p + j] += scaled * v[j];
  }
}

/** sum_k factors_k rows_k of a matrix (K, d). */
function combine(factors, rows, d) {
  const out = zeros(d);
  factors.forEach((factor, k) => { for (let j = 0; j < d; j++) out[j] += factor * rows[k * d + j]; });
  return out;
}

function medians(rows, n, d) {
  const column = zeros(n);
  return Float64Array.from(range(d), (j) => {
    for (let i = 0; i < n; i++) column[i] = rows[i * d + j];
    return column.sort()[(n - 1) >> 1];
  });
}

/** Whether a scatter has no eigenvalue that is negative beyond rounding. */
function semidefinite(scatter, d) {
  const varying = range(d).filter((j) => scatter[j * (d + 1)] > 0), m = varying.length;
  const { standard } = standardise(block(scatter, d, varying), m);
  return m === 0 || symmetricEigen(standard, m).values[0] >= -(10 ** -DIGITS) * m;
}

// --- covariances ---

/**
 * Denominator of the covariance of each class, with n_k the weight of class k:
 *
 *   unbiased  n_k - 1     ml  n_k     reliability  n_k - (sum of squared weights) / n_k
 */
function classDegrees(weight, weight2, denominator) {
  return weight.map((n, k) => {
    if (denominator === "ml") return n;
    return n - (denominator === "unbiased" ? 1 : n > 0 ? weight2[k] / n : 0);
  });
}

/** Denominator of the pooled covariance: the sum over classes that have rows. */
function pooledDegrees(moments, denominator) {
  const { weight, weight2 } = moments, degrees = classDegrees(weight, weight2, denominator);
  const total = sum(degrees.map((value, k) => (weight[k] > 0 ? value : 0)));
  if (!(total > 64 * EPS * sum(weight))) {
    fail("too_few_rows", "The weight is too little for a pooled covariance. Add rows.");
  }
  return total;
}

const divided = (a, by, from = 0, to = a.length) => a.slice(from, to).map((value) => value / by);

/** Diagonal of the target of shrinkage: "diagonal", "scaled_identity" or "identity". */
function targetDiagonal(diagonal, target) {
  if (target === "diagonal") return diagonal;
  if (target === "identity") return diagonal.map(() => 1);
  const mean = sum(diagonal) / diagonal.length;
  return diagonal.map(() => mean);
}

/** (1 - amount) covariance + amount target, in place. */
function shrink(covariance, d, amount, target) {
  if (amount === 0) return covariance;
  const toward = targetDiagonal(diagonalOf(covariance, d), target);
  for (let i = 0; i < d * d; i++) covariance[i] *= 1 - amount;
  for (let j = 0; j < d; j++) covariance[j * (d + 1)] += amount * toward[j];
  return covariance;
}

/**
 * Oracle-approximating shrinkage toward (tr S / d) I for n Gaussian rows (Chen et al. 2010, eq. 23).
 */
function oas(covariance, d, n) {
  const alpha = dot(covariance, covariance, d * d) / (d * d);
  const square = (sum(diagonalOf(covariance, d)) / d) ** 2;
  const denominator = (n + 1) * (alpha - square / d);
  return denominator <= 0 ? 1 : Math.min((alpha + square) / denominator, 1);
}

/** Shrinkage "oas" of a scatter: of columns scaled so that the target is a multiple of I. */
function oasOfScatter(scatter, d, weight, target) {
  const covariance = divided(scatter, weight);
  return oas(target === "diagonal" ? standardise(covariance, d, true).standard : covariance, d, weight);
}

/** Correlation matrix and standard deviations; with `safe`, constant columns keep their scale. */
function standardise(covariance, d, safe = false) {
  const sd = diagonalOf(covariance, d).map((value) => (safe && !(value > 0) ? 1 : Math.sqrt(value)));
  const standard = covariance.slice();
  for (let i = 0; i < d; i++) {
    for (let j = 0; j < d; j++) standard[i * d + j] = covariance[i * d + j] / sd[i] / sd[j];
  }
  return { standard, sd };
}

/**
 * A factorised covariance C: `basis` B (r, d) whitens, so that the squared Mahalanobis length of v
 * is |B v|^2 and C^-1 = B' B. Row i of B is zero from column reach[i] on. `shrunk` is the shrinkage
 * toward the diagonal that made C invertible.
 */
class Metric {
  constructor(basis, d, logdet, { reach, shrunk = 0 } = {}) {
    this.basis = basis;
    this.d = d;
    this.rank = d ? basis.length / d : 0;
    this.reach = reach ?? new Int32Array(this.rank).fill(d);
    this.logdet = logdet;
    this.shrunk = shrunk;
  }

  whiten(v) {
    const { basis, d, rank, reach } = this;
    return Float64Array.from(range(rank), (i) => dot(basis, v, reach[i], i * d));
  }

  squaredLength(v) {
    const white = this.whiten(v);
    return dot(white, white, this.rank);
  }

  /** B' w: C^-1 v for w = B v. */
  unwhiten(white) {
    return combine(Array.from(white), this.basis, this.d);
  }

  solve(v) {
    return this.unwhiten(this.whiten(v));
  }

  /** The metric for all d columns, given that of `columns`. */
  embed(columns, d) {
    if (columns.length === d) return this;
    const basis = zeros(this.rank * d);
    for (let i = 0; i < this.rank; i++) {
      columns.forEach((column, j) => { basis[i * d + column] = this.basis[i * this.d + j]; });
    }
    const reach = this.reach.map((length) => (length ? columns[length - 1] + 1 : 0));
    return new Metric(basis, d, this.logdet, { reach, shrunk: this.shrunk });
  }
}

/** Metric of uncorrelated features; those of variance 0 are left out. */
function diagonalMetric(variance, shrunk = 0) {
  const d = variance.length, columns = range(d).filter((j) => variance[j] > 0);
  const basis = zeros(columns.length * d);
  columns.forEach((j, i) => { basis[i * d + j] = 1 / Math.sqrt(variance[j]); });
  const logdet = columns.reduce((total, j) => total + Math.log(variance[j]), 0);
  const reach = Int32Array.from(columns, (j) => j + 1);
  return new Metric(basis, d, logdet, { reach, shrunk });
}

/**
 * `metric` of a covariance with a positive diagonal, null if it is singular, and its `deficiency`,
 * null if solutions have six or more correct digits. Rank and condition refer to standardised
 * columns, so they do not depend on units.
 */
function factorise(covariance, d) {
  const { standard, sd } = standardise(covariance, d), lower = cholesky(standard, d);
  let reciprocal = 0, inverse = null;
  if (lower) {
    inverse = invertLower(lower, d);
    const [norm] = norms(standard, d), [columns, rows] = norms(inverse, d);
    reciprocal = 1 / (norm * columns * rows); // a lower bound, which usually suffices
    if (!(reciprocal >= ACCURATE)) reciprocal = 1 / (norm * norms(gram(inverse, d, d), d)[0]);
  }
  if (!(reciprocal >= 4 * d * EPS)) return { metric: null, deficiency: deficiencyOf(standard, sd, d) };
  let logdet = 0;
  for (let i = 0; i < d; i++) {
    logdet += Math.log(lower[i * (d + 1)]) + Math.log(sd[i]);
    for (let j = 0; j <= i; j++) inverse[i * d + j] /= sd[j];
  }
  const metric = new Metric(inverse, d, 2 * logdet, { reach: Int32Array.from(range(d), (i) => i + 1) });
  return { metric, deficiency: reciprocal < ACCURATE ? deficiencyOf(standard, sd, d) : null };
}

/** a' a */
function gram(a, n, d) {
  const out = zeros(d * d);
  for (let i = 0; i < n; i++) addOuter(out, 0, a.subarray(i * d, (i + 1) * d), 1, d);
  return out;
}

/** Rank, and the eigenvectors of the correlation matrix; the first `nullity` have no variance. */
function deficiencyOf(standard, sd, d) {
  const { values, vectors } = symmetricEigen(standard, d);
  const tolerance = 8 * d * EPS * values[d - 1];
  const nullity = values.filter((value) => value <= tolerance).length;
  return { rank: d - nullity, nullity, values, vectors, sd };
}

/** Metric of a singular covariance, with variances `floor` of its null directions; 0: left out. */
function subspaceMetric({ nullity, values, vectors, sd }, floor, d) {
  const variances = values.map((value, i) => (i < nullity ? floor[i] : value));
  const chosen = range(d).filter((i) => variances[i] > 0), basis = zeros(chosen.length * d);
  chosen.forEach((i, row) => {
    const root = Math.sqrt(variances[i]);
    for (let j = 0; j < d; j++) basis[row * d + j] = vectors[j * d + i] / root / sd[j];
  });
  const logdet = chosen.reduce((total, i) => total + Math.log(variances[i]), 0);
  return new Metric(basis, d, logdet + 2 * sum(sd.map(Math.log)));
}

/** A set of linearly independent columns of a correlation matrix, by pivoted Cholesky steps. */
function independentColumns(standard, d) {
  const rest = diagonalOf(standard, d), steps = [], chosen = [];
  for (;;) {
    let pivot = -1;
    for (let j = 0; j < d; j++) {
      if (!chosen.includes(j) && (pivot < 0 || rest[j] > rest[pivot])) pivot = j;
    }
    if (pivot < 0 || !(rest[pivot] > 8 * d * EPS)) return chosen.sort((i, j) => i - j);
    const root = Math.sqrt(rest[pivot]);
    const column = Float64Array.from(range(d), (j) =>
      steps.reduce((value, step) => value - step[j] * step[pivot], standard[j * d + pivot]) / root);
    steps.push(column);
    chosen.push(pivot);
    for (let j = 0; j < d; j++) rest[j] -= column[j] * column[j];
  }
}

/** Largest variance of a constant column j that the rounding of the class means can cause. */
function roundingOf({ K, d, mean }, j, classes = range(K)) {
  return (16 * EPS * largest(classes.map((k) => Math.abs(mean[k * d + j])))) ** 2;
}

/**
 * Variances with other values for columns that do not vary beyond the rounding of the means: zero
 * if a column is constant in all rows, the pooled variance if it varies within other classes, and
 * a very small variance if it varies only between classes. Returns null if all columns vary.
 */
function floorVariances(fitting, variance, code = null) {
  const { moments, pooled, centre, warnings } = fitting, { K, d, mean, weight } = moments;
  const own = code === null ? range(K) : [code];
  const tiny = range(d).filter((j) => variance[j] <= roundingOf(moments, j, own));
  if (!tiny.length) return null;
  const changed = variance.slice(), total = sum(weight);
  const names = { constant_column: [], constant_in_class: [], separating_column: [] };
  for (const j of tiny) {
    const within = pooled[j * (d + 1)], rounding = 4 * roundingOf(moments, j);
    let all = within;
    for (let k = 0; k < K; k++) all += weight[k] * (mean[k * d + j] - centre[j]) ** 2;
    all /= total;
    if (all <= rounding) {
      changed[j] = 0;
      names.constant_column.push(moments.features[j]);
    } else if (code !== null && within > rounding * total) {
      changed[j] = within / total;
      names.constant_in_class.push(moments.features[j]);
    } else {
      changed[j] = FLOOR * all;
      names.separating_column.push(moments.features[j]);
    }
  }
  for (const [kind, columns] of Object.entries(names)) {
    if (columns.length) warnings.push({ kind, columns, label: moments.labels[code ?? -1] });
  }
  return changed;
}

/** The covariance of the columns that vary, after `floorVariances`. */
function flooredCovariance(fitting, covariance, code = null) {
  const { d } = fitting.moments, diagonal = diagonalOf(covariance, d);
  const variance = floorVariances(fitting, diagonal, code);
  if (!variance) return { covariance, columns: range(d), estimated: d };
  const columns = range(d).filter((j) => variance[j] > 0), floored = block(covariance, d, columns);
  columns.forEach((j, i) => { floored[i * (columns.length + 1)] = variance[j]; });
  const estimated = columns.filter((j) => variance[j] === diagonal[j]).length;
  return { covariance: floored, columns, estimated };
}

/** Metric of a covariance shrunk toward its diagonal by OAS. */
function shrunkMetric(fitting, covariance, d, weight, rank, label) {
  const amount = oas(standardise(covariance, d).standard, d, weight);
  const diagonal = diagonalOf(covariance, d), shrunk = covariance.map((value) => (1 - amount) * value);
  for (let j = 0; j < d; j++) shrunk[j * (d + 1)] = diagonal[j];
  fitting.warnings.push({ kind: "shrinkage_chosen", label, rank, amount });
  const { metric } = factorise(shrunk, d);
  if (!metric) return diagonalMetric(diagonal, 1);
  metric.shrunk = amount;
  return metric;
}

/** Variances of the null directions: FLOOR times the largest squared distance of a class mean. */
function nullFloor(fitting, deficiency, columns) {
  const { moments, centre } = fitting, { K, d, mean } = moments, m = columns.length;
  const offsets = zeros(K * m);
  for (let k = 0; k < K; k++) {
    columns.forEach((j, i) => { offsets[k * m + i] = (mean[k * d + j] - centre[j]) / deficiency.sd[i]; });
  }
  const noise = 1e-7 * largest(offsets.map(Math.abs));
  return Float64Array.from(range(deficiency.nullity), (v) => {
    let along = 0;
    for (let k = 0; k < K; k++) {
      let value = 0;
      for (let i = 0; i < m; i++) value += offsets[k * m + i] * deficiency.vectors[i * m + v];
      along = Math.max(along, Math.abs(value));
    }
    return along > noise ? FLOOR * along * along : 0;
  });
}

const named = (moments, columns) => columns.map((j) => moments.features[j]);

function warnCollinear(fitting, deficiency, columns, separating) {
  const m = columns.length, weakest = Math.max(deficiency.nullity, 1);
  const share = range(m).map((i) =>
    largest(range(weakest).map((v) => Math.abs(deficiency.vectors[i * m + v]))));
  const dependent = named(fitting.moments, columns.filter((_, i) => share[i] > 1e-3 * largest(share)));
  fitting.warnings.push({
    kind: separating ? "separating_column" : "collinear", columns: dependent, rank: deficiency.rank,
  });
}

function warnFewRows({ warnings }, label, degrees, features) {
  if (features > 1 && degrees < PER_FEATURE * features) {
    warnings.push({ kind: "scarce_rows", label, degrees });
  }
}

/** Metric of the covariance that all classes share; `degrees` bounds its rank. */
function sharedMetric(fitting, given, degrees) {
  const { moments } = fitting, all = moments.d;
  const { covariance, columns, estimated } = flooredCovariance(fitting, given), d = columns.length;
  if (!d) return diagonalMetric(zeros(all));
  const { metric, deficiency } = factorise(covariance, d);
  const floor = deficiency ? nullFloor(fitting, deficiency, columns) : zeros(0);
  const floored = floor.filter((value) => value > 0).length;
  const dependent = deficiency && !metric && !floored;
  if (!dependent && (degrees < estimated || (!metric && floored > 1))) {
    const limit = degrees + d - estimated, rank = deficiency ? Math.min(deficiency.rank, limit) : limit;
    return shrunkMetric(fitting, covariance, d, sum(moments.weight), rank).embed(columns, all);
  }
  if (deficiency) warnCollinear(fitting, deficiency, columns, floored > 0);
  warnFewRows(fitting, undefined, degrees, deficiency ? Math.min(estimated, deficiency.rank) : estimated);
  return (metric ?? subspaceMetric(deficiency, floor, d)).embed(columns, all);
}

/** Whether the rows of all classes, not only of one, are constant along the null directions. */
function constantInAllClasses(fitting, { nullity, vectors, sd }, floor, columns) {
  if (floor.some((value) => value > 0)) return false;
  const m = columns.length, pooled = block(fitting.pooled, fitting.moments.d, columns);
  return range(nullity).every((v) => {
    const along = Float64Array.from(range(m), (i) => vectors[i * m + v] / sd[i]);
    let variance = 0, total = 0;
    for (let i = 0; i < m; i++) {
      variance += along[i] * dot(pooled, along, m, i * m);
      total += along[i] * along[i] * pooled[i * (m + 1)];
    }
    return !(variance > 1e-10 * total);
  });
}

/** Metric of the covariance of class `code`; `degrees` bounds its rank. */
function classMetric(fitting, given, code, degrees) {
  const { moments } = fitting, all = moments.d;
  const { covariance, columns, estimated } = flooredCovariance(fitting, given, code), d = columns.length;
  if (!d) return diagonalMetric(zeros(all));
  const label = moments.labels[code];
  const { metric, deficiency } = factorise(covariance, d);
  if (!metric && constantInAllClasses(fitting, deficiency, nullFloor(fitting, deficiency, columns), columns)) {
    warnCollinear(fitting, deficiency, columns, false);
    const pooled = standardise(block(fitting.pooled, all, columns), d).standard;
    const independent = independentColumns(pooled, d), part = block(covariance, d, independent);
    const metricOfPart = factorise(part, independent.length).metric ??
      diagonalMetric(diagonalOf(part, independent.length));
    return metricOfPart.embed(independent.map((i) => columns[i]), all);
  }
  if (!metric || degrees < estimated) {
    const limit = degrees + d - estimated, rank = deficiency ? Math.min(deficiency.rank, limit) : limit;
    return shrunkMetric(fitting, covariance, d, moments.weight[code], rank, label).embed(columns, all);
  }
  if (deficiency) warnCollinear(fitting, deficiency, columns, false);
  if (degrees < moments.rows[code]) warnFewRows(fitting, label, degrees, estimated);
  return metric.embed(columns, all);
}

// --- the Gaussian family ---

const CHOICES = {
  model: ["lda", "qda", "rda", "nearest_mean", "least_squares"],
  target: ["diagonal", "scaled_identity", "identity"],
  denominator: ["unbiased", "ml", "reliability"],
  shrink: ["pooled", "mixed"],
  weighting: ["covariance", "friedman"],
  predictive: ["plug-in", "student"],
};

function checkOptions(options) {
  for (const [name, allowed] of Object.entries(CHOICES)) {
    if (options[name] !== undefined && !allowed.includes(options[name])) {
      fail("option", `${name} must be one of ${allowed.join(", ")}, not ${options[name]}.`);
    }
  }
  for (const name of ["pooling", "shrinkage"]) {
    const value = options[name] ?? 0;
    if (!(value >= 0 && value <= 1) && !(name === "shrinkage" && value === "oas")) {
      fail("option", `${name} must be a number from 0 to 1${name === "shrinkage"
        ? ' or "oas"' : ""}, not ${value}.`);
    }
  }
}

function familyOf(options) {
  const { model = "lda" } = options, family = { shrinkage: 0, ...options };
  for (const [name, allowed] of Object.entries(CHOICES)) family[name] ??= allowed[0];
  if (model === "rda") family.pooling ??= 0.5;
  else Object.assign(family, { pooling: model === "qda" ? 0 : 1, weighting: "covariance",
    shrink: model === "qda" ? "mixed" : "pooled" });
  if (model === "nearest_mean") Object.assign(family, { shrinkage: 1, target: "scaled_identity" });
  family.linear = family.pooling === 1;
  family.mixed = family.shrink === "mixed" || family.weighting === "friedman";
  if (family.shrinkage === "oas") {
    if (family.target === "identity" || (family.mixed && family.pooling > 0 && !family.linear)) {
      fail("option", 'shrinkage "oas" is not known for target "identity" and for ' +
        "shrunk mixtures. Pass a number.");
    }
  }
  return family;
}

/** Class probabilities: the option, or the class shares of the weight. */
function priorOf(weight, options) {
  const { prior, model } = options, K = weight.length;
  if (!prior) return model === "nearest_mean" ? weight.map(() => 1 / K) : divided(weight, sum(weight));
  const values = Float64Array.from(prior);
  if (values.length !== K || !values.every((value) => value > 0) || Math.abs(sum(values) - 1) > 1e-6) {
    fail("prior", `The prior must be ${K} positive numbers with sum 1, not ${prior}.`);
  }
  return divided(values, sum(values));
}

const tooFew = (label) =>
  `Class '${label}' has too few rows for a covariance of its own. Add rows, or use LDA.`;

function checkClasses({ K, rows, weight, labels }) {
  if (K < 2) fail("one_class", "A classifier needs rows of two or more classes.");
  const empty = weight.findIndex((value) => !(value > 0));
  if (empty >= 0) {
    fail("empty_class", `Class '${labels[empty]}' has no rows. Add some, or keep the other classes.`);
  }
  if (sum(rows) <= K) {
    fail("too_few_rows", `${sum(rows)} rows are too few for ${K} classes. Add rows.`);
  }
}

/** Amount of shrinkage of each class, (K,); the same for all if it is not estimated by class. */
function shrinkageOf(fitting, family) {
  const { moments, pooled } = fitting, { K, d, weight, scatter } = moments;
  if (family.shrinkage !== "oas") return new Float64Array(K).fill(family.shrinkage);
  if (family.mixed && family.pooling === 0) {
    return weight.map((n, k) =>
      oasOfScatter(scatter.subarray(k * d * d, (k + 1) * d * d), d, n, family.target));
  }
  return new Float64Array(K).fill(oasOfScatter(pooled, d, sum(weight), family.target));
}

function pooledMetric(fitting, family) {
  const { moments, pooled } = fitting, { d, K } = moments, [amount] = shrinkageOf(fitting, family);
  const covariance = divided(pooled, pooledDegrees(moments, family.denominator));
  if (amount === 1) {
    const target = targetDiagonal(diagonalOf(covariance, d), family.target);
    return diagonalMetric(floorVariances(fitting, target) ?? target);
  }
  const degrees = amount ? Infinity : sum(moments.rows) - K;
  return sharedMetric(fitting, shrink(covariance, d, amount, family.target), degrees);
}

/**
 * Covariances S_k of the classes, with C_k the class covariances and C the pooled one:
 *
 *   S_k = (1 - pooling) C_k + pooling C(shrinkage)           shrink "pooled"
 *   S_k = [(1 - pooling) C_k + pooling C](shrinkage)         shrink "mixed"
 *
 * With weighting "friedman" scatters and denominators are mixed instead of covariances.
 */
function classCovariances(fitting, family) {
  const { moments, pooled } = fitting, { K, d, weight, weight2, scatter, labels } = moments;
  const { pooling, target, denominator } = family;
  moments.needsClasses("A covariance for each class");
  const degrees = classDegrees(weight, weight2, denominator), amounts = shrinkageOf(fitting, family);
  const friedman = family.weighting === "friedman";
  const short = degrees.findIndex((value) => !(value > 0));
  if (short >= 0 && !(friedman && pooling > 0)) {
    fail("too_few_rows", tooFew(labels[short]));
  }
  const total = pooling > 0 ? pooledDegrees(moments, denominator) : 1;
  const shared = pooling > 0 && divided(pooled, friedman ? 1 : total);
  if (shared && !family.mixed) shrink(shared, d, amounts[0], target);
  return range(K).map((k) => {
    const mixed = friedman ? (1 - pooling) * degrees[k] + pooling * total : degrees[k];
    const own = divided(scatter, friedman && pooling > 0 ? 1 : degrees[k], k * d * d, (k + 1) * d * d);
    if (shared) {
      for (let i = 0; i < d * d; i++) own[i] = (1 - pooling) * own[i] + pooling * shared[i];
      if (friedman) for (let i = 0; i < d * d; i++) own[i] /= mixed;
    }
    return family.mixed ? shrink(own, d, amounts[k], target) : own;
  });
}

function classMetrics(fitting, family) {
  const { rows, K } = fitting.moments, amounts = shrinkageOf(fitting, family);
  const covariances = classCovariances(fitting, family);
  const noEffect = family.pooling === 0 && !family.mixed;
  return covariances.map((covariance, k) => {
    const rank = family.pooling > 0 ? sum(rows) - K : rows[k] - 1;
    return classMetric(fitting, covariance, k, amounts[k] > 0 && !noEffect ? Infinity : rank);
  });
}

const prepare = (moments) =>
  ({ moments, pooled: moments.pooled(), centre: moments.centre(), warnings: [] });

/** Fit a model to moments. */
export function fit(moments, options = {}) {
  checkOptions(options);
  const fitting = prepare(moments);
  if (options.model === "least_squares") return fitLeastSquares(fitting, options);
  const family = familyOf(options), prior = priorOf(moments.weight, options);
  if (options.model === "nearest_mean" && moments.rows.every((count) => count === 1)) {
    return fitOneRowPerClass(fitting, family, prior);
  }
  checkClasses(moments);
  const metrics = family.linear ? [pooledMetric(fitting, family)] : classMetrics(fitting, family);
  if (options.predictive === "student") return studentRule(fitting, family, prior, metrics);
  if (family.linear) return linearRule(fitting, metrics[0], prior);
  const log = prior.map(Math.log), constant = log.map((value, k) => value - 0.5 * metrics[k].logdet);
  return new QuadraticRule(ruleFields(fitting, prior, metrics), { constant });
}

const ruleFields = ({ moments, warnings }, prior, metrics) => ({
  labels: moments.labels, features: moments.features, origin: moments.origin, mean: moments.mean,
  prior, metrics, rank: metrics.length === 1 ? metrics[0].rank : metrics.map((metric) => metric.rank),
  shrunk: metrics.map((metric) => metric.shrunk), warnings,
});

/** The nearest mean with one row in each class: the variance is that of all rows. */
function fitOneRowPerClass(fitting, family, prior) {
  const merged = prepare(fitting.moments.group(range(fitting.moments.K).fill(0)));
  const metric = pooledMetric(merged, family);
  fitting.warnings.push({ kind: "scarce_rows" }, ...merged.warnings);
  return linearRule(fitting, metric, prior);
}

/**
 * Linear rule of Gaussian classes that share the covariance C; offsets u and means m_k are relative
 * to the mean of the class means, weighted by the prior:
 *
 *   score_k = u' C^-1 m_k - m_k' C^-1 m_k / 2 + log prior_k
 */
function linearRule(fitting, metric, prior) {
  const { K, d, mean, origin } = fitting.moments, shift = combine(Array.from(prior), mean, d);
  const moved = origin.map((value, j) => value + shift[j]);
  const coef = zeros(K * d), intercept = zeros(K);
  for (let k = 0; k < K; k++) {
    const m = moved.map((value, j) => mean[k * d + j] - (value - origin[j]));
    const white = metric.whiten(m);
    coef.set(metric.unwhiten(white), k * d);
    intercept[k] = Math.log(prior[k]) - 0.5 * dot(white, white, metric.rank);
  }
  return new LinearRule({ ...ruleFields(fitting, prior, [metric]), origin: moved }, { coef, intercept });
}

// --- Student's predictive densities ---

/**
 * Predictive densities, which average over the uncertainty of means and covariances (Geisser 1964):
 *
 *   log p(x | k) = constant_k - (v_k + d)/2 log(1 + D^2 / s_k)
 *
 * with D^2 the squared Mahalanobis distance, v_k = m - d + 1 for m degrees of freedom, and s_k =
 * (1 + 1/n_k) times the denominator of the covariance. Pooling and shrinkage add degrees of freedom.
 */
function studentRule(fitting, family, prior, metrics) {
  const { moments, warnings } = fitting, { K, weight, weight2 } = moments;
  const { degrees, denominator } = posteriorDegrees(moments, family, shrinkageOf(fitting, family));
  const freedom = zeros(K), scale = zeros(K), constant = zeros(K);
  for (let k = 0; k < K; k++) {
    const metric = metrics.length === 1 ? metrics[0] : metrics[k], r = metric.rank;
    const [m, below] = withPrior(degrees[k], denominator[k], metric.shrunk);
    if (m < r && !(family.linear && k > 0)) {
      const label = family.linear ? undefined : moments.labels[k];
      warnings.push({ kind: "scarce_rows", label, degrees: m });
    }
    const short = Math.max(r - m, 0), v = (freedom[k] = m + short - r + 1);
    const reliability = family.denominator === "reliability";
    const s = 1 + (reliability ? weight2[k] / weight[k] ** 2 : 1 / weight[k]);
    scale[k] = s * (m === Infinity ? 1 : below + short);
    constant[k] = Math.log(prior[k]) - 0.5 * metric.logdet - (v === Infinity
      ? 0.5 * r * Math.log(2 * Math.PI * scale[k])
      : 0.5 * r * Math.log(Math.PI * scale[k]) - logGammaRatio(0.5 * v, r));
  }
  return new QuadraticRule(ruleFields(fitting, prior, metrics), { constant, freedom, scale });
}

function posteriorDegrees(moments, family, shrinkage) {
  const { weight, weight2 } = moments, { pooling: p, weighting } = family;
  const kind = family.denominator === "reliability" ? "reliability" : "unbiased";
  const own = classDegrees(weight, weight2, kind), total = pooledDegrees(moments, kind);
  const below = classDegrees(weight, weight2, family.denominator);
  const totalBelow = pooledDegrees(moments, family.denominator);
  const pairs = Array.from(weight, (_, k) => {
    const share = shrinkage[k];
    if (family.linear) return withPrior(total, totalBelow, share);
    let pair = [own[k], below[k]];
    if (p > 0 && weighting === "friedman") {
      pair = [(1 - p) * own[k] + p * total, (1 - p) * below[k] + p * totalBelow];
    } else if (p > 0) {
      const most = family.mixed ? [total, totalBelow] : withPrior(total, totalBelow, share);
      const added = (below[k] * p) / (1 - p);
      pair = [Math.min(own[k] + added, most[0]), Math.min(below[k] + added, most[1])];
    }
    return family.mixed ? withPrior(...pair, share) : pair;
  });
  return { degrees: pairs.map(([m]) => m), denominator: pairs.map(([, g]) => g) };
}

/** Degrees and denominator with those of a prior that has this share of the covariance. */
function withPrior(degrees, denominator, share) {
  if (share >= 1 || denominator === Infinity) return [Infinity, Infinity];
  const added = denominator * (share / (1 - share));
  return [degrees + added, denominator + added];
}

/** log Gamma(x + d/2) - log Gamma(x). */
function logGammaRatio(x, d) {
  let ratio = 0;
  const start = x + (d % 2 ? 0.5 : 0);
  for (let i = 0; i < d >> 1; i++) ratio += Math.log(start + i);
  if (d % 2 === 0) return ratio;
  for (; x < 30; x += 1) ratio += Math.log1p(-0.5 / (x + 0.5)); // Gamma(x + 1) = x Gamma(x)
  const series = -1 / (8 * x) + 1 / (192 * x ** 3) - 1 / (640 * x ** 5) + 17 / (14336 * x ** 7);
  return ratio + 0.5 * Math.log(x) + series;
}

// --- rules ---

class Rule {
  constructor(fields) {
    Object.assign(this, fields);
    this.K = this.labels.length;
    this.d = this.origin.length;
  }

  logPosterior(rows) {
    return logPosterior(this.scores(rows), this.K);
  }

  posterior(rows) {
    return posterior(this.scores(rows), this.K);
  }

  /** Codes of the classes with the largest score. */
  predict(rows) {
    return argmax(this.scores(rows), this.K);
  }
}

/** score_k(x) = (x - origin) . coef_k + intercept_k */
export class LinearRule extends Rule {
  constructor(fields, { coef, intercept }) {
    super({ kind: "linear", ...fields, coef, intercept });
  }

  /** Scores (N, K) of rows (N, d), written to `out` if it is given. */
  scores(rows, out) {
    rows = numbers(rows);
    const { K, d, coef, intercept, origin } = this, four = zeros(4 * K);
    const full = new Int32Array(K).fill(d), result = out ?? zeros((rows.length / d) * K);
    forFour(rows, d, origin, (first, count, x) => {
      multiply4(x, coef, full, K, d, four);
      for (let t = 0; t < count; t++) {
        for (let k = 0; k < K; k++) result[(first + t) * K + k] = four[t * K + k] + intercept[k];
      }
    });
    return result;
  }

  /** The rule on the plane x = point + s axes[0] + t axes[1]. */
  onPlane(point, axes) {
    const { K, d, coef } = this, score = this.scores(point), terms = zeros(6 * K);
    for (let k = 0; k < K; k++) {
      terms.set([score[k], dot(coef, axes[0], d, k * d), dot(coef, axes[1], d, k * d)], 6 * k);
    }
    return new PlaneRule(this, terms, (value) => value);
  }
}

/**
 * score_k(x) = constant_k - D_k^2 / 2, with D_k^2 = |B_k (x - origin - mean_k)|^2; for Student's t
 * with `freedom` v and `scale` s, score_k(x) = constant_k - (v_k + d)/2 log(1 + D_k^2 / s_k).
 */
export class QuadraticRule extends Rule {
  constructor(fields, { constant, freedom = null, scale = null }) {
    super({ kind: "quadratic", ...fields, constant, freedom, scale });
  }

  metric(k) {
    return this.metrics.length === 1 ? this.metrics[0] : this.metrics[k];
  }

  #score(k, square) {
    if (!this.freedom) return this.constant[k] - 0.5 * square;
    const relative = square / this.scale[k], v = this.freedom[k];
    if (v === Infinity) return this.constant[k] - 0.5 * relative;
    return this.constant[k] - 0.5 * (v + this.metric(k).rank) * Math.log1p(relative);
  }

  /** Squared Mahalanobis distances (N, K) of rows from the class means. */
  distances(rows, out) {
    rows = numbers(rows);
    const { K, d, mean, origin } = this, v = zeros(4 * d), white = zeros(4 * d);
    const result = out ?? zeros((rows.length / d) * K);
    forFour(rows, d, origin, (first, count, x) => {
      for (let k = 0; k < K; k++) {
        const { basis, reach, rank } = this.metric(k);
        for (let t = 0; t < 4; t++) {
          for (let j = 0; j < d; j++) v[t * d + j] = x[t * d + j] - mean[k * d + j];
        }
        multiply4(v, basis, reach, rank, d, white);
        for (let t = 0; t < count; t++) {
          result[(first + t) * K + k] = dot(white, white, rank, t * rank, t * rank);
        }
      }
    });
    return result;
  }

  /** Scores (N, K) of rows (N, d), written to `out` if it is given. */
  scores(rows, out) {
    const result = this.distances(rows, out), { K } = this;
    for (let i = 0; i < result.length; i++) result[i] = this.#score(i % K, result[i]);
    return result;
  }

  /** The rule on the plane x = point + s axes[0] + t axes[1], where D_k^2 is quadratic in s and t. */
  onPlane(point, axes) {
    const { K, d, mean, origin } = this, terms = zeros(6 * K);
    for (let k = 0; k < K; k++) {
      const metric = this.metric(k), r = metric.rank;
      const [c, a, b] = [Float64Array.from(point, (x, j) => x - origin[j] - mean[k * d + j]), ...axes]
        .map((v) => metric.whiten(v));
      terms.set([dot(c, c, r), 2 * dot(c, a, r), 2 * dot(c, b, r), dot(a, a, r), 2 * dot(a, b, r),
        dot(b, b, r)], 6 * k);
    }
    return new PlaneRule(this, terms, (value, k) => this.#score(k, Math.max(value, 0)));
  }
}

/** A rule on a plane: score_k = f_k(c0 + c1 s + c2 t + c3 s^2 + c4 s t + c5 t^2). */
class PlaneRule {
  constructor({ labels }, terms, score) {
    Object.assign(this, { labels, terms, score, K: labels.length });
  }

  /** Scores (N, K) of points (N, 2). */
  scores(points) {
    const { K, terms, score } = this, n = points.length / 2, out = zeros(n * K);
    for (let i = 0; i < n; i++) {
      const s = points[2 * i], t = points[2 * i + 1];
      for (let k = 0, c = 0; k < K; k++, c += 6) {
        const linear = terms[c] + terms[c + 1] * s + terms[c + 2] * t;
        out[i * K + k] = score(linear + (terms[c + 3] * s + terms[c + 4] * t) * s + terms[c + 5] * t * t, k);
      }
    }
    return out;
  }
}

// --- least squares ---

/**
 * Regression on class indicators with a ridge: with S the total scatter and u relative to the centre,
 *
 *   fitted_k(x) = share_k + u' (S + ridge I)^-1 s_k       s_k = weight_k (mean_k - centre)
 *
 * `posterior` sets negative fitted values to zero and divides by their sum.
 */
function fitLeastSquares(fitting, { ridge = 0 }) {
  const { moments, centre, warnings } = fitting, { K, d, weight, mean, origin } = moments;
  if (!(ridge >= 0)) fail("option", `ridge must be 0 or more, not ${ridge}.`);
  checkClasses(moments);
  const total = sum(weight), share = divided(weight, total), scatter = fitting.pooled.slice();
  const cross = zeros(K * d);
  for (let k = 0; k < K; k++) {
    const offset = Float64Array.from(centre, (c, j) => mean[k * d + j] - c);
    addOuter(scatter, 0, offset, weight[k], d);
    offset.forEach((value, j) => { cross[k * d + j] = weight[k] * value; });
  }
  const columns = range(d).filter((j) =>
    Math.sqrt(Math.max(scatter[j * (d + 1)], 0)) > 16 * EPS * Math.sqrt(total) * Math.abs(centre[j]));
  if (columns.length < d) {
    const constant = range(d).filter((j) => !columns.includes(j));
    warnings.push({ kind: "constant_column", columns: named(moments, constant) });
  }
  const penalised = block(scatter, d, columns), m = columns.length;
  for (let i = 0; i < m; i++) penalised[i * (m + 1)] += ridge;
  const solver = m ? leastSquaresSolver(penalised, m) : { digits: 16, rank: 0, solve: (b) => b };
  if (solver.digits < DIGITS || solver.rank < m) {
    warnings.push({ kind: "collinear", columns: named(moments, columns), rank: solver.rank });
  }
  const moved = origin.map((value, j) => value + centre[j]);
  const coef = zeros(K * d), intercept = zeros(K);
  for (let k = 0; k < K; k++) {
    const solution = solver.solve(Float64Array.from(columns, (j) => cross[k * d + j]));
    columns.forEach((j, i) => { coef[k * d + j] = solution[i]; });
    intercept[k] = share[k];
    for (let j = 0; j < d; j++) intercept[k] += coef[k * d + j] * (moved[j] - origin[j] - centre[j]);
  }
  const fields = { labels: moments.labels, features: moments.features, origin: moved, prior: share,
    rank: solver.rank, warnings, solver, columns };
  return new IndicatorRule(fields, { coef, intercept });
}

/**
 * Solver of S x = b for a positive semidefinite S of m columns: by Cholesky factor or, if that is too
 * inexact, the solution of least norm.
 */
function leastSquaresSolver(scatter, m) {
  const { standard, sd } = standardise(scatter, m), lower = cholesky(standard, m);
  if (lower) {
    const inverse = invertLower(lower, m), reciprocal = 1 / (norms(lower, m)[1] * norms(inverse, m)[1]);
    if (reciprocal > 1e-5) {
      for (let i = 0; i < m; i++) for (let j = 0; j <= i; j++) inverse[i * m + j] /= sd[j];
      const metric = new Metric(inverse, m, 0, { reach: Int32Array.from(range(m), (i) => i + 1) });
      return { digits: 16 + 2 * Math.log10(reciprocal), rank: m, metric, solve: (b) => metric.solve(b) };
    }
  }
  // With S = D V diag(values) V' D, the coefficients D x are V diag(1 / values) V' D^-1 b.
  const { values, vectors } = symmetricEigen(standard, m), top = values[m - 1];
  const rank = values.filter((value) => value > 8 * m * EPS * top).length, at = m - rank;
  const least = rank === m ? Math.sqrt(values[0] / top) : EPS;
  const digits = Math.max(16 + (rank === m ? 2 : 1) * Math.log10(Math.max(least, EPS)), 0);
  const right = zeros(m * rank);
  for (let i = 0; i < m; i++) {
    for (let v = 0; v < rank; v++) right[i * rank + v] = vectors[i * m + at + v];
  }
  const lift = rank < m ? leastNormMap(right, sd, m, rank) : null;
  const solve = (b) => {
    const along = Float64Array.from(range(rank), (v) => {
      let value = 0;
      for (let i = 0; i < m; i++) value += (right[i * rank + v] * b[i]) / sd[i];
      return value / values[at + v];
    });
    return Float64Array.from(range(m), (i) =>
      lift ? dot(lift, along, rank, i * rank) : dot(right, along, rank, i * rank) / sd[i]);
  };
  return { digits, rank, solve };
}

/** Map (m, r) from coordinates along the first r directions to the coefficients of least norm. */
function leastNormMap(right, sd, m, r) {
  const most = largest(sd), a = zeros(m * r);
  for (let i = 0; i < m; i++) for (let v = 0; v < r; v++) a[i * r + v] = (right[i * r + v] * sd[i]) / most;
  const { left, values, right: turn } = svd(a, m, r); // the pseudo-inverse of a'
  const lift = zeros(m * r);
  for (let i = 0; i < m; i++) {
    for (let v = 0; v < r; v++) {
      for (let s = 0; s < r; s++) lift[i * r + v] += (left[i * r + s] * turn[v * r + s]) / values[s] / most;
    }
  }
  return lift;
}

/** Rule by regression on class indicators: scores are fitted values. */
export class IndicatorRule extends LinearRule {
  constructor(fields, coefficients) {
    super({ ...fields, kind: "indicator" }, coefficients);
  }

  posterior(rows) {
    return memberships(this.scores(rows), this.K);
  }

  logPosterior(rows) {
    return this.posterior(rows).map(Math.log);
  }
}

function memberships(fitted, K) {
  const out = fitted.map((value) => Math.max(value, 0));
  for (let i = 0; i < out.length; i += K) {
    const total = sum(out.subarray(i, i + K));
    for (let k = 0; k < K; k++) out[i + k] /= total;
  }
  return out;
}

// --- posteriors and decisions ---

/** log posterior_k = score_k - log sum_l exp(score_l), exact for very small posteriors too. */
export function logPosterior(scores, K) {
  const out = zeros(scores.length);
  for (let i = 0; i < scores.length; i += K) {
    let best = 0, others = 0;
    for (let k = 1; k < K; k++) if (scores[i + k] > scores[i + best]) best = k;
    const top = scores[i + best];
    for (let k = 0; k < K; k++) if (k !== best) others += Math.exp(scores[i + k] - top);
    const log = Math.log1p(others);
    for (let k = 0; k < K; k++) out[i + k] = scores[i + k] - top - log;
  }
  return out;
}

/** Posteriors (N, K) of scores. */
export function posterior(scores, K) {
  return logPosterior(scores, K).map(Math.exp);
}

/** For each row the code of the largest of its K values, the first one of ties. */
export function argmax(values, K) {
  const codes = new Int32Array(values.length / K);
  for (let i = 0, p = 0; i < codes.length; i++, p += K) {
    let best = 0;
    for (let k = 1; k < K; k++) if (values[p + k] > values[p + best]) best = k;
    codes[i] = best;
  }
  return codes;
}

/**
 * Actions of least expected cost, R_a = sum_k cost[a, k] P(k), and REJECT where
 *
 *   min R > reject.cost        or        max P < reject.threshold
 *
 * `cost` is (A, K); without it every error costs 1. The first of equal costs (TIE) is chosen.
 */
export function decide(logs, K, { cost = null, reject = null } = {}) {
  const n = logs.length / K, actions = argmax(logs, K);
  const costs = cost && numbers(cost), A = cost ? costs.length / K : K, p = zeros(K);
  const limit = reject?.cost ?? Infinity, threshold = reject?.threshold ?? 0;
  const exceeds = (value, bound) => value > bound * (1 + TIE);
  for (let i = 0; i < n; i++) {
    const error = -Math.expm1(logs[i * K + actions[i]]);
    let least = error;
    if (cost) {
      for (let k = 0; k < K; k++) p[k] = Math.exp(logs[i * K + k]);
      least = Infinity;
      for (let a = 0; a < A; a++) least = Math.min(least, dot(costs, p, K, a * K));
      let a = 0;
      while (exceeds(dot(costs, p, K, a * K), least)) a++;
      actions[i] = a;
    }
    if (limit === 0 || exceeds(least, limit) || exceeds(error, 1 - threshold)) actions[i] = REJECT;
  }
  return actions;
}

// --- leave-one-out ---

const MIN_LEFT = 1e-6; // least share of a covariance that must remain without a row; else refit
const MIN_DIGITS = 10; // correct digits of the variances without a row; with fewer, sum again

/**
 * Scores of rows, each by the rule fitted to all other rows: the same as refitting N times.
 *
 * Let u be a row of class k and weight w, and z = u - mean_k. Without it
 *
 *   n_k' = n_k - w     u - mean_k' = z n_k / n_k'     W_k' = W_k - c z z',  c = w n_k / n_k'
 *
 * so a covariance without the row is E - r y y', of rank one, and by Sherman and Morrison
 *
 *   v' (E - r y y')^-1 v = v' E^-1 v + r (v' E^-1 y)^2 / left       left = 1 - r y' E^-1 y
 *   log|E - r y y'|      = log|E| + log left
 *
 * There is a closed form for LDA, QDA and RDA without shrinkage, the nearest mean and least
 * squares. Other models are fitted to the moments minus each row; `refitted` counts these rows. The
 * last row of a class has scores of NaN. Rows are those of the moments, or some of them. Results are
 * stored until the moments change, for other priors.
 */
export class LeaveOneOut {
  #version = -1;
  #key = null;
  #closed = null;

  constructor(moments, rows, codes, weight = null) {
    this.moments = moments;
    this.rows = numbers(rows);
    this.codes = Int32Array.from(codes);
    this.weight = weight && numbers(weight);
    this.n = this.codes.length;
    this.refitted = 0;
  }

  /**
   * Scores (N, K). The options are those of `fit`, and `priors`: "refit" (class shares of the other
   * rows) or "fixed" (class shares of all rows), if no prior is given.
   */
  scores(options = {}, out = null) {
    checkOptions(options);
    const { moments, n, codes } = this, { K } = moments;
    const result = out ?? zeros(n * K);
    this.refitted = 0;
    const given = options.priors === "fixed" && !options.prior && options.model !== "nearest_mean"
      ? { ...options, prior: priorOf(moments.weight, options) } : options;
    const key = JSON.stringify({ ...options, prior: 0, priors: 0 }), { version } = moments;
    if (key !== this.#key || version !== this.#version) this.#closed = this.#closedForm(options);
    [this.#key, this.#version] = [key, version];
    const closed = this.#closed;
    if (closed) {
      result.set(closed);
      if (options.model !== "least_squares") this.#addPriors(result, given);
    } else result.fill(NaN);
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < K; k++) {
        if (Number.isFinite(result[i * K + k])) continue;
        this.#refit(i, given, result);
        break;
      }
    }
    if (moments.rows.some((count) => count < 2)) this.#blankSingles(result, codes, K);
    return result;
  }

  #blankSingles(result, codes, K) {
    codes.forEach((code, i) => { if (this.moments.rows[code] < 2) result.fill(NaN, i * K, i * K + K); });
  }

  #addPriors(result, options) {
    const { moments, codes, weight } = this, { K } = moments, known = new Map();
    for (let i = 0; i < this.n; i++) {
      const w = weight ? weight[i] : 1, key = weight ? `${codes[i]} ${w}` : codes[i];
      let logs = known.get(key);
      if (!logs) {
        const left = moments.weight.slice();
        left[codes[i]] -= w;
        known.set(key, logs = priorOf(left, options).map(Math.log));
      }
      for (let k = 0; k < K; k++) result[i * K + k] += logs[k];
    }
  }

  /** Scores of row i by a model fitted to the moments without it. */
  #refit(i, options, result) {
    const { moments, codes, weight } = this, { K, d } = moments, w = weight ? weight[i] : 1;
    const row = this.rows.subarray(i * d, i * d + d);
    this.refitted++;
    if (moments.rows[codes[i]] < 2) return;
    const linear = options.model === "least_squares" || familyOf(options).linear;
    let others = linear ? moments.reduce() : moments.clone();
    try {
      others.remove(row, codes[i], w, { digits: MIN_DIGITS });
    } catch (error) {
      if (error.kind !== "precision" || this.n !== sum(moments.rows)) throw error;
      const rest = range(this.n).filter((j) => j !== i);
      others = Moments.ofRows(selectRows(this.rows, d, rest), rest.map((j) => codes[j]), {
        ...others, weight: weight && rest.map((j) => weight[j]),
      });
    }
    const rule = fit(others, options);
    result.set(rule.scores(row), i * K);
  }

  /** For each row: weight w, c, stretch n/n', degrees of its class and of the pooled scatter. */
  #rowTerms(denominator, linear, weighting) {
    const { moments, codes, n } = this, { weight, weight2 } = moments;
    const all = classDegrees(weight, weight2, denominator), total = pooledDegrees(moments, denominator);
    const terms = { w: zeros(n), c: zeros(n), stretch: zeros(n), degrees: zeros(n), total: zeros(n), all };
    for (let i = 0; i < n; i++) {
      const k = codes[i], w = this.weight ? this.weight[i] : 1, left = weight[k] - w;
      let m = left;
      if (denominator === "unbiased") m = left - 1;
      if (denominator === "reliability") m = left - (weight2[k] - w * w) / left;
      const rest = total - all[k] + m;
      terms.w[i] = w;
      terms.stretch[i] = weight[k] / left;
      terms.c[i] = w * terms.stretch[i];
      terms.total[i] = rest > 0 ? rest : NaN;
      terms.degrees[i] = m > 0 || linear || weighting === "friedman" ? m : NaN;
    }
    return terms;
  }

  /** Scores without log priors; NaN for rows, or null for models, without a closed form. */
  #closedForm(options) {
    const { moments } = this, fitting = prepare(moments);
    if (options.model === "least_squares") return this.#leastSquares(fitting, options);
    const family = familyOf(options), { shrinkage, denominator, linear, weighting } = family;
    if (options.model === "nearest_mean" && moments.rows.every((count) => count === 1)) return null;
    if (shrinkage === "oas" || options.predictive === "student") return null;
    const terms = this.#rowTerms(denominator, linear, weighting);
    if (!linear) return shrinkage === 0 ? this.#quadratic(fitting, family, terms) : null;
    if (shrinkage !== 0 && (shrinkage !== 1 || family.target === "diagonal")) return null;
    const distances = this.#linear(fitting, family, terms);
    if (!distances) return null;
    return distances.map((value) => -0.5 * value);
  }

  /** The metric of a covariance, or null if it is singular, ill-conditioned, or all rounding. */
  #cleanMetric(covariance) {
    const { moments } = this, { d } = moments;
    if (range(d).some((j) => !(covariance[j * (d + 1)] > 4 * roundingOf(moments, j)))) return null;
    const { metric, deficiency } = factorise(covariance, d);
    return deficiency ? null : metric;
  }

  /**
   * For some rows, the products y = B z and, for each class, what follows from v = B (u - mean_l):
   * call use(row, y'y, y'(v - y) by class, |v - y|^2 by class), where v - y = B (mean_k - mean_l).
   */
  #forRows(selected, { basis, reach, rank }, use) {
    const { moments, rows, codes } = this, { K, d, mean, origin } = moments;
    const white = zeros(K * rank), x = zeros(4 * d), y = zeros(4 * Math.max(rank, 1)), along = zeros(4 * K);
    const centre = moments.centre(), between = zeros(K * K), full = new Int32Array(K).fill(rank);
    for (let k = 0; k < K; k++) {
      for (let r = 0; r < rank; r++) {
        let value = 0;
        for (let j = 0; j < reach[r]; j++) value += basis[r * d + j] * (mean[k * d + j] - centre[j]);
        white[k * rank + r] = value;
      }
      for (let l = 0; l < k; l++) {
        let square = 0;
        for (let r = 0; r < rank; r++) square += (white[k * rank + r] - white[l * rank + r]) ** 2;
        between[k * K + l] = between[l * K + k] = square;
      }
    }
    for (let i = 0; i < selected.length; i += 4) {
      const count = Math.min(4, selected.length - i);
      for (let t = 0; t < count; t++) {
        const from = selected[i + t] * d, m = codes[selected[i + t]] * d, to = t * d;
        for (let j = 0; j < d; j++) x[to + j] = rows[from + j] - origin[j] - mean[m + j];
      }
      multiply4(x, basis, reach, rank, d, y);
      multiply4(y, white, full, K, rank, along);
      for (let t = 0; t < count; t++) {
        use(selected[i + t], dot(y, y, rank, t * rank, t * rank), along, t * K, between);
      }
    }
  }

  /**
   * Squared distances of linear models. LDA: E = W / total, whitened by the pooled covariance of all
   * rows. Nearest mean, and others shrunk fully to a multiple of I: E = floor I, with r = 0.
   */
  #linear(fitting, { shrinkage, target }, { total, c, stretch }) {
    const { moments, codes, n } = this, { K, d } = moments, { pooled } = fitting;
    const weight = sum(moments.weight), trace = sum(diagonalOf(pooled, d));
    const metric = shrinkage ? diagonalMetric(ones(d)) : this.#cleanMetric(divided(pooled, weight));
    if (!metric) return null;
    const out = zeros(n * K);
    this.#forRows(indices(n), metric, (i, square, along, at, between) => {
      const own = codes[i], left = 1 - (c[i] * square) / (shrinkage ? trace : weight);
      let scale = total[i] / weight, factor = c[i] / weight / left;
      if (shrinkage) [scale, factor] = [target === "identity" ? 1 : (d * total[i]) / (trace * left), 0];
      if (left < MIN_LEFT) scale = NaN;
      for (let k = 0; k < K; k++) {
        const cross = along[at + own] - along[at + k], vy = square + cross;
        out[i * K + k] = scale * (square + 2 * cross + between[own * K + k] + factor * vy * vy);
      }
      out[i * K + own] *= stretch[i] * stretch[i];
    });
    return out;
  }

  /** QDA and RDA without shrinkage: a W_l + b W, factorised for each a and b that occur. */
  #quadratic(fitting, family, terms) {
    const { moments, codes, n } = this, { K, d, scatter, weight } = moments, { pooled } = fitting;
    const { pooling, weighting } = family, { c, stretch, degrees, total, all } = terms;
    if (pooling > 0 && !this.#cleanMetric(divided(pooled, sum(weight)))) return null;
    const factors = (m, rest) => {
      const below = weighting === "friedman" ? (1 - pooling) * m + pooling * rest : 0;
      return below ? [(1 - pooling) / below, pooling / below] : [(1 - pooling) / m, pooling / rest];
    };
    const out = zeros(n * K);
    for (let l = 0; l < K; l++) {
      const groups = new Map();
      for (let i = 0; i < n; i++) {
        const own = codes[i] === l, [a, b] = factors(own ? degrees[i] : all[l], total[i]);
        const key = `${own} ${a} ${pooling > 0 ? b : 0}`;
        if (!groups.has(key)) groups.set(key, { a, b: pooling > 0 ? b : 0, own, selected: [] });
        groups.get(key).selected.push(i);
      }
      for (const { a, b, own, selected } of groups.values()) {
        const covariance = zeros(d * d), start = l * d * d;
        for (let i = 0; i < d * d; i++) covariance[i] = a * scatter[start + i] + (b ? b * pooled[i] : 0);
        const metric = a >= 0 ? this.#cleanMetric(covariance) : null;
        if (!metric) {
          if (pooling === 0) return null;
          selected.forEach((i) => { out[i * K + l] = NaN; });
          continue;
        }
        this.#forRows(selected, metric, (i, square, along, at, between) => {
          const drop = c[i] * (own ? a + b : b), left = 1 - drop * square;
          const cross = along[at + codes[i]] - along[at + l], factor = own ? stretch[i] : 1;
          const vy = factor * (square + cross);
          const vv = factor * factor * (square + 2 * cross + between[codes[i] * K + l]);
          out[i * K + l] = left < MIN_LEFT ? NaN
            : -0.5 * (vv + (drop * vy * vy) / left + metric.logdet + Math.log(left));
        });
      }
    }
    return out;
  }

  /** Least squares: fitted without row i = (fitted_i - h code_i) / (1 - h), with h its leverage. */
  #leastSquares(fitting, options) {
    const { moments, rows, codes, n } = this, { K, d, origin } = moments, { centre } = fitting;
    const rule = fitLeastSquares(fitting, options), { solver, columns } = rule, total = sum(moments.weight);
    if (!(solver.digits >= 11)) return null;
    const out = rule.scores(rows), least = 10 ** (11 - solver.digits);
    for (let i = 0; i < n; i++) {
      const u = Float64Array.from(columns, (j) => rows[i * d + j] - origin[j] - centre[j]);
      const square = solver.metric ? solver.metric.squaredLength(u) : 0;
      const h = (this.weight ? this.weight[i] : 1) * (1 / total + square);
      for (let k = 0; k < K; k++) {
        const code = k === codes[i] ? 1 : 0;
        out[i * K + k] = 1 - h > least ? (out[i * K + k] - h * code) / (1 - h) : NaN;
      }
    }
    return out;
  }
}

const indices = (n) => Int32Array.from(range(n));

function selectRows(rows, d, selected) {
  const out = zeros(selected.length * d);
  selected.forEach((from, to) => out.set(rows.subarray(from * d, from * d + d), to * d));
  return out;
}

// --- discriminant directions ---

/**
 * Fisher's discriminant directions V: projections (x - centre) V have the identity as covariance
 * within classes, and class means as far apart as possible. `eigenvalues` are the ratios of the
 * scatter between classes to that within. The projected mean of the last class is positive.
 */
export function canonicalDirections(moments, options = {}) {
  checkOptions(options);
  checkClasses(moments);
  const fitting = prepare(moments), family = familyOf({ ...options, model: "lda" });
  const { K, d, mean, weight, origin } = moments, prior = priorOf(weight, options);
  const metric = pooledMetric(fitting, family), q = metric.rank, total = sum(weight);
  const middle = combine(Array.from(prior), mean, d), white = zeros(K * q), root = zeros(K * q);
  for (let k = 0; k < K; k++) {
    white.set(metric.whiten(middle.map((value, j) => mean[k * d + j] - value)), k * q);
    for (let i = 0; i < q; i++) root[k * q + i] = Math.sqrt(total * prior[k]) * white[k * q + i];
  }
  const { values, right } = svd(root, K, q), width = values.length, limit = Math.min(K - 1, width);
  const above = range(limit).filter((i) => values[i] > 1e-11 * values[0]).length;
  const r = Math.min(options.components ?? Math.max(above, 1), limit);
  const directions = zeros(d * r), projected = zeros(K * r);
  for (let i = 0; i < r; i++) {
    const axis = Float64Array.from(range(q), (j) => right[j * width + i]);
    const along = range(K).map((k) => dot(white, axis, q, k * q)), far = largest(along.map(Math.abs));
    const sign = along.findLast((value) => Math.abs(value) > 1e-6 * far) < 0 ? -1 : 1;
    metric.unwhiten(axis).forEach((value, j) => { directions[j * r + i] = sign * value; });
    along.forEach((value, k) => { projected[k * r + i] = sign * value; });
  }
  const degrees = pooledDegrees(moments, family.denominator);
  const centre = origin.map((value, j) => value + middle[j]);
  const residue = middle.map((value, j) => value - (centre[j] - origin[j]));
  const shift = Float64Array.from(range(r), (i) =>
    residue.reduce((value, part, j) => value - part * directions[j * r + i], 0));
  const rule = new LinearRule({ labels: range(r), origin: centre },
    { coef: transpose(directions, d, r), intercept: shift });
  return {
    centre, directions, projected, r, warnings: fitting.warnings,
    eigenvalues: values.slice(0, r).map((value) => (value * value) / degrees),
    /** Projections (N, r) of rows (N, d). */
    project: (rows, out) => rule.scores(rows, out),
  };
}

// --- the smallest change of a row ---

/**
 * The smallest change z of a row that changes its predicted class; null if there is none.
 *
 * The rule must be linear. With g the lead over class c and a its slope minus that of the predicted
 * class, a'z > g leads to class c; in units of `scale`:
 *
 *   l2    z = t a        linf    z = t sign a        l1    the feature with the largest |a_j| only
 *
 * Features with a number in `fixed` do not change.
 */
export function smallestChange(rule, row, { norm = "l2", scale, fixed = [] } = {}) {
  const x = numbers(row), { d, K } = rule, unit = scale ? numbers(scale) : ones(d);
  const free = range(d).filter((j) => !fixed.includes(j));
  if (!rule.coef) fail("rule", "The smallest change is known only for linear rules.");
  const scores = rule.scores(x), [before] = argmax(scores, K);
  const changed = (z) => x.map((value, j) => value + z[j] * unit[j]);
  let best = null;
  for (let c = 0; c < K; c++) {
    if (c === before) continue;
    for (let beyond = 1e-9; beyond < 2e-3; beyond *= 10) { // until rounding does not undo the change
      const z = stepAlong(rule, x, unit, before, c, scores[before] - scores[c], beyond, free, norm);
      if (!z) break;
      if (rule.predict(changed(z))[0] === before) continue;
      const sizes = z.map(Math.abs);
      const size = { l1: sum, linf: largest, l2: (v) => Math.hypot(...v) }[norm](sizes);
      if (!best || size < best.size) best = { z, size };
      break;
    }
  }
  if (!best) return null;
  const after = changed(best.z);
  return { row: after, change: after.map((value, j) => value - x[j]), size: best.size, before,
    after: rule.predict(after)[0] };
}

/** The smallest z with which class c leads over class k by a little. */
function stepAlong({ coef, d }, x, unit, k, c, lead, beyond, free, norm) {
  const a = zeros(d), z = zeros(d);
  let reach = 0, rate = 0, best = free[0];
  for (const j of free) {
    a[j] = (coef[c * d + j] - coef[k * d + j]) * unit[j];
    reach = Math.max(reach, Math.abs((a[j] / unit[j]) * x[j]), Math.abs(a[j]));
    rate += norm === "l2" ? a[j] * a[j] : Math.abs(a[j]);
    if (Math.abs(a[j]) > Math.abs(a[best])) best = j;
  }
  if (!rate) return null;
  const goal = lead + beyond * (lead + reach);
  for (const j of norm === "l1" ? [best] : free) {
    z[j] = { l2: (goal / rate) * a[j], linf: (goal / rate) * Math.sign(a[j]), l1: goal / a[j] }[norm];
  }
  return z;
}

// --- logistic regression ---

/**
 * Logistic regression by Newton's method, for the few rows that a page shows.
 *
 *   minimise  mean of -log P(class | x)  +  ridge / 2 sum_j (sd_j coef_j)^2
 *
 * The intercepts are not penalised; with `standardize` false, sd_j is 1. Two classes have one score,
 * the log odds of the second; K > 2 classes have scores with sum zero.
 *
 * `separated` is true if the classes are completely separated, so that without a ridge there is no
 * minimum; false if there is one (Bach 2010, proposition 2); and null if it is not known, as with
 * quasi-complete separation: then `converged` is false, too.
 */
export function logistic(rows, codes, {
  classes, labels, features, weight, ridge = 0, standardize = true, steps = 100,
} = {}) {
  rows = numbers(rows);
  const n = codes.length, d = rows.length / n;
  const moments = Moments.ofRows(rows, codes, { classes, labels, features, weight, detail: "pooled" });
  const { K, origin } = moments, centre = moments.centre(), total = sum(moments.weight);
  const warnings = [], scatter = moments.pooled();
  checkClasses(moments);
  for (let k = 0; k < K; k++) {
    addOuter(scatter, 0, centre.map((c, j) => moments.mean[k * d + j] - c), moments.weight[k], d);
  }
  const sd = diagonalOf(scatter, d).map((value) => Math.sqrt(value / total));
  const columns = range(d).filter((j) => sd[j] > 16 * EPS * Math.abs(centre[j])), q = columns.length + 1;
  if (q <= d) {
    const constant = range(d).filter((j) => !columns.includes(j));
    warnings.push({ kind: "constant_column", columns: named(moments, constant) });
  }
  const z = zeros(n * q); // standardised rows, with a one in front
  for (let i = 0; i < n; i++) {
    z[i * q] = 1;
    columns.forEach((j, p) => { z[i * q + p + 1] = (rows[i * d + j] - origin[j] - centre[j]) / sd[j]; });
  }
  const penalty = Float64Array.from(range(q), (p) =>
    p === 0 ? 0 : ridge * (standardize ? 1 : 1 / sd[columns[p - 1]] ** 2));
  const contrast = contrasts(K), m = contrast.length / K;
  const share = Float64Array.from(codes, (_, i) => (weight ? weight[i] : 1) / total);
  const least = weight ? Math.min(...weight.filter((w) => w > 0)) : 1;
  const problem = { n, q, m, K, z, codes, share, penalty, contrast };
  const theta = zeros(q * m);
  const logs = moments.weight.map((value) => Math.log(value / total));
  for (let c = 0; c < m; c++) theta[c * q] = dot(contrast, logs, K, c * K);
  let point = softmaxPoint(problem, theta), count = 0, within = false, separated = null;
  for (; count < steps; count++) {
    if (ridge === 0 && point.loss * total < 0.99 * Math.LN2 * least) {
      separated = true;
      break;
    }
    const step = leastSquaresSolver(point.curvature, q * m).solve(point.gradient);
    const decrement = dot(point.gradient, step, q * m);
    const finished = within; // the last step started where convergence is quadratic
    within = largest(point.gradient.map(Math.abs)) <= 1e-8 && decrement <= 1e-10;
    if (finished && within) break;
    let next = null;
    for (let factor = 1; factor > 1e-10; factor /= 2) {
      const tried = point.theta.map((value, p) => value - factor * step[p]);
      next = softmaxPoint(problem, tried);
      if (next.value <= point.value - 1e-4 * factor * decrement || (within && factor === 1)) break;
      next = null;
    }
    if (!next) break;
    point = next;
  }
  if (separated === null) {
    if (ridge > 0) separated = false;
    else {
      const step = leastSquaresSolver(point.curvature, q * m).solve(point.gradient);
      const square = total * dot(point.gradient, step, q * m);
      if ((square * 2) / (point.least * total) <= 0.25) separated = false;
    }
  }
  const coef = zeros(K * d), intercept = zeros(K);
  for (let k = 0; k < K; k++) {
    for (let c = 0; c < m; c++) {
      intercept[k] += contrast[c * K + k] * point.theta[c * q];
      columns.forEach((j, p) => { coef[k * d + j] += (contrast[c * K + k] * point.theta[c * q + p + 1]) / sd[j]; });
    }
  }
  const moved = origin.map((value, j) => value + centre[j]);
  for (let k = 0; k < K; k++) {
    for (let j = 0; j < d; j++) intercept[k] += coef[k * d + j] * (moved[j] - origin[j] - centre[j]);
  }
  const converged = within && separated === false;
  if (!converged) warnings.push({ kind: separated ? "separation" : "not_converged" });
  const fields = { labels: moments.labels, features: moments.features, origin: moved, rank: q - 1,
    prior: divided(moments.weight, total), warnings };
  return { rule: new LinearRule(fields, { coef, intercept }), converged, separated, steps: count,
    loss: point.value, gradient: largest(point.gradient.map(Math.abs)), theta: point.theta };
}

/** Contrasts of K classes in rows: (0, 1) for two classes, else orthonormal and with sum zero. */
function contrasts(K) {
  if (K === 2) return Float64Array.of(0, 1);
  const out = zeros((K - 1) * K);
  for (let c = 1; c < K; c++) {
    const size = Math.sqrt(c * (c + 1));
    for (let k = 0; k < c; k++) out[(c - 1) * K + k] = 1 / size;
    out[(c - 1) * K + c] = -c / size;
  }
  return out;
}

/** Penalised mean loss at theta (m, q), with gradient, curvature and the least weighted probability. */
function softmaxPoint({ n, q, m, K, z, codes, share, penalty, contrast }, theta) {
  const size = m * q, gradient = zeros(size), curvature = zeros(size * size);
  const scores = zeros(K), along = zeros(m), pull = zeros(m), inner = zeros(m * m);
  let loss = 0, least = Infinity;
  for (let i = 0; i < n; i++) {
    const w = share[i];
    if (w === 0) continue;
    for (let c = 0; c < m; c++) along[c] = dot(theta, z, q, c * q, i * q);
    for (let k = 0; k < K; k++) {
      scores[k] = 0;
      for (let c = 0; c < m; c++) scores[k] += contrast[c * K + k] * along[c];
    }
    const logs = logPosterior(scores, K), p = logs.map(Math.exp);
    loss -= w * logs[codes[i]];
    for (let k = 0; k < K; k++) least = Math.min(least, w * p[k]);
    for (let c = 0; c < m; c++) {
      const mean = dot(contrast, p, K, c * K);
      pull[c] = mean - contrast[c * K + codes[i]];
      for (let b = 0; b <= c; b++) {
        let value = 0;
        for (let k = 0; k < K; k++) value += p[k] * (contrast[c * K + k] - mean) * contrast[b * K + k];
        inner[c * m + b] = w * value;
      }
    }
    for (let c = 0; c < m; c++) {
      for (let j = 0; j < q; j++) gradient[c * q + j] += w * pull[c] * z[i * q + j];
      for (let b = 0; b <= c; b++) {
        for (let j = 0; j < q; j++) {
          const factor = inner[c * m + b] * z[i * q + j], at = (c * q + j) * size + b * q;
          for (let l = 0; l < q; l++) curvature[at + l] += factor * z[i * q + l];
        }
      }
    }
  }
  let value = loss;
  for (let c = 0; c < m; c++) {
    for (let j = 0; j < q; j++) {
      const p = c * q + j;
      value += 0.5 * penalty[j] * theta[p] * theta[p];
      gradient[p] += penalty[j] * theta[p];
      curvature[p * size + p] += penalty[j];
    }
  }
  for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) curvature[j * size + i] = curvature[i * size + j];
  return { theta, loss, value, gradient, curvature, least };
}
