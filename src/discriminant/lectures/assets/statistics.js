/** Rows, samples, errors, densities and ellipses that several figures use. */

import { Moments, symmetricEigen } from "./moments.js";

export const rowsOf = (points) => Float64Array.from(points.flatMap((point) => [point.x, point.y]));
export const codesOf = (points) => points.map((point) => point.k);

/** Moments of points in K classes. */
export const momentsOf = (points, K) => Moments.ofRows(rowsOf(points), codesOf(points), { classes: K });

/** Mark the points whose predicted class is wrong, and count them. */
export function markWrong(points, predicted) {
  points.forEach((point, i) => { point.wrong = predicted[i] !== point.k; });
  return points.filter((point) => point.wrong).length;
}

/** Reproducible random numbers (mulberry32). */
export function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

/** Gaussian points of class k; covariance [[a, b], [b, c]]. */
export function cloud({ normal }, n, k, [mx, my], [a, b, c]) {
  const l = Math.sqrt(a), m = b / l, r = Math.sqrt(c - m * m);
  return Array.from({ length: n }, () => {
    const u = normal(), v = normal();
    return { x: mx + l * u, y: my + m * u + r * v, k };
  });
}

export const density = (x, mean = 0, sd = 1) => Math.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * Math.sqrt(2 * Math.PI));

/** Normal distribution function, with an absolute error below 1e-13 (series, and continued fraction in the tails). */
export function cumulative(z) {
  const size = Math.abs(z), top = density(size);
  let tail;
  if (size < 3) {
    let term = size, total = size;
    for (let n = 1; n < 120; n++) total += term *= (size * size) / (2 * n + 1);
    tail = 0.5 - top * total;
  } else {
    let fraction = 0;
    for (let n = 120; n > 0; n--) fraction = n / (size + fraction);
    tail = top / (size + fraction);
  }
  return z > 0 ? 1 - tail : tail;
}

export const sigmoid = (a) => (a >= 0 ? 1 / (1 + Math.exp(-a)) : Math.exp(a) / (1 + Math.exp(a)));

/** Evenly spaced numbers. */
export const spaced = (from, to, n) => Array.from({ length: n }, (_, i) => from + ((to - from) * i) / (n - 1));

export const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;

/** Points of the ellipse (x - centre)' C^-1 (x - centre) = radius^2. */
export function ellipse([cx, cy], covariance, radius = 2) {
  const { values, vectors } = symmetricEigen(Float64Array.from(covariance), 2);
  const [p, q] = Array.from(values, (value) => radius * Math.sqrt(Math.max(value, 0)));
  return spaced(0, 2 * Math.PI, 73).map((t) => [
    cx + p * Math.cos(t) * vectors[0] + q * Math.sin(t) * vectors[1],
    cy + p * Math.cos(t) * vectors[2] + q * Math.sin(t) * vectors[3],
  ]);
}

/** Mean [x, y] of class k of moments in the plane. */
export const meanOf = (moments, k) => [moments.origin[0] + moments.mean[2 * k], moments.origin[1] + moments.mean[2 * k + 1]];

/** Within-class and between-class scatter in the plane, S_b = sum n_k (m_k - m)(m_k - m)'. */
export function scatters(moments) {
  const within = moments.pooled(), centre = moments.centre(), between = new Float64Array(4);
  for (let k = 0; k < moments.K; k++) {
    const u = moments.mean[2 * k] - centre[0], v = moments.mean[2 * k + 1] - centre[1], n = moments.weight[k];
    [u * u, u * v, u * v, v * v].forEach((value, i) => { between[i] += n * value; });
  }
  return { within, between };
}

/** w' A w in the plane. */
export const quadratic = (a, [x, y]) => a[0] * x * x + (a[1] + a[2]) * x * y + a[3] * y * y;

/** Solution of the 2 by 2 system A x = b. */
export function solve2(a, [p, q]) {
  const det = a[0] * a[3] - a[1] * a[2];
  return [(a[3] * p - a[1] * q) / det, (a[0] * q - a[2] * p) / det];
}
