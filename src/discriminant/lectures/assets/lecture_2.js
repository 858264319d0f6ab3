/** Lecture 2: confusion matrix and ROC, training and test error, projections, eigenvectors, Fisher's steps. */

import { fit, Moments } from "./moments.js";
import { countOf, Explorable, percent, plain, short, themeButton } from "./figures.js";
import {
  cloud, ellipse, generator, markWrong, mean, meanOf, momentsOf, quadratic, solve2, spaced,
} from "./statistics.js";

// --- ROC ---

function roc() {
  const own = new Explorable("roc"), random = generator(4);
  const scores = [
    ...Array.from({ length: 16 }, (_, i) => ({ x: 0.9 + 1.1 * random.normal(), y: 0.62 + 0.06 * (i % 5), k: 1 })),
    ...Array.from({ length: 24 }, (_, i) => ({ x: -0.9 + 1.1 * random.normal(), y: 0.14 + 0.06 * (i % 5), k: 0 })),
  ];
  const line = own.plane({
    label: "Scores of positive and negative rows, with the threshold", x: [-5, 5], y: [0, 1], height: 210, xLabel: "score (log odds of positive)",
    points: scores, adding: ["negative", "positive"], axis: "x", caption: "Above: positive rows. Below: negative rows. Right of the threshold a row is predicted positive; circled rows are wrong.",
    place: (point) => ({ ...point, y: point.k ? Math.max(0.56, Math.min(0.92, point.y)) : Math.max(0.08, Math.min(0.44, point.y)) }),
  });
  line.svg.querySelectorAll("text[text-anchor=end]").forEach((text) => text.remove());
  const table = own.table("Confusion matrix");
  const curve = own.plane({ label: "ROC curve", x: [0, 1], y: [0, 1], equal: true, width: 420, small: true, xLabel: "false positive rate FP/(FP + TN)", yLabel: "true positive rate (recall)" });
  const threshold = own.slider("Threshold", { min: -5, max: 5, step: 0.05, value: 0 });
  const times = own.slider("Each negative row counts", { min: 1, max: 20, value: 1, show: (n) => (n === 1 ? "once" : `${n} times`) });
  const kind = own.choice("Curve", { roc: "ROC", pr: "precision and recall" });
  own.button("Largest TPR − FPR", () => {
    const cuts = line.points.map((point) => point.x - 0.01), gain = (cut) => share(1, cut) - share(0, cut);
    threshold.value = cuts.reduce((best, cut) => (gain(cut) > gain(best) ? cut : best));
  });
  const write = Object.fromEntries([["error", "Error rate"], ["precision", "Precision"], ["recall", "Recall (TPR)"], ["f", "F of positive"], ["fpr", "False positive rate"], ["auc", "Area under the ROC (AUC)"]]
    .map(([key, title]) => [key, own.number(title, key)]));
  const values = (k) => line.points.filter((point) => point.k === k).map((point) => point.x);
  const share = (k, cut) => {
    const of = values(k);
    return of.filter((x) => x > cut).length / of.length;
  };
  line.handle({ label: "Threshold", where: () => ({ x: threshold.value, y: 0.97 }), move: ({ x }) => { threshold.value = x; }, said: () => plain(threshold.value) });
  curve.handle({
    label: "Threshold on the curve", where: () => (kind.value === "roc" ? { x: share(0, threshold.value), y: share(1, threshold.value) } : { x: share(1, threshold.value), y: precision(threshold.value) }),
    move: ({ x, y, dx, dy }) => {
      const cuts = [-5, ...line.points.map((point) => point.x).sort((a, b) => a - b)].map((cut) => cut + 1e-9);
      const at = cuts.filter((cut) => cut <= threshold.value + 1e-9).length - 1;
      const place = (cut) => (kind.value === "roc" ? [share(0, cut), share(1, cut)] : [share(1, cut), precision(cut)]);
      const far = (cut) => Math.hypot(place(cut)[0] - x, place(cut)[1] - y);
      if (dx || dy) threshold.value = cuts[Math.min(cuts.length - 1, Math.max(0, at + (dx + dy > 0 ? -1 : 1)))];
      else threshold.value = cuts.reduce((best, cut) => (far(cut) < far(best) ? cut : best));
    },
    said: () => plain(threshold.value),
  });
  const precision = (cut) => {
    const tp = values(1).filter((x) => x > cut).length, fp = times.value * values(0).filter((x) => x > cut).length;
    return tp + fp ? tp / (tp + fp) : 1;
  };
  own.start(() => {
    const cut = threshold.value, positive = values(1), negative = values(0), n = times.value;
    const tp = positive.filter((x) => x > cut).length, fn = positive.length - tp;
    const fp = n * negative.filter((x) => x > cut).length, tn = n * negative.length - fp, total = tp + fn + fp + tn;
    markWrong(line.points, line.points.map((point) => (point.x > cut ? 1 : 0)));
    line.draw(line.rectangle([cut, 0], [5, 1], "band"), line.line([cut, 0], [cut, 0.97], "strong"), line.line([-5, 0.5], [5, 0.5], "faint"));
    const cuts = [-Infinity, ...line.points.map((point) => point.x).sort((a, b) => a - b)];
    if (kind.value === "roc") {
      const path = cuts.map((c) => [share(0, c), share(1, c)]);
      curve.draw(`<g class="k0">${curve.curve([...path, [1, 0]], "area", true)}</g>`, curve.line([0, 0], [1, 1], "dashed"), curve.curve(path, "strong"));
    } else {
      const path = cuts.slice(0, -1).map((c) => [share(1, c), precision(c)]), base = positive.length / (positive.length + n * negative.length);
      curve.draw(curve.line([0, base], [1, base], "dashed"), curve.curve(path, "strong"), curve.text([0, base], "always positive", { anchor: "start", dx: 6, dy: -6 }));
    }
    const [xLabel, yLabel] = kind.value === "roc" ? ["false positive rate FP/(FP + TN)", "true positive rate (recall)"] : ["recall", "precision"];
    curve.rename(xLabel, yLabel);
    table.innerHTML = `<caption>Confusion matrix, as in the lecture: rows are predictions</caption><thead><tr><th scope="col">predicted</th><th scope="col">true positive class</th><th scope="col">true negative class</th></tr></thead>` +
      `<tbody><tr><th scope="row">positive</th><td>TP = ${tp}</td><td class="${fp ? "differs" : ""}">FP = ${fp}</td></tr><tr><th scope="row">negative</th><td class="${fn ? "differs" : ""}">FN = ${fn}</td><td>TN = ${tn}</td></tr></tbody>`;
    const pairs = positive.flatMap((a) => negative.map((b) => (a > b ? 1 : a === b ? 0.5 : 0)));
    write.error(percent((fp + fn) / total), `${fp + fn} of ${total}; accuracy ${percent((tp + tn) / total)}`);
    write.precision(tp + fp ? short(tp / (tp + fp)) : "–", `${tp} of ${tp + fp} predicted positive`);
    write.recall(short(tp / positive.length), `${tp} of ${positive.length} positive`);
    const f = (2 * tp) / (2 * tp + fp + fn), other = (2 * tn) / (2 * tn + fp + fn);
    write.f(short(f), `of negative ${short(other)}, mean ${short((f + other) / 2)}`);
    write.fpr(short(fp / (n * negative.length)), `${fp} of ${n * negative.length} negative`);
    write.auc(short(mean(pairs), 4), `${plain(mean(pairs) * pairs.length)} of ${pairs.length} pairs in order`);
  });
}

// --- training and test error ---

const SAMPLES = 120;

function optimism() {
  const own = new Explorable("optimism"), sizes = [12, 16, 20, 30, 40, 60, 100, 150, 200];
  const plot = own.plane({ label: "Training and test error against the number of rows", x: [0, 210], y: [0, 0.35], xLabel: "training rows", yLabel: "error" });
  const kind = own.choice("Model", { lda: "LDA", qda: "QDA" });
  const features = own.slider("Features (one discriminates)", { min: 1, max: 5, value: 3 });
  const shown = own.slider("Read the curves at", { min: 0, max: sizes.length - 1, value: 2, show: (i) => `${sizes[i]} rows` });
  const training = own.number("Training error", "training"), test = own.number("Test error", "test"), gap = own.number("Optimism", "optimism");
  const cache = new Map();
  const sample = (random, n, d) => {
    const codes = Array.from({ length: n }, (_, i) => i % 2);
    return { codes, rows: Float64Array.from(codes.flatMap((k) => Array.from({ length: d }, (_, j) => random.normal() + (j === 0 ? 2 * k : 0)))) };
  };
  function errors(model, d) {
    const key = `${model}${d}`;
    if (!cache.has(key)) {
      cache.set(key, sizes.map((n) => {
        const sums = [0, 0];
        for (let i = 0; i < SAMPLES; i++) {
          const random = generator(i + 1), later = sample(random, 200, d), { rows, codes } = sample(random, n, d);
          const rule = fit(Moments.ofRows(rows, codes, { classes: 2 }), { model });
          [[rows, codes], [later.rows, later.codes]].forEach(([x, y], s) => {
            sums[s] += rule.predict(x).reduce((wrong, k, row) => wrong + (k !== y[row]), 0) / y.length / SAMPLES;
          });
        }
        return sums;
      }));
    }
    return cache.get(key);
  }
  own.start(() => {
    const curves = errors(kind.value, features.value), at = sizes[shown.value], [low, high] = curves[shown.value];
    plot.draw(
      plot.line([at, 0], [at, 0.35], "faint"),
      plot.line([0, 0.1587], [210, 0.1587], "dashed"), plot.text([209, 0.1587], "error of the best rule", { anchor: "end", dy: -6 }),
      ["training", "test"].map((name, s) => `<g class="k${s}">${plot.curve(sizes.map((n, i) => [n, curves[i][s]]), "own")}` +
        `${sizes.map((n, i) => plot.circle([n, curves[i][s]], 4, "foot")).join("")}${plot.text([sizes[3], curves[3][s]], name, { kind: "own-label", dy: s ? -14 : 24, dx: 14 })}</g>`),
    );
    training(percent(low), `at ${at} rows`);
    test(percent(high), `at ${at} rows`);
    gap(percent(high - low), "test minus training error");
  });
}

// --- projection ---

function projection() {
  const own = new Explorable("projection");
  const plane = own.plane({ label: "Vectors a and b with the projection of b on a", x: [-6, 6], y: [-5, 5], equal: true, grid: true });
  const write = Object.fromEntries([["dot", "a'b"], ["factor", "c = a'b / a'a"], ["p", "p = c a"], ["r", "r = b − p"], ["check", "a'r"], ["angle", "angle θ"]]
    .map(([key, title]) => [key, own.number(title, key)]));
  let a = { x: 4, y: 2 }, b = { x: 1, y: 3 };
  const half = ({ x, y }) => ({ x: Math.round(10 * x) / 10, y: Math.round(10 * y) / 10 });
  plane.handle({ label: "Tip of a", where: () => a, move: (to) => { a = half(to); }, kind: "own k0" });
  plane.handle({ label: "Tip of b", where: () => b, move: (to) => { b = half(to); }, kind: "own k1" });
  own.button("Unit length for a", () => {
    const size = Math.hypot(a.x, a.y) || 1;
    a = { x: a.x / size, y: a.y / size };
  });
  own.start(() => {
    const dot = a.x * b.x + a.y * b.y, square = a.x ** 2 + a.y ** 2, c = square ? dot / square : NaN;
    const p = [c * a.x, c * a.y], r = [b.x - p[0], b.y - p[1]], o = [0, 0];
    plane.draw(
      plane.curve([[-20 * a.x, -20 * a.y], [20 * a.x, 20 * a.y]], "faint"),
      `<g class="k0">${plane.arrow(o, [a.x, a.y], "own")}${plane.text([a.x, a.y], "a", { kind: "own-label", dx: 16, dy: 14 })}</g>`,
      `<g class="k1">${plane.arrow(o, [b.x, b.y], "own")}${plane.text([b.x, b.y], "b", { kind: "own-label", dx: -14, dy: -10 })}</g>`,
      square ? [`<g class="k2">${plane.arrow(o, p, "own")}${plane.text([p[0] / 2, p[1] / 2], "p", { kind: "own-label", dy: 22, dx: 6 })}</g>`,
        plane.line(p, [b.x, b.y], "dashed"), plane.text([(p[0] + b.x) / 2, (p[1] + b.y) / 2], "r", { dx: 14 })] : "",
    );
    const pair = ([x, y]) => `(${short(x)}, ${short(y)})`;
    write.dot(short(dot), `‖a‖ = ${short(Math.sqrt(square))}, ‖b‖ = ${short(Math.hypot(b.x, b.y))}`);
    write.factor(short(c), "the offset, if ‖a‖ = 1");
    write.p(pair(p));
    write.r(pair(r), `length ${short(Math.hypot(...r))}`);
    write.check(short(Math.abs(a.x * r[0] + a.y * r[1]) < 1e-9 ? 0 : a.x * r[0] + a.y * r[1]), "always zero");
    write.angle(`${short((Math.acos(Math.max(-1, Math.min(1, dot / Math.sqrt(square) / Math.hypot(b.x, b.y)))) * 180) / Math.PI)}°`);
  }, { atReset: () => {
    a = { x: 4, y: 2 };
    b = { x: 1, y: 3 };
  } });
}

// --- eigenvectors ---

function eigenvectors() {
  const own = new Explorable("eigenvectors");
  const matrices = { symmetric: [2, 1, 1, 2], general: [2, 1, 0, 1], fisher: [1.6, 0.8, -0.6, -0.3], rotation: [0, -1, 1, 0] };
  const plane = own.plane({ label: "A vector u and its image Au", x: [-4, 4], y: [-3.3, 3.3], equal: true, grid: true, caption: "Thin circle: all u of length 1. Ellipse: their images Au. Dashed: eigenvectors." });
  const kind = own.choice("Matrix A", { symmetric: "symmetric (2 1; 1 2)", general: "triangular (2 1; 0 1)", fisher: "S⁻¹B of rank one", rotation: "rotation by 90°" });
  const turn = own.slider("Angle of u", { min: 0, max: 360, value: 15, show: (x) => `${x}°` });
  const change = own.number("Angle between u and Au", "between"), stretch = own.number("‖Au‖ / ‖u‖", "stretch");
  const values = own.number("Eigenvalues", "eigenvalues"), det = own.number("det(A − λI)", "polynomial"), verdict = own.number("u is an eigenvector", "is");
  const u = () => [Math.cos((turn.value * Math.PI) / 180), Math.sin((turn.value * Math.PI) / 180)];
  plane.handle({
    label: "Vector u", kind: "own k0", where: () => ({ x: u()[0], y: u()[1] }), said: () => `${turn.value} degrees`,
    move: ({ x, y, dx, dy }) => { turn.value = dx || dy ? (turn.value + (dy - dx > 0 ? 1 : 359)) % 360 : ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360; },
  });
  own.start(() => {
    const [a, b, c, d] = matrices[kind.value], image = ([x, y]) => [a * x + b * y, c * x + d * y];
    const v = u(), w = image(v), circle = spaced(0, 2 * Math.PI, 91).map((t) => [Math.cos(t), Math.sin(t)]);
    const half = (a + d) / 2, root = half * half - (a * d - b * c), lambdas = root < -1e-12 ? [] : [half + Math.sqrt(Math.max(root, 0)), half - Math.sqrt(Math.max(root, 0))];
    const vectors = lambdas.map((l) => {
      const [x, y] = Math.hypot(b, a - l) > 1e-9 ? [b, l - a] : Math.hypot(c, d - l) > 1e-9 ? [l - d, c] : [1, 0], size = Math.hypot(x, y);
      return [x / size, y / size];
    });
    plane.draw(
      plane.curve(circle, "faint"), plane.curve(circle.map(image), ""),
      vectors.map(([x, y]) => plane.curve([[-9 * x, -9 * y], [9 * x, 9 * y]], "dashed")),
      `<g class="k1">${plane.arrow([0, 0], w, "own")}${plane.text(w, "Au", { kind: "own-label", dx: 16, dy: -10 })}</g>`,
      `<g class="k0">${plane.arrow([0, 0], v, "own")}${plane.text(v, "u", { kind: "own-label", dx: 4, dy: 28 })}</g>`,
    );
    const size = Math.hypot(...w), cosine = (v[0] * w[0] + v[1] * w[1]) / size, between = (Math.acos(Math.max(-1, Math.min(1, cosine))) * 180) / Math.PI;
    change(size < 1e-6 ? "–" : `${short(between)}°`, size < 1e-6 ? "Au is zero" : "");
    stretch(short(size));
    values(lambdas.length ? lambdas.map((l) => short(l)).join(" and ") : "none is real", lambdas.length ? "" : "λ = ±i");
    det(`λ² − ${short(a + d)} λ + ${short(a * d - b * c)}`, "zero at the eigenvalues");
    const near = size < 0.03 || Math.min(between, 180 - between) < 1;
    verdict(near ? "yes" : "no", near ? `Au = λu with λ = ${short(size < 0.03 ? 0 : Math.sign(cosine) * size)}` : "within 1 degree");
  });
}

// --- Fisher's algorithm ---

function steps() {
  const own = new Explorable("steps"), random = generator(21);
  const points = [...cloud(random, 14, 0, [-1.6, -1], [1.1, 0.85, 1.1]), ...cloud(random, 14, 1, [1.2, 0.2], [1.1, 0.85, 1.1])];
  const plane = own.plane({ label: "Two classes with the step of Fisher's algorithm", x: [-6, 6], y: [-4.4, 4.4], equal: true, points, adding: ["blue", "orange"], xLabel: "x₁", yLabel: "x₂" });
  const names = ["the two classes", "means m₁ and m₂", "B, between the classes", "S₁ and S₂, within each class", "S = S₁ + S₂", "w = S⁻¹(m₁ − m₂)", "offsets w'x and a threshold"];
  const step = own.slider("Step", { min: 1, max: 7, value: 7, show: (n) => `${n}: ${names[n - 1]}` });
  const table = own.table("Matrices of the steps");
  const J = own.number("J(w)", "J"), lambda = own.number("Eigenvalue of S⁻¹B", "eigenvalue"), wrong = own.number("Wrong side of the threshold", "errors");
  own.start(() => {
    const at = step.value, moments = momentsOf(plane.points, 2), m = [meanOf(moments, 0), meanOf(moments, 1)];
    const S = [0, 1].map((k) => moments.scatter.slice(4 * k, 4 * k + 4)), sum = S[0].map((value, i) => value + S[1][i]);
    const gap = [m[0][0] - m[1][0], m[0][1] - m[1][1]], B = [gap[0] ** 2, gap[0] * gap[1], gap[0] * gap[1], gap[1] ** 2];
    const raw = solve2(sum, gap), size = Math.hypot(...raw), w = raw.map((value) => value / size);
    const middle = [(m[0][0] + m[1][0]) / 2, (m[0][1] + m[1][1]) / 2];
    const along = plane.points.map((point) => (point.x - middle[0]) * w[0] + (point.y - middle[1]) * w[1]);
    const errors = markWrong(plane.points, along.map((value) => (value > 0 ? 0 : 1)));
    if (at < 7) plane.points.forEach((point) => { point.wrong = false; });
    const on = (t) => [middle[0] + t * w[0], middle[1] + t * w[1]], n = moments.rows;
    const own1 = (k, shape) => `<g class="k${k}">${shape}</g>`;
    plane.draw(
      at >= 4 && at < 6 ? [0, 1].map((k) => own1(k, plane.curve(ellipse(m[k], at === 4 ? S[k].map((value) => value / (n[k] - 1)) : sum.map((value) => value / (n[0] + n[1] - 2)), 2), "own"))) : "",
      at === 3 ? plane.arrow(m[1], m[0], "strong") : "",
      at >= 6 ? [plane.curve([on(-12), on(12)], "faint"), plane.arrow(middle, on(2.6), "strong"), plane.text(on(2.6), "w", { dx: 14, dy: 16, kind: "label selected" })] : "",
      at === 7 ? [plane.points.map((point, i) => own1(point.k, plane.line([point.x, point.y], on(along[i]), "own thin") + plane.circle(on(along[i]), 3.5, "foot"))),
        plane.curve([[middle[0] - 9 * w[1], middle[1] + 9 * w[0]], [middle[0] + 9 * w[1], middle[1] - 9 * w[0]]], "known")] : "",
      at >= 2 ? [0, 1].map((k) => own1(k, plane.circle(m[k], 8, "centre") + plane.text(m[k], `m${"₁₂"[k]}`, { kind: "own-label", dy: -14 }))) : "",
    );
    const cells = (values) => Array.from(values, (value) => `<td>${short(value)}</td>`).join("");
    const rows = [[2, "m₁, m₂ (two columns each)", [...m[0], ...m[1]]], [3, "B = (m₁ − m₂)(m₁ − m₂)'", B], [4, "S₁", S[0]], [4, "S₂", S[1]], [5, "S = S₁ + S₂", sum], [6, "w, length 1", [...w, NaN, NaN]]];
    table.innerHTML = `<caption>Results so far, matrices row by row</caption><tbody>${rows.map(([first, name, values]) =>
      `<tr class="${first === at ? "winner" : ""}"><th scope="row">${name}</th>${at >= first ? cells(values).replaceAll("<td>–</td>", "<td></td>") : "<td></td>".repeat(4)}</tr>`).join("")}</tbody>`;
    const criterion = quadratic(B, w) / quadratic(sum, w);
    J(at >= 6 ? short(criterion, 4) : "–", "(w'm₁ − w'm₂)² / (s₁² + s₂²)");
    const top = solve2(sum, [B[0], B[2]])[0] + solve2(sum, [B[1], B[3]])[1]; // the trace: rank one
    lambda(at >= 6 ? short(top, 4) : "–", "the only nonzero one");
    wrong(at === 7 ? countOf(errors, plane.points.length) : "–", "threshold halfway between the means");
  });
}

[roc, optimism, projection, eigenvectors, steps].forEach((section) => section());
themeButton(document.getElementById("theme"));
