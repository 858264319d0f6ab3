/** Lecture 3: masking, LDA and QDA, regularised discriminant analysis, the logit. */

import { decide, fit, LeaveOneOut, logPosterior, Moments, posterior } from "./moments.js";
import { countOf, Explorable, percent, plain, short, themeButton } from "./figures.js";
import {
  cloud, codesOf, ellipse, generator, markWrong, mean, meanOf, momentsOf, rowsOf, sigmoid, spaced,
} from "./statistics.js";

const THREE = ["blue", "orange", "green"];

// --- masking ---

function masking() {
  const own = new Explorable("masking"), random = generator(3);
  const points = [-3, 0, 3].flatMap((centre, k) => Array.from({ length: 14 }, () => ({ x: centre + 0.55 * random.normal(), y: -0.24 - 0.24 * random.uniform(), k })));
  const plot = own.plane({
    label: "Fitted values of three classes on a line", x: [-5, 5], y: [-0.62, 1.45], height: 420, xLabel: "x", yLabel: "fitted value", points, adding: THREE, axis: "x",
    place: (point) => ({ ...point, y: Math.max(-0.48, Math.min(-0.24, point.y)) }), caption: "Curves: fitted values. Lower strip: predicted class. Circled: misclassified points.",
  });
  const kind = own.choice("Model", { 1: "indicator regression, degree 1", 2: "degree 2", 3: "degree 3", lda: "LDA, posteriors" });
  const wrong = own.number("Training error", "error"), masked = own.number("Masked classes", "masked");
  const middle = own.number("Largest fit of the middle class", "middle"), total = own.number("Sum of the fits at x = 1", "sum");
  own.start(() => {
    const { points: data } = plot, K = 3, degree = kind.value === "lda" ? 1 : Number(kind.value);
    const powers = (xs) => Float64Array.from(xs.flatMap((x) => Array.from({ length: degree }, (_, p) => (x / 3) ** (p + 1))));
    const moments = Moments.ofRows(powers(data.map((point) => point.x)), codesOf(data), { classes: K });
    const rule = fit(moments, { model: kind.value === "lda" ? "lda" : "least_squares" });
    const values = (xs) => (kind.value === "lda" ? posterior(rule.scores(powers(xs)), K) : rule.scores(powers(xs)));
    const xs = spaced(-5, 5, 401), fits = values(xs), at = rule.predict(powers(data.map((point) => point.x))), strip = rule.predict(powers(xs));
    const errors = markWrong(data, at), bands = [];
    for (let i = 0, from = 0; i < xs.length; i++) {
      if (i + 1 < xs.length && strip[i + 1] === strip[from]) continue;
      bands.push(`<g class="k${strip[from]}">${plot.rectangle([xs[from], -0.62], [xs[Math.min(i + 1, xs.length - 1)], -0.54], "tile")}</g>`);
      from = i + 1;
    }
    plot.draw(
      plot.line([-5, 0], [5, 0], "faint"), plot.line([-5, 1], [5, 1], "faint"), bands,
      [0, 1, 2].map((k) => `<g class="k${k}">${plot.curve(xs.map((x, i) => [x, fits[3 * i + k]]), "own")}` +
        data.filter((point) => point.k === k).map((point) => plot.circle([point.x, 1], 2.4, "foot")).join("") + "</g>"),
    );
    const lost = THREE.filter((_, k) => !at.includes(k));
    wrong(countOf(errors, data.length));
    masked(lost.length ? lost.join(", ") : "none", "predicted for no point here");
    middle(short(Math.max(...xs.map((_, i) => fits[3 * i + 1]))), "on the axis shown");
    const sum = values([1]).reduce((a, b) => a + b, 0);
    total(short(Math.abs(sum - 1) < 1e-9 ? 1 : sum), `smallest fit ${short(Math.min(...fits))}`);
  });
}

// --- boundaries ---

const SQUARES = (rows) => {
  const out = new Float64Array((rows.length / 2) * 5);
  for (let i = 0, p = 0; i < rows.length; i += 2) {
    const x = rows[i], y = rows[i + 1];
    out[p++] = x;
    out[p++] = y;
    out[p++] = x * y;
    out[p++] = x * x;
    out[p++] = y * y;
  }
  return out;
};

function boundaries() {
  const own = new Explorable("boundaries");
  const data = {
    different: () => {
      const random = generator(3);
      return [...cloud(random, 22, 0, [-0.9, 0.2], [0.25, 0, 0.3]), ...cloud(random, 22, 1, [1.2, 0.6], [3.2, 1.4, 2.6]), ...cloud(random, 22, 2, [-0.2, -2.6], [4, 0, 0.12])];
    },
    common: () => {
      const random = generator(2);
      return [[-2.4, -1], [1.2, -1.4], [1.4, 2]].flatMap((centre, k) => cloud(random, 22, k, centre, [1.1, 0.5, 1]));
    },
    row: () => {
      const random = generator(2);
      return [[-3.4, -2.4], [0, 0], [3.4, 2.4]].flatMap((centre, k) => cloud(random, 22, k, centre, [0.6, 0, 0.6]));
    },
    ring: () => {
      const random = generator(2);
      return [...cloud(random, 30, 0, [0, 0], [0.5, 0, 0.5]), ...Array.from({ length: 40 }, (_, i) => {
        const angle = (i / 40) * 2 * Math.PI, radius = 3 + 0.35 * random.normal();
        return { x: radius * Math.cos(angle), y: radius * Math.sin(angle), k: 1 };
      })];
    },
  };
  const plane = own.plane({ label: "Classes in the plane with boundaries", x: [-6, 6], y: [-5, 5], equal: true, points: data.different(), adding: THREE, xLabel: "x₁", yLabel: "x₂", caption: "Ellipses: 2 standard deviations of the covariance that the model uses. Circled: misclassified." });
  const model = own.choice("Model", { least_squares: "indicator regression", lda: "LDA", squares: "LDA on five columns", qda: "QDA" }, "lda");
  const kind = own.choice("Data", { different: "different covariances", common: "common covariance", row: "three in a row", ring: "ring" }, "different", () => sample());
  const sample = () => plane.setPoints(data[kind.value]());
  plane.initial = () => data[kind.value]();
  const wrong = own.number("Training error", "training"), held = own.number("Leave-one-out error", "held_out"), count = own.number("Parameters", "parameters"), lost = own.number("Smallest share of the plane", "share");
  own.start(() => {
    const { points } = plane, K = Math.max(...points.map((point) => point.k)) + 1, codes = codesOf(points);
    const inputs = model.value === "squares" ? SQUARES : (rows) => rows, rows = inputs(rowsOf(points));
    const moments = Moments.ofRows(rows, codes, { classes: K }), options = { model: model.value === "squares" ? "lda" : model.value };
    const rule = fit(moments, options), scores = rule.scores(inputs(plane.nodes()));
    const lines = plane.regions(scores, K), d = rows.length / codes.length, plainMoments = momentsOf(points, K);
    const covariance = (k) => {
      const own2 = options.model === "qda", n = own2 ? plainMoments.rows[k] - 1 : points.length - K;
      return (own2 ? plainMoments.scatter.slice(4 * k, 4 * k + 4) : plainMoments.pooled()).map((value) => value / n);
    };
    const shown = ["lda", "qda"].includes(model.value) ? Array.from({ length: K }, (_, k) => `<g class="k${k}">${plane.curve(ellipse(meanOf(plainMoments, k), covariance(k)), "own dashed")}</g>`) : "";
    plane.draw(lines, shown, Array.from({ length: K }, (_, k) => `<g class="k${k}">${plane.circle(meanOf(plainMoments, k), 7, "centre")}</g>`));
    const left = decide(logPosterior(new LeaveOneOut(moments, rows, codes).scores(options), K), K);
    wrong(countOf(markWrong(points, rule.predict(rows)), points.length));
    held(countOf(codes.filter((k, i) => left[i] !== k).length, points.length), "each point predicted from the others");
    const covariances = (options.model === "qda" ? K : 1) * (d * (d + 1)) / 2;
    if (model.value === "least_squares") count(String(K * (d + 1)), "K regressions with 3 coefficients");
    else count(String(K * d + covariances + K - 1), `${K * d} means, ${covariances} covariances, ${K - 1} priors (the lecture, with d² and without priors: ${K * d + (options.model === "qda" ? K : 1) * d * d})`);
    const at = Array(K).fill(0), n = scores.length / K;
    rule.predict(inputs(plane.nodes())).forEach((k) => { at[k] += 1 / n; });
    lost(percent(Math.min(...at)), THREE[at.indexOf(Math.min(...at))]);
  }, { atReset: sample });
}

// --- RDA ---

function regularised() {
  const own = new Explorable("regularised"), STEPS = 11;
  const sample = (n) => {
    const random = generator(8);
    return [...cloud(random, n, 0, [-1.5, 0.2], [1.2, 0.7, 1.2]), ...cloud(random, n, 1, [1.4, 0.6], [1.6, 1.1, 1.3]), ...cloud(random, n, 2, [0.6, -2.2], [0.9, 0.2, 0.5])];
  };
  const map = own.plane({ label: "Held-out loss for pooling and shrinkage", x: [-0.05, 1.05], y: [-0.05, 1.05], equal: true, width: 420, small: true, xLabel: "pooling (1 − α)", yLabel: "shrinkage (1 − γ)", caption: "The stronger the blue, the better. Dashed: the best of the 121. The left edge is QDA." });
  const plane = own.plane({ label: "Classes with the boundaries of the chosen mixture", x: [-6, 6], y: [-4.6, 4.6], equal: true, points: sample(9), adding: THREE, caption: "Boundaries for rows whose noise features are zero. Circled: wrong when held out." });
  const size = own.slider("Points per class", { min: 6, max: 30, value: 9 });
  const noise = own.slider("Noise features", { min: 0, max: 5, value: 2 });
  const by = own.choice("Map shows", { loss: "log loss", error: "error" });
  size.input.addEventListener("input", () => plane.setPoints(sample(size.value)));
  plane.initial = () => sample(9);
  const chosen = own.number("Here", "here"), error = own.number("Held-out error here", "error"), least = own.number("Best of the map", "best"), corners = own.number("QDA · LDA · diagonal LDA", "corners");
  let at = { pooling: 0.5, shrinkage: 0.2 };
  const snap = (value) => Math.round(Math.min(1, Math.max(0, value)) * 10) / 10;
  map.handle({
    label: "Pooling and shrinkage", where: () => ({ x: at.pooling, y: at.shrinkage }), said: () => `pooling ${at.pooling}, shrinkage ${at.shrinkage}`,
    move: ({ x, y, dx, dy }) => {
      at = dx || dy ? { pooling: snap(at.pooling + 0.1 * Math.sign(dx)), shrinkage: snap(at.shrinkage + 0.1 * Math.sign(dy)) } : { pooling: snap(x), shrinkage: snap(y) };
    },
  });
  map.svg.addEventListener("click", (event) => {
    const { x, y } = map.under(event);
    at = { pooling: snap(x), shrinkage: snap(y) };
    own.update();
  });
  const noises = (n, d) => {
    const random = generator(77);
    return Array.from({ length: n }, () => Array.from({ length: 6 }, () => random.normal()).slice(0, d));
  };
  let cached = { key: "" };
  function surface(rows, codes, moments) {
    const key = `${Array.from(rows).join()}|${codes.join()}`;
    if (cached.key === key || (own.dragging && cached.size === codes.length)) return cached.values; // follows when the point is released
    const left = new LeaveOneOut(moments, rows, codes), values = [];
    for (let j = 0; j < STEPS; j++) {
      for (let i = 0; i < STEPS; i++) {
        const logs = logPosterior(left.scores({ model: "rda", pooling: i / 10, shrinkage: j / 10 }), 3), labels = decide(logs, 3);
        values.push({ loss: -mean(codes.map((k, row) => logs[3 * row + k])), error: codes.filter((k, row) => labels[row] !== k).length });
      }
    }
    cached = { key, values, size: codes.length };
    return values;
  }
  own.start(() => {
    const { points } = plane, codes = codesOf(points), fewest = Math.min(...[0, 1, 2].map((k) => codes.filter((code) => code === k).length));
    // a covariance that is singular only without the held-out point would favour its class
    const used = Math.max(0, Math.min(noise.value, fewest - 4)), d = 2 + used, extra = noises(points.length, used);
    if (used < noise.value) own.message.textContent = `Only ${used} of ${noise.value} noise features are used: a class has ${fewest} points.`;
    const rows = Float64Array.from(points.flatMap((point, i) => [point.x, point.y, ...extra[i]]));
    const moments = Moments.ofRows(rows, codes, { classes: 3 }), values = surface(rows, codes, moments).map((value) => value[by.value]);
    if (own.dragging && cached.key !== `${Array.from(rows).join()}|${codes.join()}`) own.message.textContent = "The map follows when you release the point.";
    const low = Math.min(...values), high = Math.min(Math.max(...values), low + (by.value === "loss" ? 0.8 : points.length)), best = values.indexOf(low);
    const cell = (i, kind, opacity) => {
      const [x, y] = [(i % STEPS) / 10, Math.floor(i / STEPS) / 10], shape = map.rectangle([x - 0.05, y - 0.05], [x + 0.05, y + 0.05], kind);
      return opacity === undefined ? shape : shape.replace("<rect", `<rect fill-opacity="${opacity}"`);
    };
    map.draw(
      values.map((value, i) => cell(i, "heat", (0.04 + 0.86 * (1 - Math.sqrt(Math.min(1, (value - low) / (high - low || 1))))).toFixed(3))), cell(best, "best"),
      map.text([0, 0], "QDA", { anchor: "start", dx: -10, dy: 5 }), map.text([1, 0], "LDA", { anchor: "end", dx: 10, dy: 5 }),
      map.text([1, 1], "diagonal LDA", { anchor: "end", dx: 10, dy: 5 }),
    );
    const options = { model: "rda", pooling: at.pooling, shrinkage: at.shrinkage }, rule = fit(moments, options);
    const axes = [0, 1].map((a) => Float64Array.from({ length: d }, (_, j) => (j === a ? 1 : 0)));
    plane.draw(plane.regions(rule.onPlane(new Float64Array(d), axes).scores(plane.nodes()), 3));
    const labels = decide(logPosterior(new LeaveOneOut(moments, rows, codes).scores(options), 3), 3);
    const index = Math.round(at.shrinkage * 10) * STEPS + Math.round(at.pooling * 10);
    const show = (value) => (by.value === "loss" ? short(value) : `${value}`);
    const singular = rule.warnings.find((warning) => warning.kind === "shrinkage_chosen");
    chosen(show(values[index]), `α = ${plain(1 - at.pooling)}, γ = ${plain(1 - at.shrinkage)}${singular ? "; a covariance is singular and is shrunk" : ""}`);
    error(countOf(markWrong(points, labels), points.length), "circled points");
    least(show(low), `pooling ${plain((best % STEPS) / 10)}, shrinkage ${plain(Math.floor(best / STEPS) / 10)}`);
    corners([values[0], values[STEPS - 1], values[STEPS * STEPS - 1]].map(show).join(" · "), by.value === "loss" ? "held-out log loss" : `errors of ${points.length}`);
  }, { atReset: () => { at = { pooling: 0.5, shrinkage: 0.2 }; } });
}

// --- logit ---

function logit() {
  const own = new Explorable("logit"), random = generator(6), names = ["blue", "orange"];
  const level = (point) => ({ ...point, y: point.k });
  const points = [...Array.from({ length: 14 }, () => ({ x: -1.2 + random.normal(), y: 0, k: 0 })), ...Array.from({ length: 14 }, () => ({ x: 1.2 + random.normal(), y: 1, k: 1 }))];
  const plot = own.plane({ label: "Least-squares line and posterior of LDA", x: [-5, 8], y: [-0.45, 1.5], height: 330, xLabel: "x", yLabel: "code, probability", points, adding: names, axis: "x", place: level, caption: "Dashed: least-squares line through the codes 0 and 1. Solid: posterior P(orange | x) of LDA." });
  const logs = own.plane({ label: "Log odds of LDA", x: [-5, 8], y: [-8, 8], height: 210, xLabel: "x", yLabel: "logit" });
  const slope = own.number("Logit", "logit"), cut = own.number("Boundary of LDA", "boundary"), line = own.number("Boundary of the line (½)", "line"), read = own.number("At the handle", "read"), wrong = own.number("Wrong: LDA · line", "errors");
  let at = 1;
  logs.handle({ label: "Where to read", where: () => ({ x: at, y: -8 }), move: ({ x }) => { at = x; }, said: () => short(at) });
  own.start(() => {
    const { points: data } = plot, xs = Float64Array.from(data, (point) => point.x), moments = Moments.ofRows(xs, codesOf(data), { classes: 2 });
    const lead = (rule, x) => {
      const [a, b] = rule.scores(Float64Array.of(x));
      return b - a;
    };
    const lda = fit(moments, { model: "lda" }), squares = fit(moments, { model: "least_squares" });
    const beta = lead(lda, 1) - lead(lda, 0), beta0 = lead(lda, 0), f = (x) => squares.scores(Float64Array.of(x))[1];
    const half = (0.5 - f(0)) / (f(1) - f(0)), boundary = -beta0 / beta, p = sigmoid(beta0 + beta * at), grid = spaced(-5, 8, 261);
    markWrong(data, lda.predict(xs));
    plot.draw(
      plot.line([-5, 0], [8, 0], "faint"), plot.line([-5, 1], [8, 1], "faint"), plot.line([-5, 0.5], [8, 0.5], "faint"),
      plot.curve([[-5, f(-5)], [8, f(8)]], "second"), plot.curve(grid.map((x) => [x, sigmoid(beta0 + beta * x)]), "strong"),
      plot.line([boundary, -0.45], [boundary, 1.5], "known"), plot.circle([at, p], 6, "spot"),
    );
    logs.draw(logs.line([-5, 0], [8, 0], "faint"), logs.line([boundary, -8], [boundary, 8], "known"), logs.curve([[-5, beta0 - 5 * beta], [8, beta0 + 8 * beta]], "strong"), logs.line([at, -8], [at, beta0 + beta * at], "dashed"), logs.circle([at, beta0 + beta * at], 6, "spot"));
    slope(`${short(beta0)} + ${short(beta)} x`.replace("+ −", "− "));
    cut(`x = ${short(boundary)}`, "logit 0");
    line(`x = ${short(half)}`, `the line is ${short(f(8))} at x = 8`);
    read(`p = ${short(p)}`, `x = ${short(at)}, logit ${short(beta0 + beta * at)}, odds ${short(p / (1 - p))}`);
    wrong(`${data.filter((point) => (point.x > boundary ? 1 : 0) !== point.k).length} · ${data.filter((point) => (f(point.x) > 0.5 ? 1 : 0) !== point.k).length}`, `of ${data.length}`);
  }, { atReset: () => { at = 1; } });
}

[masking, boundaries, regularised, logit].forEach((section) => section());
themeButton(document.getElementById("theme"));
