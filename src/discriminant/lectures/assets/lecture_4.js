/** Lecture 4: boundaries, outliers, the perceptron, decisions, densities, logistic regression, kernels. */

import { fit, logistic, Moments } from "./moments.js";
import { countOf, Explorable, percent, plain, short, themeButton } from "./figures.js";
import {
  cloud, codesOf, cumulative, density, generator, markWrong, mean, momentsOf, rowsOf, sigmoid, solve2, spaced,
} from "./statistics.js";

const TWO = ["blue", "orange"], THREE = [...TWO, "green"];

// --- geometry ---

function geometry() {
  const own = new Explorable("geometry");
  const plane = own.plane({ label: "A linear boundary with its normal w", x: [-6, 6], y: [-5, 5], equal: true, grid: true });
  const w0 = own.slider("w₀", { min: -8, max: 8, step: 0.1, value: -4 });
  const value = own.number("y(x) = w'x + w₀", "value"), far = own.number("Distance of x: y(x)/‖w‖", "distance"), origin = own.number("Distance of the origin: −w₀/‖w‖", "origin"), side = own.number("Class of x", "class");
  let w = { x: 1.5, y: 1 }, x = { x: 3.2, y: 2.4 };
  plane.handle({ label: "Tip of w", where: () => w, move: (to) => { w = Math.hypot(to.x, to.y) < 0.2 ? w : { x: to.x, y: to.y }; } });
  plane.handle({ label: "Point x", kind: "own k1", where: () => x, move: (to) => { x = { x: to.x, y: to.y }; } });
  own.start(() => {
    const size = Math.hypot(w.x, w.y), y = w.x * x.x + w.y * x.y + w0.value, foot = [(-w0.value / size ** 2) * w.x, (-w0.value / size ** 2) * w.y];
    const on = [x.x - (y / size ** 2) * w.x, x.y - (y / size ** 2) * w.y], along = [-w.y / size, w.x / size], nodes = plane.nodes();
    plane.shade(Int8Array.from({ length: nodes.length / 2 }, (_, i) => (w.x * nodes[2 * i] + w.y * nodes[2 * i + 1] + w0.value >= 0 ? 1 : 0)));
    plane.draw(
      plane.curve([[foot[0] - 14 * along[0], foot[1] - 14 * along[1]], [foot[0] + 14 * along[0], foot[1] + 14 * along[1]]], "boundary"),
      plane.line([0, 0], foot, "dashed"), plane.text([foot[0] / 2, foot[1] / 2], "−w₀/‖w‖", { dx: 10, dy: 20, anchor: "start" }),
      plane.arrow([0, 0], [w.x, w.y], "strong"), plane.text([w.x, w.y], "w", { dx: 14, dy: -10, kind: "label selected" }),
      plane.line([x.x, x.y], on, "dashed"), `<g class="k1">${plane.text([x.x, x.y], "x", { dx: 14, dy: -10, kind: "own-label" })}</g>`,
    );
    value(short(y), `w = (${short(w.x)}, ${short(w.y)})`);
    far(short(y / size));
    origin(short(-w0.value / size));
    side(y >= 0 ? "C₁ (orange)" : "C₂ (blue)", "C₁ where y(x) ≥ 0");
  }, { atReset: () => {
    w = { x: 1.5, y: 1 };
    x = { x: 3.2, y: 2.4 };
  } });
}

// --- outliers ---

function outliers() {
  const own = new Explorable("outliers");
  const data = {
    two: () => {
      const random = generator(5);
      return [...cloud(random, 30, 0, [-1.5, 0.5], [0.4, 0, 0.4]), ...cloud(random, 30, 1, [1, -0.5], [0.4, 0, 0.4])];
    },
    three: () => {
      const random = generator(1);
      return [[-3.4, 2.2], [0, 0], [3.4, -2.2]].flatMap((centre, k) => cloud(random, 16, k, centre, [0.25, 0, 0.25]));
    },
  };
  const plane = own.plane({ label: "Boundaries of least squares and of logistic regression", x: [-4.5, 9], y: [-8, 3.5], equal: true, points: data.two(), adding: THREE, xLabel: "x₁", yLabel: "x₂", caption: "Black: least squares (regions and circles belong to it). Purple, dashed: logistic regression." });
  const kind = own.choice("Data", { two: "two classes", three: "three separable classes" }, "two", () => sample());
  const sample = () => {
    plane.setPoints(data[kind.value]());
    plane.limitClasses(kind.value === "two" ? 2 : 3);
  };
  plane.initial = () => data[kind.value]();
  own.button("Add 10 distant points", () => {
    const random = generator(31);
    plane.setPoints([...plane.points, ...cloud(random, 10, kind.value === "two" ? 1 : 2, [7.4, -6.6], [0.3, 0, 0.3])]);
  });
  const squares = own.number("Wrong: least squares", "least_squares"), logit = own.number("Wrong: logistic regression", "logistic"), largest = own.number("Largest fitted value", "largest"), turn = own.number("Angle between the boundaries", "angle");
  own.start(() => {
    const { points } = plane, K = Math.max(1, ...points.map((point) => point.k)) + 1, rows = rowsOf(points), codes = codesOf(points), nodes = plane.nodes();
    const rule = fit(momentsOf(points, K), { model: "least_squares" }), other = logistic(rows, codes, { classes: K, ridge: 1e-3 }).rule;
    const theirs = other.scores(nodes), leads = Array.from({ length: K === 2 ? 1 : K }, (_, k) => Float64Array.from({ length: nodes.length / 2 }, (_, i) => {
      const here = theirs.slice(K * i, K * i + K), rest = Array.from(here).filter((_, l) => l !== k);
      return here[k] - Math.max(...rest);
    }));
    plane.draw(plane.regions(rule.scores(nodes), K), leads.map((lead) => plane.contour(lead, "second")));
    squares(countOf(markWrong(points, rule.predict(rows)), points.length));
    const labels = other.predict(rows);
    logit(countOf(codes.filter((k, i) => labels[i] !== k).length, points.length));
    const fitted = rule.scores(rows);
    largest(short(Math.max(...fitted)), "the target is 1");
    const slope = (r) => [r.coef[2] - r.coef[0], r.coef[3] - r.coef[1]], [a, b] = [slope(rule), slope(other)];
    const cosine = Math.abs(a[0] * b[0] + a[1] * b[1]) / Math.hypot(...a) / Math.hypot(...b);
    turn(K === 2 ? `${short((Math.acos(Math.min(1, cosine)) * 180) / Math.PI)}°` : "–");
  }, { atReset: sample });
  plane.limitClasses(2);
}

// --- perceptron ---

function perceptron() {
  const own = new Explorable("perceptron");
  const data = {
    separable: () => { // by a line, with a margin
      const { uniform } = generator(13), points = [];
      while (points.length < 24) {
        const x = 8 * uniform() - 4, y = 6 * uniform() - 3, far = (0.7 + 1.2 * x - 0.9 * y) / 1.5;
        if (Math.abs(far) > 0.3 && Math.abs(far) < 2.6) points.push({ x, y, k: far > 0 ? 1 : 0 });
      }
      return points;
    },
    overlapping: () => {
      const random = generator(9);
      return [...cloud(random, 12, 0, [-0.8, 0.4], [1.2, 0, 1.2]), ...cloud(random, 12, 1, [1, -0.4], [1.2, 0, 1.2])];
    },
    xor: () => [[-1.5, -1.5, 0], [-1.5, 1.5, 1], [1.5, -1.5, 1], [1.5, 1.5, 0]].map(([x, y, k]) => ({ x, y, k })),
  };
  const plane = own.plane({ label: "Boundary of the perceptron", x: [-5, 5], y: [-4, 4], equal: true, points: data.separable(), adding: TWO, caption: "Circled: misclassified now. Grey: the line before the last update. The square marks the row that was just used." });
  const chart = own.plane({ label: "Misclassified rows after each update", x: [0, 20], y: [0, 12], height: 190, xLabel: "updates", yLabel: "misclassified" });
  const kind = own.choice("Data", { separable: "separable", overlapping: "overlapping", xor: "XOR" }, "separable", () => sample());
  const start = own.choice("Start", { zero: "w = 0", random: "random w" }, "zero", () => again());
  const order = own.choice("Rows", { given: "in order", reversed: "in reverse" }, "given", () => again());
  const sample = () => {
    plane.setPoints(data[kind.value]());
    again();
  };
  plane.initial = () => data[kind.value]();
  let state, running = 0, drawnPoints = "";
  const row = (point) => [1, point.x, point.y], sign = (point) => (point.k ? 1 : -1);
  const score = (w, point) => row(point).reduce((sum, value, j) => sum + value * w[j], 0);
  const wrong = (w, point) => (score(w, point) >= 0 ? 1 : -1) !== sign(point);
  const errors = (w) => plane.points.filter((point) => wrong(w, point)).length;
  function again() {
    const w = start.value === "zero" ? [0, 0, 0] : [1, -2, -1.5];
    state = { w, before: null, next: 0, updates: 0, passes: 0, clean: 0, used: null, history: [errors(w)] };
    running = 0;
  }
  /** One update: go on to the next misclassified row; false if there is none. */
  function step() {
    const n = plane.points.length;
    for (let looked = 0; looked < n; looked++) {
      const index = order.value === "given" ? state.next : n - 1 - state.next, point = plane.points[index];
      state.next = (state.next + 1) % n;
      state.passes += state.next === 0 ? 1 : 0;
      if (!wrong(state.w, point)) continue;
      state.before = state.w;
      state.w = state.w.map((value, j) => value + sign(point) * row(point)[j]);
      state.used = point;
      state.updates++;
      state.history.push(errors(state.w));
      return true;
    }
    return false;
  }
  own.button("Step", () => { running = 0; step(); });
  own.button("Run", () => { running = 1000; });
  own.button("Start again", again);
  const updates = own.number("Updates", "updates"), misses = own.number("Misclassified", "misclassified"), criterion = own.number("Perceptron criterion J", "criterion"), bound = own.number("Bound R²/γ²", "bound"), weights = own.number("Weights (w₀, w₁, w₂)", "weights");
  own.start(() => {
    const places = plane.points.map((point) => `${point.x},${point.y},${point.k}`).join(" ");
    if (places !== drawnPoints) {
      drawnPoints = places;
      again();
    }
    if (running) {
      running = step() ? running - 1 : 0;
      if (running) own.update();
    }
    const { w, before, used, history } = state, { points } = plane;
    const line = (v, shade) => {
      const size = Math.hypot(v[1], v[2]);
      if (size < 1e-9) return "";
      const foot = [(-v[0] * v[1]) / size ** 2, (-v[0] * v[2]) / size ** 2], along = [(-v[2] / size) * 20, (v[1] / size) * 20];
      return plane.curve([[foot[0] - along[0], foot[1] - along[1]], [foot[0] + along[0], foot[1] + along[1]]], shade);
    };
    const nodes = plane.nodes();
    plane.shade(Int8Array.from({ length: nodes.length / 2 }, (_, i) => (w[0] + w[1] * nodes[2 * i] + w[2] * nodes[2 * i + 1] >= 0 ? 1 : 0)));
    points.forEach((point) => { point.wrong = wrong(w, point); });
    const count = errors(w), size = Math.hypot(w[1], w[2]), origin = size > 1e-9 ? [(-w[0] * w[1]) / size ** 2, (-w[0] * w[2]) / size ** 2] : [0, 0];
    plane.draw(
      before ? line(before, "faint") : "", line(w, "boundary"),
      size > 1e-9 ? [plane.arrow(origin, [origin[0] + w[1] / size, origin[1] + w[2] / size], "strong")] : "",
      used ? `<rect class="pick" x="${plane.px(used.x) - 13}" y="${plane.py(used.y) - 13}" width="26" height="26"/>` : "",
    );
    const last = history.slice(-200), first = history.length - last.length, spots = last.map((value, i) => [first + i, value]);
    chart.rescale([first, first + Math.max(20, last.length - 1)], [0, 1.1 * Math.max(...last, 4)]);
    chart.draw(chart.curve(spots, "strong"), chart.circle(spots.at(-1), 6, "spot"));
    updates(String(state.updates), count ? (state.updates >= 1000 ? "stopped at 1,000 in a run" : `${state.passes} passes completed`) : "converged");
    misses(`${count} of ${points.length}`, kind.value === "xor" ? "no line is right for all four" : "");
    criterion(short(-points.filter((point) => point.wrong).reduce((sum, point) => sum + sign(point) * score(w, point), 0)));
    const margin = Math.min(...points.map((point) => sign(point) * score(w, point))) / Math.hypot(...w), radius = Math.max(...points.map((point) => Math.hypot(...row(point))));
    bound(count === 0 && margin > 0 ? short((radius / margin) ** 2) : "–", count === 0 ? "with the margin of these weights, from w = 0" : "needs a separating line");
    weights(w.map((value) => short(value)).join(", "));
  }, { atReset: sample });
}

// --- the boundary with the smallest error ---

const MEANS = [-1.5, 1.5];

function mistakes() {
  const own = new Explorable("mistakes");
  const plot = own.plane({ label: "Joint densities with a boundary", x: [-5, 5], y: [0, 0.4], xLabel: "x", yLabel: "p(x, Cₖ)", caption: "Blue and orange areas: the two errors that no boundary avoids. Purple: the error added by this boundary." });
  const prior = own.slider("Prior of C₁ (blue)", { min: 0.05, max: 0.95, step: 0.01, value: 0.5 });
  const cut = own.slider("Boundary x̂", { min: -4.5, max: 4.5, step: 0.05, value: 1 });
  own.button("Best boundary", () => { cut.value = Math.round(20 * best()) / 20; });
  const error = own.number("p(error)", "error"), least = own.number("Smallest p(error)", "least"), extra = own.number("Purple: avoidable", "extra"), where = own.number("Densities cross at", "best");
  const best = () => Math.log(prior.value / (1 - prior.value)) / 3;
  plot.handle({ label: "Boundary", where: () => ({ x: cut.value, y: 0.38 }), move: ({ x }) => { cut.value = Math.min(4.5, Math.max(-4.5, x)); }, said: () => plain(cut.value) });
  own.start(() => {
    const pi = [prior.value, 1 - prior.value], joint = (k, x) => pi[k] * density(x, MEANS[k]), xs = spaced(-5, 5, 201), c = cut.value, b = best();
    const wrong = (at) => pi[0] * cumulative(MEANS[0] - at) + pi[1] * cumulative(at - MEANS[1]);
    const under = (from, to, f) => spaced(from, to, 101).map((x) => [x, f(x)]), lower = (x) => Math.min(joint(0, x), joint(1, x));
    const area = (points, k, dense = "dense") => `<g class="k${k}">${plot.curve(points, `area ${dense}`, true)}</g>`;
    const [l, r] = [Math.min(b, c), Math.max(b, c)], upper = (x) => Math.max(joint(0, x), joint(1, x));
    plot.draw(
      [0, 1].map((k) => `<g class="k${k}">${plot.curve([[-5, 0], ...xs.map((x) => [x, joint(k, x)]), [5, 0]], "area")}${plot.curve(xs.map((x) => [x, joint(k, x)]), "own")}</g>`),
      area([[c, 0], ...under(c, 5, lower), [5, 0]], 0), area([[-5, 0], ...under(-5, c, lower), [c, 0]], 1),
      area([...under(l, r, upper), ...under(r, l, lower)], 3), plot.line([b, 0], [b, 0.4], "known"), plot.line([c, 0], [c, 0.38], "strong"),
      plot.text([-4.8, 0.375], "decide C₁", { anchor: "start" }), plot.text([4.8, 0.375], "decide C₂", { anchor: "end" }),
    );
    error(percent(wrong(c)));
    least(percent(wrong(b)), "blue + orange");
    extra(percent(wrong(c) - wrong(b)));
    where(`x = ${short(b)}`, "dashed");
  });
}

// --- loss and rejection ---

function loss() {
  const own = new Explorable("loss"), xs = spaced(-5, 5, 501);
  const joints = own.plane({ label: "Joint densities of healthy and ill", x: [-5, 5], y: [0, 0.4], height: 220, xLabel: "x", yLabel: "p(x, k)" });
  const plot = own.plane({ label: "Expected loss of each action", x: [-5, 5], y: [-0.16, 1.2], height: 300, xLabel: "x", yLabel: "expected loss", caption: "Curves: expected loss of deciding healthy, of deciding ill, and of rejecting (dashed). Strip: the action taken; grey is rejected." });
  const steps = [1, 2, 5, 10, 20, 50, 100];
  const missing = own.slider("L: cost of missing an illness", { min: 0, max: 6, value: 0, show: (i) => steps[i] });
  const reject = own.slider("λ: cost of rejecting", { min: 0.01, max: 1, step: 0.01, value: 1, show: (x) => (x === 1 ? "1 (off)" : plain(x)) });
  const prior = own.slider("Prior of ill", { min: 0.01, max: 0.9, step: 0.01, value: 0.5 });
  const threshold = own.number("Decide ill above P(ill | x) =", "threshold"), expected = own.number("Expected loss", "loss"), usual = own.number("Expected loss with the threshold ½", "loss_half"), decided = own.number("Decided", "coverage"), error = own.number("Error among the decided", "error"), band = own.number("Rejected for x in", "band");
  own.start(() => {
    const L = steps[missing.value], lambda = reject.value === 1 ? Infinity : reject.value, pi = [1 - prior.value, prior.value];
    const ill = (x) => sigmoid(3 * x + Math.log(pi[1] / pi[0])), losses = (x) => [L * ill(x), 1 - ill(x)];
    const action = (x) => {
      const [healthy, sick] = losses(x);
      return Math.min(healthy, sick) > lambda ? -1 : sick < healthy ? 1 : 0;
    };
    // the actions are intervals of x: healthy up to `low`, ill from `high`
    const logit = (p) => (Math.log(p / (1 - p)) - Math.log(pi[1] / pi[0])) / 3, cut = 1 / (1 + L);
    const rejecting = Math.min(L * cut, 1 - cut) > lambda, low = rejecting ? logit(lambda / L) : logit(cut), high = rejecting ? logit(1 - lambda) : low;
    const at = (k, x) => cumulative(x - MEANS[k]);
    const missed = pi[1] * at(1, low), alarms = pi[0] * (1 - at(0, high)), rejected = pi[0] * (at(0, high) - at(0, low)) + pi[1] * (at(1, high) - at(1, low));
    const scale = (x) => Math.min(x, 1.25), acts = xs.map(action), strip = [];
    for (let i = 0, from = 0; i < xs.length; i++) {
      if (i + 1 < xs.length && acts[i + 1] === acts[from]) continue;
      const shape = plot.rectangle([xs[from], -0.16], [xs[Math.min(i + 1, xs.length - 1)], -0.06], acts[from] < 0 ? "band" : "tile");
      strip.push(acts[from] < 0 ? shape.replace('"band"', '"heat reject"') : `<g class="k${acts[from]}">${shape}</g>`);
      from = i + 1;
    }
    const joint = (k, x) => pi[k] * density(x, MEANS[k]), edges = rejecting ? [low, high] : [low];
    joints.draw(
      rejecting ? joints.rectangle([Math.max(-5, low), 0], [Math.min(5, high), 0.4], "band") : "",
      [0, 1].map((k) => `<g class="k${k}">${joints.curve([[-5, 0], ...xs.map((x) => [x, joint(k, x)]), [5, 0]], "area")}${joints.curve(xs.map((x) => [x, joint(k, x)]), "own")}${joints.text([MEANS[k], 0.37], k ? "ill" : "healthy", { kind: "own-label", dx: k ? 70 : -70 })}</g>`),
      edges.filter((x) => Math.abs(x) < 5).map((x) => joints.line([x, 0], [x, 0.4], "known")),
    );
    plot.draw(
      plot.line([-5, 0], [5, 0], "faint"), strip,
      [0, 1].map((k) => `<g class="k${k}">${plot.curve(xs.map((x) => [x, scale(losses(x)[k])]), "own")}</g>`),
      lambda < 1 ? plot.line([-5, lambda], [5, lambda], "known") : "", edges.filter((x) => Math.abs(x) < 5).map((x) => plot.line([x, -0.16], [x, 1.2], "faint")),
    );
    threshold(rejecting ? short(1 - lambda) : short(cut), rejecting ? `healthy below ${short(lambda / L)}` : `1/(1 + ${L})`);
    expected(short(L * missed + alarms + (rejecting ? lambda * rejected : 0)), `missed ${percent(missed)}, false alarms ${percent(alarms)}`);
    usual(short(L * pi[1] * at(1, logit(0.5)) + pi[0] * (1 - at(0, logit(0.5)))), "nothing is rejected");
    decided(percent(1 - (rejecting ? rejected : 0)), rejecting ? `rejected ${percent(rejected)}` : "nothing is rejected");
    error(percent((missed + alarms) / (1 - (rejecting ? rejected : 0))));
    band(rejecting ? `${short(low)} to ${short(high)}` : "–", rejecting ? (L === 1 ? `θ = 1 − λ = ${plain(1 - lambda)}` : "") : "λ is above every smallest loss");
  });
}

// --- densities ---

function densities() {
  const own = new Explorable("densities"), level = (point) => ({ ...point, y: point.k ? Math.max(-0.047, Math.min(-0.015, point.y)) : Math.max(-0.09, Math.min(-0.058, point.y)) });
  const data = {
    one: () => {
      const random = generator(12);
      return [0, 1].flatMap((k) => Array.from({ length: 16 }, () => level({ x: (k ? 1.8 : -1.6) + 0.9 * random.normal(), y: (k ? -0.015 : -0.058) - 0.032 * random.uniform(), k })));
    },
    two: () => {
      const random = generator(12);
      return [...Array.from({ length: 24 }, (_, i) => level({ x: (i % 2 ? 3 : -3) + 0.6 * random.normal(), y: -0.058 - 0.032 * random.uniform(), k: 0 })), ...Array.from({ length: 16 }, () => level({ x: 0.7 * random.normal(), y: -0.015 - 0.032 * random.uniform(), k: 1 }))];
    },
  };
  const plot = own.plane({ label: "Prior times density of two classes", x: [-6, 8], y: [-0.1, 0.4], height: 400, xLabel: "x", yLabel: "prior × density", points: data.one(), adding: TWO, axis: "x", place: level, caption: "Regions: predicted class. Circled: misclassified." });
  const model = own.choice("Density", { gaussian: "Gaussian", shared: "Gaussian, common variance", laplace: "Laplace", mixture: "mixture of two Gaussians" });
  const kind = own.choice("Data", { one: "one cluster each", two: "blue has two clusters" }, "one", () => sample());
  const divide = own.choice("Variance divided by", { ml: "n (maximum likelihood)", unbiased: "n − 1 (unbiased)" });
  const sample = () => plot.setPoints(data[kind.value]());
  plot.initial = () => data[kind.value]();
  const wrong = own.number("Training error", "error"), blue = own.number("Blue: centre and scale", "blue"), orange = own.number("Orange: centre and scale", "orange"), read = own.number("P(blue | x) at the handle", "posterior"), dens = own.number("Density p(x) there", "density");
  let at = 5;
  plot.handle({ label: "Where to read", where: () => ({ x: at, y: 0 }), move: ({ x }) => { at = x; }, said: () => short(at) });
  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b), half = sorted.length / 2;
    return sorted.length % 2 ? sorted[half - 0.5] : (sorted[half - 1] + sorted[half]) / 2;
  };
  function fitted(xs, pooled) {
    const m = mean(xs), unbiased = divide.value === "unbiased" && xs.length > 1 ? xs.length / (xs.length - 1) : 1, floor = 1e-3;
    const sd = Math.sqrt(Math.max(floor, model.value === "shared" ? pooled : unbiased * mean(xs.map((x) => (x - m) ** 2))));
    if (model.value === "laplace") {
      const centre = median(xs), b = Math.max(floor, mean(xs.map((x) => Math.abs(x - centre))));
      return { f: (x) => Math.exp(-Math.abs(x - centre) / b) / (2 * b), text: `${short(centre)}, ${short(b)}`, note: "median, mean deviation" };
    }
    if (model.value !== "mixture") return { f: (x) => density(x, m, sd), text: `${short(m)}, ${short(sd)}`, note: "mean, standard deviation" };
    let parts = [{ w: 0.5, m: m - sd, s: sd }, { w: 0.5, m: m + sd, s: sd }];
    for (let step = 0; step < 200; step++) { // EM
      const shares = xs.map((x) => {
        const joint = parts.map((part) => part.w * density(x, part.m, part.s)), total = joint[0] + joint[1];
        return joint.map((value) => value / total);
      });
      parts = parts.map((_, c) => {
        const n = shares.reduce((sum, share) => sum + share[c], 0) + 1e-9, centre = xs.reduce((sum, x, i) => sum + shares[i][c] * x, 0) / n;
        return { w: n / xs.length, m: centre, s: Math.sqrt(Math.max(0.02, xs.reduce((sum, x, i) => sum + shares[i][c] * (x - centre) ** 2, 0) / n)) };
      });
    }
    return { f: (x) => parts.reduce((sum, part) => sum + part.w * density(x, part.m, part.s), 0), text: parts.map((part) => short(part.m)).join(" and "), note: "means of the two parts" };
  }
  own.start(() => {
    divide.group.hidden = model.value === "laplace" || model.value === "mixture";
    const { points } = plot, xs = [0, 1].map((k) => points.filter((point) => point.k === k).map((point) => point.x)), grid = spaced(-6, 8, 561);
    const n = points.length, spread = xs.reduce((sum, own2) => sum + own2.reduce((s, x) => s + (x - mean(own2)) ** 2, 0), 0) / (n - (divide.value === "unbiased" ? 2 : 0));
    const parts = xs.map((own2) => fitted(own2, spread)), joint = (k, x) => (xs[k].length / n) * parts[k].f(x);
    const predicted = (x) => (joint(1, x) > joint(0, x) ? 1 : 0), nodes = plot.nodes();
    const strip = Int8Array.from({ length: nodes.length / 2 }, (_, i) => (nodes[2 * i + 1] < 0 ? predicted(nodes[2 * i]) : -2));
    plot.shade(strip);
    plot.draw(
      plot.line([-6, 0], [8, 0], "faint"),
      [0, 1].map((k) => `<g class="k${k}">${plot.curve([[-6, 0], ...grid.map((x) => [x, joint(k, x)]), [8, 0]], "area")}${plot.curve(grid.map((x) => [x, joint(k, x)]), "own")}</g>`),
      plot.line([at, 0], [at, 0.4], "dashed"),
    );
    wrong(countOf(markWrong(points, points.map((point) => predicted(point.x))), n));
    blue(parts[0].text, parts[0].note);
    orange(parts[1].text, parts[1].note);
    const total = joint(0, at) + joint(1, at);
    read(total > 0 ? short(joint(0, at) / total) : "–", `x = ${short(at)}`);
    dens(short(total), total < 1e-3 ? "an unusual row" : "");
  }, { atReset: () => {
    at = 5;
    sample();
  } });
}

// --- Newton's steps ---

function irls() {
  const own = new Explorable("irls"), level = (point) => ({ ...point, y: point.k });
  const data = {
    overlapping: () => {
      const random = generator(17);
      return [0, 1].flatMap((k) => Array.from({ length: 15 }, () => ({ x: (k ? 1.1 : -1.1) + 1.2 * random.normal(), y: k, k })));
    },
    separable: () => {
      const random = generator(17);
      return [0, 1].flatMap((k) => Array.from({ length: 15 }, () => ({ x: (k ? 1 : -1) * (0.5 + 3 * random.uniform()), y: k, k })));
    },
  };
  const plot = own.plane({ label: "Points and the logistic curve", x: [-5, 5], y: [-0.2, 1.2], height: 340, xLabel: "x", yLabel: "P(orange | x)", points: data.overlapping(), adding: TWO, axis: "x", place: level, caption: "Grey curves: earlier steps. Open circles: weights R of the points in the next step." });
  const chart = own.plane({ label: "Loss after each step", x: [0, 12], y: [0, 0.8], height: 190, xLabel: "Newton steps", yLabel: "mean loss" });
  const step = own.slider("Newton steps from w = 0", { min: 0, max: 12, value: 1 });
  const kind = own.choice("Data", { overlapping: "overlapping", separable: "separable" }, "overlapping", () => sample());
  const ridges = [0, 0.001, 0.01, 0.1], ridge = own.slider("Ridge", { min: 0, max: 3, value: 0, show: (i) => ridges[i] });
  const sample = () => plot.setPoints(data[kind.value]());
  plot.initial = () => data[kind.value]();
  const weights = own.number("Intercept and slope", "weights"), value = own.number("Mean cross-entropy J/n", "loss"), gradient = own.number("Largest gradient entry", "gradient"), digits = own.number("Distance from the optimum", "distance"), status = own.number("Converged", "status");
  function path(points, penalty) {
    const n = points.length, ts = points.map((point) => point.k), xs = points.map((point) => point.x), states = [];
    let w = [0, 0];
    const loss = ([a, b]) => mean(xs.map((x, i) => {
      const s = (ts[i] ? 1 : -1) * (a + b * x);
      return s > 0 ? Math.log1p(Math.exp(-s)) : -s + Math.log1p(Math.exp(s));
    })) + (penalty / 2) * b * b;
    for (let i = 0; i <= 12; i++) {
      const y = xs.map((x) => sigmoid(w[0] + w[1] * x)), r = y.map((p) => p * (1 - p)), g = [mean(y.map((p, j) => p - ts[j])), mean(y.map((p, j) => (p - ts[j]) * xs[j])) + penalty * w[1]];
      states.push({ w, loss: loss(w), r, g });
      const h = [mean(r), mean(r.map((v, j) => v * xs[j])), 0, mean(r.map((v, j) => v * xs[j] ** 2)) + penalty];
      h[2] = h[1];
      if (!(h[0] * h[3] - h[1] * h[2] > 1e-14 * n)) break; // the weights have vanished
      const move = solve2(h, g);
      let factor = 1;
      while (factor > 1e-6 && loss([w[0] - factor * move[0], w[1] - factor * move[1]]) > states.at(-1).loss + 1e-14) factor /= 2;
      w = [w[0] - factor * move[0], w[1] - factor * move[1]];
    }
    return states;
  }
  own.start(() => {
    const { points } = plot, states = path(points, ridges[ridge.value]), at = Math.min(step.value, states.length - 1), { w, loss: now, r, g } = states[at];
    const { separated, theta, rule } = logistic(Float64Array.from(points, (point) => point.x), codesOf(points), { classes: 2, ridge: ridges[ridge.value], standardize: false });
    const grid = spaced(-5, 5, 201), curve = ([a, b], shade) => plot.curve(grid.map((x) => [x, sigmoid(a + b * x)]), shade), cut = -w[0] / w[1];
    markWrong(points, points.map((point) => (w[0] + w[1] * point.x > 0 ? 1 : 0)));
    plot.draw(
      plot.line([-5, 0], [5, 0], "faint"), plot.line([-5, 1], [5, 1], "faint"),
      states.slice(0, at).map((state) => curve(state.w, "faint")), curve(w, "strong"),
      Math.abs(cut) < 5 ? plot.line([cut, -0.2], [cut, 1.2], "known") : "",
      points.map((point, i) => `<g class="k${point.k}">${plot.circle([point.x, sigmoid(w[0] + w[1] * point.x)], 1 + 26 * r[i], "weight")}</g>`),
    );
    const last = states.map((state, i) => [i, Math.min(0.8, state.loss)]);
    chart.draw(chart.curve(last, "strong"), last.map(([x, y]) => chart.circle([x, y], 3, "foot")), chart.circle(last[at], 7, "spot"));
    weights(`${short(w[0])}, ${short(w[1])}`);
    value(short(now, 4), at ? `before this step ${short(states[at - 1].loss, 4)}` : "log 2 at w = 0");
    gradient(short(Math.max(...g.map(Math.abs))));
    if (separated) digits("∞", "there is no optimum");
    else {
      const scores = rule.scores(Float64Array.of(0, 1)), target = [scores[1] - scores[0], scores[3] - scores[2] - scores[1] + scores[0]];
      digits(theta ? short(Math.hypot(w[0] - target[0], w[1] - target[1])) : "–", `optimum ${short(target[0])}, ${short(target[1])}`);
    }
    status(separated ? "never" : Math.max(...g.map(Math.abs)) < 1e-8 ? "yes" : "not yet", separated ? "the classes are separable" : "");
  }, { atReset: sample });
}

// --- kernels ---

function kernels() {
  const own = new Explorable("kernels"), start = [{ x: -1, y: -1 }, { x: 1, y: 1 }];
  const sample = () => {
    const random = generator(8), points = [];
    while (points.length < 130) {
      const x = 5 * random.uniform() - 2.5, y = 5 * random.uniform() - 2.5, near = Math.min(...start.map((c) => Math.hypot(x - c.x, y - c.y)));
      if (near < 0.62) points.push({ x, y, k: 1 });
      else if (near > 0.85 && points.filter((point) => point.k === 0).length < 90) points.push({ x, y, k: 0 });
      if (points.length > 129 || points.filter((point) => point.k === 1).length > 39) break;
    }
    return points;
  };
  own.figures.classList.add("pair");
  const plane = own.plane({ label: "Original plane with two kernel centres", width: 340, x: [-3, 3], y: [-3, 3], equal: true, points: sample(), adding: TWO, xLabel: "x₁", yLabel: "x₂", caption: "Round handles: centres c₁, c₂. Circled: misclassified." });
  const space = own.plane({ label: "Plane of the two kernels", width: 340, x: [-0.05, 1.05], y: [-0.05, 1.05], equal: true, xLabel: "φ₁", yLabel: "φ₂", caption: "The same points in the new coordinates, where the boundary is a line." });
  const width = own.slider("Width s", { min: 0.2, max: 2, step: 0.05, value: 0.6 });
  const kind = own.choice("Logistic regression on", { kernels: "φ₁, φ₂", plane: "x₁, x₂" });
  const wrong = own.number("Wrong on φ", "kernels"), line = own.number("Wrong on x", "plane"), guess = own.number("Always blue", "guess");
  let centres = start.map((c) => ({ ...c }));
  centres.forEach((_, c) => plane.handle({ label: `Centre ${c + 1}`, where: () => centres[c], move: ({ x, y }) => { centres[c] = { x, y }; } }));
  const phi = (rows) => Float64Array.from({ length: rows.length }, (_, i) => {
    const c = centres[i % 2], x = rows[i - (i % 2)], y = rows[i - (i % 2) + 1];
    return Math.exp(-((x - c.x) ** 2 + (y - c.y) ** 2) / (2 * width.value ** 2));
  });
  own.start(() => {
    const { points } = plane, rows = rowsOf(points), codes = codesOf(points), options = { classes: 2, ridge: 1e-4 };
    const lifted = logistic(phi(rows), codes, options).rule, straight = logistic(rows, codes, options).rule, use = kind.value === "kernels";
    const labels = lifted.predict(phi(rows)), flat = straight.predict(rows), count = (predicted) => codes.filter((k, i) => predicted[i] !== k).length;
    markWrong(points, use ? labels : flat);
    plane.draw(plane.regions(use ? lifted.scores(phi(plane.nodes())) : straight.scores(plane.nodes()), 2));
    const at = phi(rows);
    const dots = points.map((point, i) => `<g class="k${point.k}">${space.circle([at[2 * i], at[2 * i + 1]], point.k ? 5 : 3.6, "new")}</g>`);
    if (use) space.draw(space.regions(lifted.scores(space.nodes()), 2), dots);
    else {
      space.clear();
      space.draw(dots);
    }
    wrong(countOf(count(labels), points.length));
    line(countOf(count(flat), points.length));
    guess(countOf(codes.filter((k) => k).length, points.length));
  }, { atReset: () => { centres = start.map((c) => ({ ...c })); } });
}

[geometry, outliers, perceptron, mistakes, loss, densities, irls, kernels].forEach((section) => section());
themeButton(document.getElementById("theme"));
