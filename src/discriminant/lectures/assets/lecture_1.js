/** Lecture 1: Fisher's direction, priors, estimated boundaries, one-vs-rest and one-vs-one, label trees. */

import { canonicalDirections, fit, logistic, Moments } from "./moments.js";
import { countOf, Explorable, percent, plain, short, themeButton } from "./figures.js";
import {
  cloud, codesOf, cumulative, density, generator, markWrong, meanOf, momentsOf, quadratic, rowsOf, scatters, solve2, spaced,
} from "./statistics.js";

const TWO = ["blue", "orange"], THREE = ["blue", "orange", "green"], FOUR = [...THREE, "purple"];

// --- one direction ---

function direction() {
  const own = new Explorable("direction"), long = [1.5, 1.3, 1.4];
  const sample = (K) => {
    const random = generator(7), centres = [[-1.4, -0.7], [1.4, 0.7], [-1.2, 3]];
    return centres.slice(0, K).flatMap((centre, k) => cloud(random, 24, k, centre, long))
      .map((point) => ({ ...point, x: Math.max(-5.8, Math.min(5.8, point.x)), y: Math.max(-4.8, Math.min(4.8, point.y)) }));
  };
  const plane = own.plane({
    label: "Two classes in the plane with a direction", x: [-6, 6], y: [-5, 5], equal: true, points: sample(2), adding: TWO.concat("green"),
    xLabel: "x₁", yLabel: "x₂",
  });
  const bars = own.plane({ label: "Histograms of the projections", x: [-6, 6], y: [0, 13], height: 200, xLabel: "projection x'w", yLabel: "points" });
  const curve = own.plane({ label: "Criterion J for each angle", x: [0, 180], y: [0, 1.1], height: 200, xLabel: "angle of w (degrees)", yLabel: "J(w)" });
  const angle = own.slider("Angle of w", { min: 0, max: 179.5, step: 0.5, value: 60, show: (x) => `${plain(x)}°` });
  const kind = own.choice("Classes", { 2: "two", 3: "three" }, "2", (K) => classes(Number(K)));
  function classes(K) {
    plane.setPoints(sample(K));
    plane.limitClasses(K);
  }
  plane.initial = () => sample(Number(kind.value));
  const degrees = ([x, y]) => ((Math.atan2(y, x) * 180) / Math.PI + 180) % 180;
  const best = () => {
    const { directions, r } = canonicalDirections(momentsOf(plane.points, Number(kind.value)));
    return degrees([directions[0], directions[r]]);
  };
  const means = () => {
    const moments = momentsOf(plane.points, Number(kind.value)), [a, b] = [meanOf(moments, 0), meanOf(moments, moments.K - 1)];
    return degrees([b[0] - a[0], b[1] - a[1]]);
  };
  own.button("Fisher's direction", () => { angle.value = Math.round(2 * best()) / 2 % 180; });
  own.button("Line through the means", () => { angle.value = Math.round(2 * means()) / 2 % 180; });
  const J = own.number("J(w)", "J"), most = own.number("Largest J", "largest"), gap = own.number("Distance of projected means", "gap");
  const within = own.number("Standard deviation within classes", "within"), wrong = own.number("Wrong by a threshold on x'w", "errors");
  const unit = () => [Math.cos((angle.value * Math.PI) / 180), Math.sin((angle.value * Math.PI) / 180)];
  let middle = [0, 0];
  plane.handle({
    label: "Direction w", where: () => ({ x: middle[0] + 3.6 * unit()[0], y: middle[1] + 3.6 * unit()[1] }),
    move: ({ x, y, dx, dy }) => {
      if (dx || dy) angle.value = (angle.value + (dx - dy < 0 ? 1 : 179)) % 180;
      else angle.value = Math.round(2 * degrees([x - middle[0], y - middle[1]])) / 2 % 180;
    },
    said: () => `${short(angle.value)} degrees`,
  });
  own.start(() => {
    const K = Number(kind.value), { points } = plane, moments = momentsOf(points, K), w = unit();
    const { within: S, between: B } = scatters(moments), criterion = (u) => quadratic(B, u) / quadratic(S, u);
    middle = Array.from(moments.centre(), (value, j) => value + moments.origin[j]);
    const along = points.map((point) => (point.x - middle[0]) * w[0] + (point.y - middle[1]) * w[1]);
    const line = Moments.ofRows(Float64Array.from(along), codesOf(points), { classes: K });
    const predicted = fit(line, { model: "lda" }).predict(Float64Array.from(along));
    const errors = markWrong(points, predicted);
    const at = (t) => [middle[0] + t * w[0], middle[1] + t * w[1]], centre = (k) => line.origin[0] + line.mean[k];
    plane.draw(
      plane.curve([at(-12), at(12)], "faint"),
      Array.from({ length: K }, (_, k) => `<g class="k${k}">${plane.curve([meanOf(moments, k), at(centre(k))], "own dashed")}</g>`),
      points.map((point, i) => `<g class="k${point.k}">${plane.circle(at(along[i]), 2.6, "foot")}</g>`),
      plane.arrow(middle, at(3.6), "strong"),
      Array.from({ length: K }, (_, k) => `<g class="k${k}">${plane.circle(meanOf(moments, k), 7, "centre")}</g>`),
      plane.text(at(3.6), "w", { dx: 18 * w[0], dy: -18 * w[1] + 5, kind: "label selected" }),
    );
    const width = 0.5, counts = Array.from({ length: K }, () => new Map());
    points.forEach((point, i) => {
      const bin = Math.floor(along[i] / width);
      counts[point.k].set(bin, (counts[point.k].get(bin) ?? 0) + 1);
    });
    bars.draw(
      counts.map((bins, k) => Array.from(bins, ([bin, n]) =>
        `<g class="k${k}">${bars.rectangle([bin * width, 0], [(bin + 1) * width, Math.min(n, 13)], "bar")}</g>`)),
      Array.from({ length: K }, (_, k) => `<g class="k${k}">${bars.line([centre(k), 0], [centre(k), 13], "own dashed")}</g>`),
    );
    const angles = spaced(0, 180, 181), values = angles.map((a) => criterion([Math.cos((a * Math.PI) / 180), Math.sin((a * Math.PI) / 180)]));
    const { eigenvalues } = canonicalDirections(moments), top = Math.max(...values);
    curve.rescale([0, 180], [0, 1.1 * top]);
    const [f, m] = [best(), means()];
    curve.draw(
      curve.line([f, 0], [f, 1.1 * top], "dashed"), curve.line([m, 0], [m, 1.1 * top], "dashed"),
      curve.curve(angles.map((a, i) => [a, values[i]]), "strong"),
      [[f, "Fisher", 0], [m, "means", 18]].map(([a, name, up]) =>
        curve.text([a, 0], name, { dy: -8 - up, dx: a > 150 ? -5 : 5, anchor: a > 150 ? "end" : "start" })),
      curve.circle([angle.value, criterion(w)], 7, "spot"),
    );
    J(short(criterion(w)), `${percent(Math.min(1, criterion(w) / eigenvalues[0]))} of the largest`);
    most(short(eigenvalues[0], 4), K === 2 ? "the only nonzero eigenvalue" : `second eigenvalue ${short(eigenvalues[1] ?? 0)}`);
    const ends = [centre(0), centre(K - 1)];
    gap(short(Math.abs(ends[1] - ends[0])), K === 3 ? "blue to green" : "");
    within(short(Math.sqrt(quadratic(S, w) / (points.length - K))));
    wrong(countOf(errors, points.length), "circled points");
  }, { atReset: () => classes(Number(kind.value)) });
  plane.limitClasses(2);
}

// --- priors ---

function priors() {
  const own = new Explorable("priors");
  const plot = own.plane({ label: "Prior times density of two classes", x: [-5, 5], y: [0, 0.5], xLabel: "x", yLabel: "prior × density" });
  const scores = own.plane({ label: "Discriminant scores of two classes", x: [-5, 5], y: [-8, 6], height: 240, xLabel: "x", yLabel: "score δ" });
  const prior = own.slider("Prior of the first class (blue)", { min: 0.02, max: 0.98, step: 0.01, value: 0.5 });
  const sd = own.slider("Common standard deviation σ", { min: 0.5, max: 2, step: 0.05, value: 1 });
  const show = own.choice("Show", { joint: "prior × density", posterior: "posterior P(k | x)" });
  const where = own.number("Boundary at x", "boundary"), error = own.number("Lowest possible error", "error"), odds = own.number("Posterior of blue at x = 0", "posterior");
  let mu = [-1.5, 1.5];
  [0, 1].forEach((k) => plot.handle({
    label: `Mean of the ${TWO[k]} class`, kind: `own k${k}`,
    where: () => ({ x: mu[k], y: show.value === "joint" ? (k ? 1 - prior.value : prior.value) * density(0, 0, sd.value) : 0 }),
    move: ({ x }) => { mu[k] = k ? Math.max(x, mu[0] + 0.2) : Math.min(x, mu[1] - 0.2); },
    said: () => short(mu[k]),
  }));
  own.start(() => {
    const pi = [prior.value, 1 - prior.value], s = sd.value, joint = (k, x) => pi[k] * density(x, mu[k], s);
    const cut = (mu[0] + mu[1]) / 2 + (s * s * Math.log(pi[0] / pi[1])) / (mu[1] - mu[0]), xs = spaced(-5, 5, 201);
    const posterior = (k, x) => {
      const lead = ((x - mu[1 - k]) ** 2 - (x - mu[k]) ** 2) / (2 * s * s) + Math.log(pi[k] / pi[1 - k]);
      return 1 / (1 + Math.exp(-lead));
    };
    const value = (k, x) => (show.value === "joint" ? joint(k, x) : posterior(k, x));
    plot.rename("x", show.value === "joint" ? "prior × density" : "posterior");
    plot.rescale([-5, 5], [0, show.value === "joint" ? 0.5 : 1.05]);
    const halfway = (mu[0] + mu[1]) / 2;
    plot.draw(
      [0, 1].map((k) => `<g class="k${k}">${plot.curve([[-5, 0], ...xs.map((x) => [x, value(k, x)]), [5, 0]], "area")}${plot.curve(xs.map((x) => [x, value(k, x)]), "own")}</g>`),
      plot.line([halfway, 0], [halfway, plot.y[1]], "faint"),
      cut > -5 && cut < 5 ? [plot.line([cut, 0], [cut, plot.y[1]], "known"), plot.text([cut, 0.95 * plot.y[1]], `boundary ${short(cut)}`, { dx: 6, anchor: "start" })] : "",
      [0, 1].map((k) => `<g class="k${k}">${plot.text([mu[k], 0], `μ${"₁₂"[k]}`, { dy: -10, kind: "own-label", dx: k ? 16 : -16 })}</g>`),
    );
    const delta = (k, x) => (x * mu[k]) / s ** 2 - mu[k] ** 2 / (2 * s * s) + Math.log(pi[k]);
    scores.draw(
      [0, 1].map((k) => `<g class="k${k}">${scores.curve([[-5, delta(k, -5)], [5, delta(k, 5)]], "own")}</g>`),
      cut > -5 && cut < 5 ? scores.line([cut, -8], [cut, 6], "known") : "",
    );
    where(short(cut, 4), `halfway between the means: ${short(halfway)}`);
    error(percent(pi[0] * cumulative((mu[0] - cut) / s) + pi[1] * cumulative((cut - mu[1]) / s)));
    odds(short(posterior(0, 0)));
  }, { atReset: () => { mu = [-1.5, 1.5]; } });
}

// --- known and estimated boundaries ---

function estimates() {
  const own = new Explorable("estimates"), centres = [[-1, 0], [1, 0], [0, 1.4]], covariance = [0.5, 0.2, 0.4];
  let seed = 1;
  const sizes = [3, 5, 10, 20, 50, 100, 200];
  const draw = (n, from) => {
    const random = generator(from);
    return centres.flatMap((centre, k) => cloud(random, n, k, centre, covariance));
  };
  const later = draw(2000, 999);
  const plane = own.plane({
    label: "Three classes with known and estimated boundaries", x: [-3.4, 3.4], y: [-2.1, 3.3], equal: true, points: draw(20, 1), adding: THREE,
    xLabel: "x₁", yLabel: "x₂", caption: "Dashed: Bayes boundaries, from the true parameters. Solid: LDA, from the points. Circled: misclassified by LDA.",
  });
  const size = own.slider("Points per class", { min: 0, max: 6, value: 3, show: (i) => sizes[i] });
  const sample = () => plane.setPoints(draw(sizes[size.value], seed));
  size.input.addEventListener("input", sample);
  own.button("New sample", () => {
    seed++;
    sample();
  });
  const training = own.number("LDA on these points", "training"), fresh = own.number("LDA on 6,000 new points", "new"), least = own.number("Bayes boundaries on them", "bayes");
  const slopes = centres.map((centre) => solve2([0.5, 0.2, 0.2, 0.4], centre));
  const known = (nodes) => {
    const out = new Float64Array((nodes.length / 2) * 3);
    for (let i = 0; i < nodes.length / 2; i++) {
      slopes.forEach(([a, b], k) => { out[3 * i + k] = a * (nodes[2 * i] - centres[k][0] / 2) + b * (nodes[2 * i + 1] - centres[k][1] / 2); });
    }
    return out;
  };
  const laterRows = rowsOf(later), truth = codesOf(later), best = known(laterRows);
  const bayes = truth.filter((k, i) => [0, 1, 2].some((l) => best[3 * i + l] > best[3 * i + k])).length / truth.length;
  const dashed = plane.regions(known(plane.nodes()), 3, "known");
  own.start(() => {
    const { points } = plane, rule = fit(momentsOf(points, 3), { model: "lda" });
    plane.draw(dashed, plane.regions(rule.scores(plane.nodes()), 3));
    training(countOf(markWrong(points, rule.predict(rowsOf(points))), points.length), "wrong");
    const predicted = rule.predict(laterRows);
    fresh(percent(truth.filter((k, i) => predicted[i] !== k).length / truth.length), "error");
    least(percent(bayes), "lowest possible error");
  }, { atReset: () => {
    seed = 1;
    sample();
  } });
}

// --- LDA and logistic regression ---

function generative() {
  const own = new Explorable("logistic"), sizes = [4, 6, 10, 20, 40, 60, 100], covariance = [1.1, 0.5, 1];
  let seed = 1;
  const gap = () => (kind?.value === "separable" ? 2.2 : 1);
  const draw = (n, from, apart) => {
    const random = generator(from);
    return [0, 1].flatMap((k) => cloud(random, n, k, [(k ? 1 : -1) * apart, (k ? -0.3 : 0.3) * apart], covariance));
  };
  let kind = null;
  const plane = own.plane({
    label: "Two classes with the boundaries of LDA and logistic regression", x: [-6, 6], y: [-4.2, 4.2], equal: true, points: draw(20, 1, 1), adding: TWO,
    xLabel: "x₁", yLabel: "x₂", caption: "Solid, with regions: LDA. Purple, dashed: logistic regression. Circled: misclassified by LDA.",
  });
  const size = own.slider("Points per class", { min: 0, max: 6, value: 3, show: (i) => sizes[i] });
  const sample = () => plane.setPoints(draw(sizes[size.value], seed, gap()));
  kind = own.choice("Classes", { overlapping: "overlapping", separable: "far apart" }, "overlapping", () => sample());
  size.input.addEventListener("input", sample);
  own.button("New sample", () => {
    seed++;
    sample();
  });
  const lda = own.number("LDA: c₁, c₂", "lda"), other = own.number("Logistic: c₁, c₂", "logistic"), first = own.number("LDA, error on new rows", "lda_error"), second = own.number("Logistic, error on new rows", "logistic_error"), state = own.number("Separable", "separable");
  const later = { overlapping: draw(3000, 999, 1), separable: draw(3000, 999, 2.2) };
  own.start(() => {
    const { points } = plane, rows = rowsOf(points), codes = codesOf(points), nodes = plane.nodes(), rule = fit(momentsOf(points, 2), { model: "lda" });
    const { separated } = logistic(rows, codes, { classes: 2 }), logit = logistic(rows, codes, { classes: 2, ridge: separated ? 1e-4 : 0 }).rule;
    const scores = logit.scores(nodes), slopes = ({ coef }) => `${short(coef[2] - coef[0])}, ${short(coef[3] - coef[1])}`;
    plane.draw(plane.regions(rule.scores(nodes), 2), plane.contour(Float64Array.from({ length: scores.length / 2 }, (_, i) => scores[2 * i + 1] - scores[2 * i]), "second"));
    markWrong(points, rule.predict(rows));
    const fresh = later[kind.value], at = rowsOf(fresh), error = (model) => {
      const predicted = model.predict(at);
      return percent(fresh.filter((point, i) => predicted[i] !== point.k).length / fresh.length);
    };
    lda(slopes(rule));
    other(separated ? "no finite estimate" : slopes(logit));
    first(error(rule), "6,000 rows");
    second(error(logit), separated ? "with a tiny ridge" : "6,000 rows");
    state(separated ? "yes" : "no", separated ? "a line makes no error" : "");
  }, { atReset: () => {
    seed = 1;
    sample();
  } });
}

// --- one-vs-rest, one-vs-one ---

function schemes() {
  const own = new Explorable("schemes");
  const sample = (K) => {
    const random = generator(5), centres = [[-2.6, -1.6], [2.6, -1.4], [0, 2], [-3.6, 2.6]];
    const covariances = [[0.25, 0, 0.25], [1.2, -0.9, 1.1], [1.6, 0.9, 0.7], [0.3, 0, 0.4]];
    return centres.slice(0, K).flatMap((centre, k) => cloud(random, 12, k, centre, covariances[k]));
  };
  const plane = own.plane({
    label: "Regions of several classes", x: [-6, 6], y: [-5, 5], equal: true, points: sample(3), adding: FOUR, ticks: false,
    caption: "Grey: ambiguous. Lines: boundaries of the single two-class problems.",
  });
  const scheme = own.choice("Scheme", { rest: "one-vs-rest", fewer: "one-vs-rest with K − 1 classifiers", pairs: "one-vs-one", scores: "K common scores (LDA)" });
  const number = own.choice("Classes", { 3: "three", 4: "four" }, "3", () => classes());
  const decide = own.choice("Grey regions", { grey: "leave grey", scores: "largest score decides" });
  function classes() {
    plane.setPoints(sample(Number(number.value)));
    plane.limitClasses(Number(number.value));
  }
  plane.initial = () => sample(Number(number.value));
  const trained = own.number("Classifiers", "classifiers"), rows = own.number("Rows of each, on average", "rows");
  const grey = own.number("Ambiguous share of the plane", "ambiguous"), wrong = own.number("Points with a wrong class", "errors");

  /** Two-class problems: the positive and the negative classes. */
  function problems(K) {
    const classes = Array.from({ length: K }, (_, k) => k), last = scheme.value === "fewer" ? K - 1 : K;
    if (scheme.value === "pairs") return classes.flatMap((k) => classes.slice(k + 1).map((l) => [[k], [l]]));
    return classes.slice(0, last).map((k) => [[k], classes.filter((l) => l !== k)]);
  }

  /** Class of each row, -1 where it is ambiguous, and the class that scores decide. */
  function combined(scores, list, K) {
    const n = scores[0].length, labels = new Int8Array(n), decided = new Int8Array(n), count = { none: 0, several: 0 };
    const votes = new Float64Array(K), sums = new Float64Array(K), pairs = scheme.value === "pairs", fewer = scheme.value === "fewer";
    const sides = list.map(([[k], others]) => [k, others[0]]);
    for (let i = 0; i < n; i++) {
      votes.fill(0);
      sums.fill(pairs ? 0 : -Infinity);
      for (let p = 0; p < sides.length; p++) {
        const [k, l] = sides[p], s = scores[p][i];
        if (!pairs) {
          if (s > 0) votes[k]++;
          sums[k] = s;
        } else {
          const confidence = s / (1 + Math.abs(s));
          votes[s > 0 ? k : l]++;
          sums[k] += confidence;
          sums[l] -= confidence;
        }
      }
      let top = 0, winners = 0, best = -1;
      for (let k = 0; k < K; k++) {
        if (votes[k] > top) [top, winners, best] = [votes[k], 0, -1];
        if (votes[k] < top) continue;
        winners++;
        if (best < 0 || sums[k] > sums[best]) best = k;
      }
      const last = fewer && top === 0;
      decided[i] = last ? K - 1 : best;
      labels[i] = last || (top > 0 && winners === 1) ? decided[i] : -1;
      if (labels[i] < 0) count[top === 0 ? "none" : "several"]++;
    }
    return { labels, decided, count };
  }

  own.start(() => {
    const K = Number(number.value), { points } = plane, moments = momentsOf(points, K), nodes = plane.nodes(), at = rowsOf(points);
    decide.group.hidden = scheme.value === "scores";
    if (scheme.value === "scores") {
      const rule = fit(moments, { model: "lda" });
      plane.draw(plane.regions(rule.scores(nodes), K));
      trained("1", `${K} scores`);
      rows(String(points.length));
      grey("0%", "regions are convex");
      wrong(countOf(markWrong(points, rule.predict(at)), points.length));
      return;
    }
    const list = problems(K), rules = list.map(([positive, negative]) => {
      const codes = Array.from({ length: K }, (_, k) => (positive.includes(k) ? 1 : negative.includes(k) ? 0 : -1));
      return fit(moments.group(codes, ["other", "own"]), { model: "lda" });
    });
    const lead = (rule, where) => {
      const scores = rule.scores(where);
      return Float64Array.from({ length: scores.length / 2 }, (_, i) => scores[2 * i + 1] - scores[2 * i]);
    };
    const values = rules.map((rule) => lead(rule, nodes)), { labels, decided, count } = combined(values, list, K);
    plane.shade(decide.value === "grey" ? labels : decided);
    plane.draw(values.map((value, p) => `<g class="k${list[p][0][0]}">${plane.contour(value, "own")}</g>`));
    const ours = combined(rules.map((rule) => lead(rule, at)), list, K);
    const size = (classes) => classes.reduce((total, k) => total + moments.rows[k], 0);
    trained(String(list.length), scheme.value === "pairs" ? "K(K − 1)/2" : scheme.value === "fewer" ? "K − 1" : "K");
    rows(short(list.reduce((total, [a, b]) => total + size(a) + size(b), 0) / list.length));
    const n = labels.length, several = scheme.value === "pairs" ? "tied" : "several claim";
    grey(percent((count.none + count.several) / n), scheme.value === "pairs" ? "votes tie" : `none claims ${percent(count.none / n)}, ${several} ${percent(count.several / n)}`);
    wrong(countOf(markWrong(points, ours.decided), points.length), "after scores have decided");
  }, { atReset: classes });
  plane.limitClasses(3);
}

// --- label tree ---

function tree() {
  const own = new Explorable("tree"), random = generator(11);
  const labels = Array.from({ length: 16 }, (_, i) => ({ x: ((i % 4) - 1.5) * 2.5 + 0.9 * random.normal(), y: (Math.floor(i / 4) - 1.5) * 2 + 0.7 * random.normal(), k: 5 }));
  const plane = own.plane({
    label: "Sixteen labels and a row", x: [-6, 6], y: [-5, 5], equal: true, points: labels, ticks: false, cell: 7,
    caption: "Grey: the beam search misses the best label. Labels can be dragged; the tree is built again.",
  });
  const picture = own.plane({ label: "The label tree: visited nodes in colour", x: [0, 16], y: [-0.35, 3.4], height: 250, ticks: false });
  const beam = own.slider("Beam: nodes followed on each level", { min: 1, max: 4, value: 1 });
  const used = own.number("Classifiers evaluated", "evaluated"), chosen = own.number("Best label of the beam", "beam");
  const full = own.number("Best label of all", "best"), missed = own.number("Missed on the plane", "missed");
  let row = { x: 0.3, y: 0.35 }, known = { key: "" };
  plane.handle({ label: "Row to classify", where: () => row, move: ({ x, y }) => { row = { x, y }; } });

  /** Split labels into two groups of the same size, by the longer axis. */
  function split(items) {
    const range = (f) => Math.max(...items.map(f)) - Math.min(...items.map(f));
    const axis = range((i) => plane.points[i].x) >= range((i) => plane.points[i].y) ? "x" : "y";
    const sorted = [...items].sort((a, b) => plane.points[a][axis] - plane.points[b][axis]);
    return [sorted.slice(0, items.length / 2), sorted.slice(items.length / 2)];
  }

  function build() {
    const node = (items) => ({
      items, x: items.reduce((s, i) => s + plane.points[i].x, 0) / items.length, y: items.reduce((s, i) => s + plane.points[i].y, 0) / items.length,
      children: items.length === 1 ? [] : items.length === 4 ? items.map((i) => node([i])) : split(items).map(node),
    });
    return node(labels.map((_, i) => i));
  }

  /** Log-probabilities of the children of a node: Gaussian scores about their centres, normalised. */
  function childLogs(parent, x, y) {
    const variance = parent.children.length === 2 ? 3.5 : 1.2;
    const scores = parent.children.map((child) => -((x - child.x) ** 2 + (y - child.y) ** 2) / (2 * variance));
    const top = Math.max(...scores), total = top + Math.log(scores.reduce((s, v) => s + Math.exp(v - top), 0));
    return scores.map((score) => score - total);
  }

  function search(root, x, y, width) {
    let level = [{ node: root, log: 0 }], evaluated = 0;
    const visited = new Set([root]);
    while (level[0].node.children.length) {
      const next = level.flatMap(({ node, log }) => {
        evaluated += node.children.length;
        return childLogs(node, x, y).map((own, i) => ({ node: node.children[i], log: log + own }));
      });
      level = next.sort((a, b) => b.log - a.log).slice(0, width);
      level.forEach(({ node }) => visited.add(node));
    }
    return { label: level[0].node.items[0], log: level[0].log, evaluated, visited };
  }

  own.start(() => {
    const root = build(), { x, y } = row, visit = search(root, x, y, beam.value), best = search(root, x, y, 16), nodes = plane.nodes();
    const key = JSON.stringify([plane.points.map((point) => [point.x, point.y]), beam.value]);
    if (key !== known.key) { // moving the row does not change the regions
      known = { key, labels: new Int8Array(nodes.length / 2).fill(-2), misses: 0 };
      known.labels.forEach((_, i) => {
        const [u, v] = [nodes[2 * i], nodes[2 * i + 1]];
        if (search(root, u, v, beam.value).label === search(root, u, v, 16).label) return;
        known.labels[i] = -1;
        known.misses++;
      });
    }
    plane.shade(known.labels);
    const names = (i) => String.fromCharCode(65 + i);
    plane.draw(
      [visit, best].map((result, k) => plane.line([x, y], [plane.points[result.label].x, plane.points[result.label].y], k ? "dashed" : "strong")),
      labels.map((_, i) => plane.text([plane.points[i].x, plane.points[i].y], names(i), { dy: -11 })),
    );
    const parts = [];
    let leaf = 0;
    const lay = (node, depth) => {
      node.children.forEach((child) => lay(child, depth + 1));
      node.u = node.children.length ? node.children.reduce((s, c) => s + c.u, 0) / node.children.length : leaf++ + 0.5;
      node.v = 3 - depth;
      for (const child of node.children) {
        parts.push(picture.line([node.u, node.v], [child.u, child.v], visit.visited.has(child) && visit.visited.has(node) ? "strong" : "faint"));
      }
      parts.push(node.children.length ? picture.circle([node.u, node.v], 5, "spot")
        : picture.text([node.u, node.v], names(node.items[0]), { dy: 12, kind: visit.visited.has(node) ? "label selected" : "label" }));
    };
    lay(root, 0);
    picture.draw(parts);
    used(`${visit.evaluated}`, `a full search of the tree: ${best.evaluated}`);
    chosen(names(visit.label), `probability ${short(Math.exp(visit.log))}`);
    full(names(best.label), `probability ${short(Math.exp(best.log))}`);
    missed(percent(known.misses / known.labels.length), "grey share");
  }, { atReset: () => { row = { x: 0.3, y: 0.35 }; } });
}

[direction, priors, estimates, generative, schemes, tree].forEach((section) => section());
themeButton(document.getElementById("theme"));
