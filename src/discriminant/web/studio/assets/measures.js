/** Measures of decisions on the points shown; the server computes the same over all rows. */

import { REJECT } from "./moments.js";

/** Wilson's interval of x of n, 95 %. */
export function wilson(x, n) {
  if (!n) return [0, 1];
  const z = 1.959963984540054, p = x / n, scale = 1 + (z * z) / n;
  const middle = p + (z * z) / (2 * n), half = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [x === 0 ? 0 : (middle - half) / scale, x === n ? 1 : (middle + half) / scale];
}

/** Counts of actions (in rows, the last is "reject") by true class. */
export function confusionOf(actions, codes, K) {
  const cells = Array.from({ length: K + 1 }, () => new Array(K).fill(0));
  for (let i = 0; i < codes.length; i++) {
    const action = actions[i];
    if (action === null || action === undefined) continue;
    cells[action === REJECT ? K : action][codes[i]]++;
  }
  return cells;
}

/** Totals of a confusion matrix. */
export function totals(cells, K) {
  let rows = 0, correct = 0, rejected = 0;
  cells.forEach((row, a) => row.forEach((n, k) => {
    rows += n;
    if (a === k) correct += n;
    if (a >= K) rejected += n;
  }));
  const decided = rows - rejected, wrong = decided - correct;
  return { rows, correct, rejected, decided, wrong, error: decided ? wrong / decided : NaN };
}

/** ROC curve of a class: a point for each distinct score, with the area under it. */
export function rocOf(logs, codes, K, k) {
  const n = codes.length, own = new Float64Array(n), others = new Float64Array(n);
  let positive = 0, negative = 0;
  for (let i = 0; i < n; i++) {
    const log = logs[i * K + k];
    if (Number.isNaN(log)) continue;
    if (codes[i] === k) own[positive++] = -log;
    else others[negative++] = -log;
  }
  if (!positive || !negative) return null;
  const a = own.subarray(0, positive).sort(), b = others.subarray(0, negative).sort(); // best first
  const fpr = [0], tpr = [0], threshold = [1];
  let tp = 0, fp = 0, area = 0;
  while (tp < positive || fp < negative) {
    const next = Math.min(tp < positive ? a[tp] : Infinity, fp < negative ? b[fp] : Infinity), score = -next;
    const [tpBefore, fpBefore] = [tp, fp];
    while (tp < positive && a[tp] === next) tp++;
    while (fp < negative && b[fp] === next) fp++;
    area += ((fp - fpBefore) * (tp + tpBefore)) / 2;
    fpr.push(fp / negative);
    tpr.push(tp / positive);
    threshold.push(Math.exp(score));
  }
  return { fpr, tpr, threshold, auc: area / positive / negative, positive, negative };
}

/** Mean probability and observed share of a class, in ten bins of its probability. */
export function reliabilityOf(logs, codes, K, k, bins = 10) {
  const result = Array.from({ length: bins }, () => ({ predicted: 0, observed: 0, weight: 0, rows: [] }));
  for (let i = 0; i < codes.length; i++) {
    const p = Math.exp(logs[i * K + k]);
    if (!(p >= 0)) continue;
    const bin = result[Math.min(Math.floor(p * bins), bins - 1)];
    bin.predicted += p;
    bin.observed += codes[i] === k;
    bin.weight++;
    bin.rows.push(i);
  }
  return result.filter((bin) => bin.weight).map((bin) =>
    ({ ...bin, predicted: bin.predicted / bin.weight, observed: bin.observed / bin.weight }));
}

/** Rows, and misclassified rows, by their largest probability, in 100 bins. */
export function certaintyOf(logs, codes, K) {
  const rows = new Array(100).fill(0), wrong = new Array(100).fill(0);
  for (let i = 0; i < codes.length; i++) {
    let best = 0;
    for (let k = 1; k < K; k++) if (logs[i * K + k] > logs[i * K + best]) best = k;
    const bin = Math.min(Math.floor(Math.exp(logs[i * K + best]) * 100), 99);
    if (!(bin >= 0)) continue;
    rows[bin]++;
    wrong[bin] += best !== codes[i];
  }
  return { rows, wrong };
}

/** Mean of -log P(true class); null if a probability is unknown. */
export function logLossOf(logs, codes, K) {
  let sum = 0;
  for (let i = 0; i < codes.length; i++) sum -= logs[i * K + codes[i]];
  return Number.isNaN(sum) ? null : sum / codes.length;
}
