/**
 * Leave-one-out scores of models with shrinkage, and of Student's t, without refitting.
 *
 * Shrinkage changes all variances when a row is removed, so that no closed form of rank one exists.
 * One Cholesky factorisation for each row and each covariance that changes is exact, and takes a
 * fraction of the time of a fit: no inverse, no condition number. That needs well-conditioned
 * covariances: rows with a variance near zero are left to `LeaveOneOut`, which refits.
 */

import { LeaveOneOut, fit } from "./moments.js";

const LEAST_SHRINKAGE = 1e-3; // smallest eigenvalue of a correlation matrix that needs no check
const LEAST_VARIANCE = 1e-8; // relative to that of all rows

/** Multiplications that the scores of a row take, about. */
export function workOf({ model = "lda", shrinkage = 0, predictive }, d, K) {
  const factor = (d * d * d) / 6, product = (d * d) / 2;
  const shrunk = shrinkage >= LEAST_SHRINKAGE && model !== "nearest_mean";
  if (shrinkage > 0 && !shrunk) return (d * d * (d + K)) * K; // refitted
  if (model === "qda") return shrunk ? factor + K * product : K * (product + K * d);
  if (model === "rda") return K * (shrunk ? factor + product : product + K * d);
  return (shrunk ? factor + K * product : product + K * d) + (predictive ? 20 * K : 0);
}

/** Scores (N, K) of the rows of `left`, each without itself. The options have a prior. */
export function leftOutScores(left, options) {
  const { model = "lda", shrinkage = 0, predictive } = options;
  if (!["lda", "qda", "rda"].includes(model) || !(shrinkage >= LEAST_SHRINKAGE || predictive === "student")
    || (shrinkage > 0 && shrinkage < LEAST_SHRINKAGE) || shrinkage > 1) return left.scores(options);
  const { moments } = left, rule = fit(moments, options);
  if ([rule.rank].flat().some((rank) => rank < moments.d)) return left.scores(options);
  if (model === "rda" && options.pooling === 0) return left.scores({ ...options, shrinkage: 0 }); // shrinks nothing
  const scores = model === "lda" ? linearScores(left, options) : quadraticScores(left, options, rule);
  refitMissing(left, options, scores);
  return scores;
}

function refitMissing({ moments, rows, codes, n }, options, scores) {
  const { K, d } = moments, missing = [];
  for (let i = 0; i < n; i++) if (Number.isNaN(scores[i * K])) missing.push(i);
  if (!missing.length) return;
  const selected = new Float64Array(missing.length * d);
  missing.forEach((i, to) => selected.set(rows.subarray(i * d, i * d + d), to * d));
  const rest = new LeaveOneOut(moments, selected, missing.map((i) => codes[i])).scores(options);
  missing.forEach((i, from) => scores.set(rest.subarray(from * K, from * K + K), i * K));
}

/** Scores of models with one covariance: LDA, and LDA with Student's t. */
function linearScores(left, { shrinkage = 0, predictive, prior }) {
  const { moments, rows, codes, n } = left, { K, d, weight } = moments, logs = Array.from(prior, Math.log);
  const squares = shrinkage > 0 ? linearSquares(moments, rows, codes, shrinkage)
    : left.scores({ model: "lda", prior }).map((score, i) => 2 * (logs[i % K] - score));
  if (predictive !== "student") return squares.map((square, i) => logs[i % K] - 0.5 * square);
  const degrees = weight.reduce((sum, value) => sum + value, 0) - K - 1; // without the row
  if (shrinkage === 1) return new Float64Array(n * K).fill(NaN);
  const below = degrees / (1 - shrinkage); // shrinkage adds degrees of freedom
  if (!(below >= d)) return new Float64Array(n * K).fill(NaN);
  return squares.map((square, i) => {
    const k = i % K, count = weight[k] - (codes[Math.floor(i / K)] === k ? 1 : 0), scale = (1 + 1 / count) * below;
    return logs[k] - 0.5 * d * Math.log(scale) - 0.5 * (below + 1) * Math.log1p(square / scale);
  });
}

/** Squared distances (N, K) by the pooled covariance without each row, shrunk toward its diagonal. */
function linearSquares(moments, rows, codes, shrinkage) {
  const { K, d, weight } = moments, n = codes.length, out = new Float64Array(n * K);
  const pooled = moments.pooled(), least = leastVariances(moments);
  const degrees = weight.reduce((sum, value) => sum + value, 0) - K - 1;
  const matrix = new Float64Array((d + K) * d), z = new Float64Array(d);
  for (let i = 0; i < n; i++) {
    const own = codes[i], drop = removal(moments, rows, i, own, z);
    let usable = weight[own] > 1;
    for (let r = 0; r < d; r++) usable &&= fillRow(matrix, r, d, pooled, 0, z, drop, shrinkage, 1 / degrees, least);
    for (let k = 0; k < K; k++) fillOffset(matrix, d + k, moments, rows, i, k, own);
    if (!usable || !factorise(matrix, d, d + K)) out.fill(NaN, i * K, i * K + K);
    else for (let k = 0; k < K; k++) out[i * K + k] = squareOf(matrix, d + k, d);
  }
  return out;
}

/** QDA: only the own class changes. RDA: the pooled covariance changes, and with it every class. */
function quadraticScores({ moments, rows, codes, n }, { model, pooling = 0, shrinkage, prior }, rule) {
  const { K, d, weight, scatter } = moments, logs = Array.from(prior, Math.log);
  const p = model === "qda" ? 0 : pooling, pooled = moments.pooled(), least = leastVariances(moments);
  const out = p === 0 ? rule.scores(rows) : new Float64Array(n * K);
  const total = weight.reduce((sum, value) => sum + value, 0) - K - 1;
  const matrix = new Float64Array((d + 1) * d), z = new Float64Array(d), mixed = new Float64Array(d * d);
  for (let i = 0; i < n; i++) {
    const own = codes[i], drop = removal(moments, rows, i, own, z);
    for (let k = p === 0 ? own : 0; k < (p === 0 ? own + 1 : K); k++) {
      const degrees = weight[k] - (k === own ? 2 : 1);
      let usable = degrees > 0 && weight[own] > 2;
      if (p === 0) {
        for (let r = 0; r < d; r++) {
          usable &&= fillRow(matrix, r, d, scatter, k * d * d, z, drop, shrinkage, 1 / degrees, least);
        }
      } else {
        const a = (1 - p) / degrees, b = p / total, keep = 1 - shrinkage, at = k * d * d;
        const dropped = drop * ((k === own ? a : 0) + b * keep), dropDiagonal = drop * ((k === own ? a : 0) + b);
        for (let r = 0; r < d; r++) {
          const to = r * d, factor = dropped * z[r];
          for (let j = 0; j < r; j++) matrix[to + j] = a * scatter[at + to + j] + b * keep * pooled[to + j] - factor * z[j];
          const variance = a * scatter[at + to + r] + b * pooled[to + r] - dropDiagonal * z[r] * z[r];
          matrix[to + r] = variance;
          usable &&= variance > least[r];
        }
      }
      fillOffset(matrix, d, moments, rows, i, k, own);
      if (!usable || !factorise(matrix, d, d + 1)) {
        out.fill(NaN, i * K, i * K + K);
        break;
      }
      let logdet = 0;
      for (let r = 0; r < d; r++) logdet += Math.log(matrix[r * d + r]);
      out[i * K + k] = logs[k] - logdet - 0.5 * squareOf(matrix, d, d);
    }
  }
  return out;
}

/** Variances of the features over all rows, times a small number. */
function leastVariances(moments) {
  const { d, K, mean, weight } = moments, scatter = moments.pooled(), middle = moments.centre();
  const total = weight.reduce((sum, value) => sum + value, 0);
  return Float64Array.from({ length: d }, (_, j) => {
    let variance = scatter[j * d + j];
    for (let k = 0; k < K; k++) variance += weight[k] * (mean[k * d + j] - middle[j]) ** 2;
    return (LEAST_VARIANCE * variance) / total;
  });
}

/** z = x - mean of its class; the scatter without the row is W - c z z', with c = n / (n - 1). */
function removal({ origin, mean, weight, d }, rows, i, own, z) {
  for (let j = 0; j < d; j++) z[j] = rows[i * d + j] - origin[j] - mean[own * d + j];
  return weight[own] / (weight[own] - 1);
}

/** Row r of the lower triangle of the shrunk covariance; false if its variance is too small. */
function fillRow(matrix, r, d, scatter, at, z, drop, shrinkage, scale, least) {
  const to = r * d, keep = (1 - shrinkage) * scale, factor = keep * drop * z[r];
  for (let j = 0; j < r; j++) matrix[to + j] = keep * scatter[at + to + j] - factor * z[j];
  matrix[to + r] = scale * (scatter[at + to + r] - drop * z[r] * z[r]);
  return matrix[to + r] > least[r];
}

/** Row `to`: x minus the mean of class k, without the row if it is its own. */
function fillOffset(matrix, to, { origin, mean, weight, d }, rows, i, k, own) {
  const stretch = k === own ? weight[k] / (weight[k] - 1) : 1;
  for (let j = 0; j < d; j++) matrix[to * d + j] = stretch * (rows[i * d + j] - origin[j] - mean[k * d + j]);
}

/** Factor L of the first d rows, in place; the other rows v become L^-1 v. */
function factorise(a, d, rows) {
  for (let i = 0; i < rows; i++) {
    const at = i * d, end = Math.min(i + 1, d);
    for (let j = 0; j < end; j++) {
      const from = j * d;
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, c = 0;
      for (; c + 3 < j; c += 4) {
        s0 += a[at + c] * a[from + c];
        s1 += a[at + c + 1] * a[from + c + 1];
        s2 += a[at + c + 2] * a[from + c + 2];
        s3 += a[at + c + 3] * a[from + c + 3];
      }
      for (; c < j; c++) s0 += a[at + c] * a[from + c];
      const rest = a[at + j] - (s0 + s1 + (s2 + s3));
      if (j < i) a[at + j] = rest / a[from + j];
      else if (rest > 0) a[at + j] = Math.sqrt(rest);
      else return false;
    }
  }
  return true;
}

function squareOf(matrix, row, d) {
  let sum = 0;
  for (let j = row * d; j < (row + 1) * d; j++) sum += matrix[j] * matrix[j];
  return sum;
}
