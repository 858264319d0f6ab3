/** Lecture 5: regression and links, error-correcting output codes, class imbalance. */

import { fit, logistic, Moments } from "./moments.js";
import { countOf, Explorable, percent, plain, short, themeButton } from "./figures.js";
import { cloud, codesOf, generator, markWrong, mean, momentsOf, rowsOf, sigmoid, spaced } from "./statistics.js";

// --- regression ---

function regression() {
  const own = new Explorable("regression");
  const sample = (link) => {
    const random = generator(14);
    return spaced(0.6, 9.4, 16).map((x) => {
      if (link === "line") return { x, y: 1.2 + 0.45 * x + 0.8 * random.normal(), k: 0 };
      if (link === "log") return { x, y: Math.min(7.8, Math.exp(-1 + 0.32 * x + 0.25 * random.normal())), k: 0 };
      return { x, y: random.uniform() < sigmoid(1.1 * (x - 5)) ? 1 : 0, k: 0 };
    });
  };
  const place = (point) => (kind && kind.value === "logistic" ? { ...point, y: point.y >= 0.5 ? 1 : 0 } : { ...point, y: kind && kind.value === "log" ? Math.max(0.05, point.y) : point.y });
  let kind = null, ends = [{ x: 0.5, y: 3 }, { x: 9.5, y: 3 }];
  const plot = own.plane({ label: "Points and the regression line", x: [0, 10], y: [-1, 8], xLabel: "x", yLabel: "y", points: sample("line"), adding: ["point"], place, caption: "Solid: fitted. Dashed: your line. Vertical lines: residuals." });
  kind = own.choice("Link", { line: "y = w x + b", log: "ln y = w x + b", logistic: "ln(y/(1 − y)) = w x + b" }, "line", () => again());
  const again = () => {
    plot.rescale([0, 10], kind.value === "logistic" ? [-0.25, 1.25] : [-1, 8]);
    ends = { line: [{ x: 0.5, y: 3 }, { x: 9.5, y: 3 }], log: [{ x: 0.5, y: 0.5 }, { x: 9.5, y: 4 }], logistic: [{ x: 2, y: 0.2 }, { x: 8, y: 0.8 }] }[kind.value];
    plot.setPoints(sample(kind.value));
  };
  plot.initial = () => sample(kind.value);
  [0, 1].forEach((i) => plot.handle({ label: `Handle ${i + 1} of your line`, kind: "own k3", where: () => ends[i], move: ({ x, y }) => { ends[i] = { x, y }; } }));
  const weights = own.number("w and b", "weights"), error = own.number("Mean squared error", "mse"), yours = own.number("Of your line", "yours"), at = own.number("Mean of the points", "mean");
  const links = { line: [(y) => y, (z) => z], log: [(y) => Math.log(Math.max(y, 0.02)), Math.exp], logistic: [(y) => Math.log(Math.min(0.99, Math.max(0.01, y)) / (1 - Math.min(0.99, Math.max(0.01, y)))), sigmoid] };
  own.start(() => {
    const { points } = plot, [link, back] = links[kind.value], xs = points.map((point) => point.x), ys = points.map((point) => (kind.value === "logistic" ? point.y : link(point.y)));
    const x0 = mean(xs);
    let w = xs.reduce((sum, x, i) => sum + ys[i] * (x - x0), 0) / xs.reduce((sum, x) => sum + (x - x0) ** 2, 0), b = mean(ys) - w * x0, note = "";
    if (kind.value === "logistic") {
      const { rule, separated } = logistic(Float64Array.from(xs), points.map((point) => point.y), { classes: 2, ridge: 1e-4 });
      const s = rule.scores(Float64Array.of(0, 1));
      [b, w] = [s[1] - s[0], s[3] - s[2] - s[1] + s[0]];
      note = separated ? "separable" : "maximum likelihood";
    }
    const slope = (link(ends[1].y) - link(ends[0].y)) / (ends[1].x - ends[0].x || 1e-9), grid = spaced(0, 10, 161);
    const f = (x) => back(w * x + b), mine = (x) => back(link(ends[0].y) + slope * (x - ends[0].x));
    const loss = (g) => (kind.value === "logistic" ? mean(points.map((point) => -Math.log(point.y ? g(point.x) : 1 - g(point.x))))
      : mean(points.map((point) => (link(point.y) - link(Math.max(g(point.x), kind.value === "log" ? 0.02 : -Infinity))) ** 2)));
    plot.draw(
      points.map((point) => plot.line([point.x, point.y], [point.x, f(point.x)], "faint dark")),
      kind.value === "logistic" ? [plot.line([0, 0], [10, 0], "faint"), plot.line([0, 1], [10, 1], "faint"), plot.curve([[0, 0], [-b / w, 0], [-b / w, 1], [10, 1]], "known")] : "",
      `<g class="k3">${plot.curve(grid.map((x) => [x, mine(x)]), "own dashed")}</g>`, plot.curve(grid.map((x) => [x, f(x)]), "strong"),
      kind.value === "line" ? plot.circle([x0, mean(ys)], 6, "spot") : "",
    );
    weights(`${short(w)}, ${short(b)}`, note || "closed form");
    error(short(loss(f), 4), { line: "smallest possible", log: "of ln y", logistic: "mean cross-entropy instead" }[kind.value]);
    yours(short(loss(mine), 4), kind.value === "logistic" ? "cross-entropy" : "");
    at(`${short(x0)}, ${short(mean(points.map((point) => point.y)))}`, kind.value === "line" ? "lies on the line" : "");
  }, { atReset: again });
}

// --- output codes ---

const CODES = {
  chapter: [[-1, 1, -1, 1, 1], [1, -1, -1, 1, -1], [-1, 1, 1, -1, 1], [-1, -1, 1, 1, -1]],
  all: [[1, 1, 1, 1, 1, 1, 1], [-1, -1, -1, -1, 1, 1, 1], [-1, -1, 1, 1, -1, -1, 1], [-1, 1, -1, 1, -1, 1, -1]],
  ternary: [[-1, -1, 1, 1, -1], [1, 0, -1, 0, -1], [0, 1, 0, -1, 1], [-1, 1, -1, 1, 1]],
  rest: [[1, -1, -1, -1], [-1, 1, -1, -1], [-1, -1, 1, -1], [-1, -1, -1, 1]],
};

function codes() {
  const own = new Explorable("codes"), names = ["C₁", "C₂", "C₃", "C₄"];
  const sample = () => {
    const random = generator(23);
    return [[-2.4, -2], [2.4, -2], [-2.4, 2], [2.4, 2]].flatMap((centre, k) => cloud(random, 12, k, centre, [0.8, 0, 0.8]));
  };
  const table = own.table("Coding matrix and distances");
  const plane = own.plane({ label: "Four classes with the regions that the code decodes", x: [-5.5, 5.5], y: [-4.5, 4.5], equal: true, points: sample(), adding: names, ticks: false, caption: "Regions: decoded class, without flips; grey where several classes are equally near. Lines: the single classifiers." });
  const kind = own.choice("Code", { chapter: "of the chapter (5 columns)", all: "all 7 columns", ternary: "ternary (5 columns)", rest: "one-vs-rest (4)" }, "chapter", () => { flips = new Set(); });
  const model = own.choice("Classifiers", { lda: "LDA", qda: "QDA" }, "qda");
  const predicted = own.number("Nearest code word", "predicted"), distance = own.number("Distance of the code", "distance"), certain = own.number("Corrects for certain", "corrects"), errors = own.number("Points decoded wrongly", "errors");
  let flips = new Set([1]), row = { x: -2.4, y: 2 };
  plane.handle({ label: "Row to classify", where: () => row, move: ({ x, y }) => { row = { x, y }; } });
  own.button("No flips", () => { flips = new Set(); });
  table.addEventListener("click", (event) => {
    const m = event.target.closest("button")?.dataset.column;
    if (m === undefined) return;
    if (!flips.delete(Number(m))) flips.add(Number(m));
    own.update();
  });
  const hamming = (word, code) => word.reduce((sum, value, m) => sum + (code[m] === 0 ? 0.5 : value === code[m] ? 0 : 1), 0);
  const signed = (value) => (value > 0 ? "+1" : value < 0 ? "−1" : "0");

  /** Words of rows: the signs of all classifiers. */
  function words(rules, rows) {
    const n = rows.length / 2, scores = rules.map((rule) => rule.scores(rows));
    return Array.from({ length: n }, (_, i) => scores.map((s) => (s[2 * i + 1] - s[2 * i] >= 0 ? 1 : -1)));
  }

  function nearest(word, code) {
    const far = code.map((each) => hamming(word, each)), least = Math.min(...far), winners = far.flatMap((d, k) => (d === least ? [k] : []));
    return { far, winners };
  }

  own.start(() => {
    const code = CODES[kind.value], M = code[0].length, { points } = plane, moments = momentsOf(points, 4), nodes = plane.nodes(), rows = rowsOf(points);
    const rules = Array.from({ length: M }, (_, m) => fit(moments.group(code.map((each) => (each[m] > 0 ? 1 : each[m] < 0 ? 0 : -1)), ["minus", "plus"]), { model: model.value }));
    const decoded = new Map(), decode = (word) => {
      const key = word.join();
      if (!decoded.has(key)) decoded.set(key, nearest(word, code));
      return decoded.get(key);
    };
    const label = (word) => (decode(word).winners.length === 1 ? decode(word).winners[0] : -1);
    plane.shade(Int8Array.from(words(rules, nodes), label));
    const scores = rules.map((rule) => rule.scores(nodes));
    plane.draw(scores.map((s) => plane.contour(Float64Array.from({ length: s.length / 2 }, (_, i) => s[2 * i + 1] - s[2 * i]), "faint dark")));
    const wrong = markWrong(points, words(rules, rows).map(label)), [plainWord] = words(rules, Float64Array.of(row.x, row.y));
    const word = plainWord.map((value, m) => (flips.has(m) ? -value : value)), { far, winners } = nearest(word, code), least = Math.min(...far);
    const between = code.flatMap((a, k) => code.slice(k + 1).map((b) => a.reduce((sum, value, m) => sum + Math.abs(value - b[m]) / 2, 0)));
    const focused = document.activeElement?.dataset?.column;
    table.innerHTML = `<caption>Coding matrix; shaded entries differ from the row's word</caption><thead><tr><th scope="col">class</th>${code[0].map((_, m) => `<th scope="col">f${"₁₂₃₄₅₆₇"[m]}</th>`).join("")}<th scope="col">Hamming</th><th scope="col">Euclid</th></tr></thead><tbody>` +
      code.map((each, k) => `<tr class="${far[k] === least ? "winner" : ""}"><th scope="row"><span class="k k${k}">&nbsp;${names[k]}</span></th>${each.map((value, m) => `<td class="${value !== word[m] && value !== 0 ? "differs" : ""}">${signed(value)}</td>`).join("")}<td>${plain(far[k])}</td><td>${short(Math.hypot(...each.map((value, m) => value - word[m])))}</td></tr>`).join("") +
      `</tbody><tbody><tr><th scope="row">outputs (click to flip)</th>${word.map((value, m) => `<td><button type="button" data-column="${m}" aria-pressed="${flips.has(m)}" aria-label="Output of classifier ${m + 1}: ${signed(value)}${flips.has(m) ? ", flipped" : ""}">${signed(value)}</button></td>`).join("")}<td></td><td></td></tr></tbody>`;
    if (focused !== undefined) table.querySelector(`[data-column="${focused}"]`)?.focus();
    predicted(winners.map((k) => names[k]).join(" or "), winners.length > 1 ? "a tie" : `${flips.size} of ${M} outputs flipped`);
    const d = Math.min(...between);
    distance(plain(d), "between the two nearest code words");
    certain(`${Math.max(0, Math.ceil(d / 2 - 1))}`, "wrong classifiers");
    errors(countOf(wrong, points.length), "without flips; ties count");
  }, { atReset: () => {
    flips = new Set([1]);
    row = { x: -2.4, y: 2 };
  } });
}

// --- imbalance ---

function imbalance() {
  const own = new Explorable("imbalance"), RARE = 12;
  const sample = (times, seed = 41, rare = RARE) => {
    const random = generator(seed);
    return [...cloud(random, times * rare, 0, [-0.9, -0.3], [1.5, 0.5, 1.5]), ...cloud(random, rare, 1, [1.4, 0.9], [1, 0.3, 1])];
  };
  const plane = own.plane({ label: "A common and a rare class", x: [-6, 6], y: [-5, 5], equal: true, points: sample(10), adding: ["blue (common)", "orange (rare)"], caption: "Solid: boundary of the strategy. Dashed: boundary without it. Small circles: synthetic rows; dropped rows are pale." });
  const times = own.slider("Blue rows for each orange row", { min: 1, max: 25, value: 10 });
  const kind = own.choice("Strategy", { none: "unchanged", threshold: "move the threshold", under: "undersampling", over: "oversampling", smote: "SMOTE", easy: "EasyEnsemble" });
  const neighbours = own.slider("Neighbours of SMOTE", { min: 1, max: 8, value: 5 });
  const model = own.choice("Model", { logistic: "logistic regression", lda: "LDA" });
  times.input.addEventListener("input", () => plane.setPoints(sample(times.value)));
  plane.initial = () => sample(10);
  let seed = 1;
  own.button("Sample again", () => { seed++; });
  const accuracy = own.number("Accuracy on new rows", "accuracy"), always = own.number("Always blue", "baseline"), rare = own.number("Recall of orange", "recall_rare"), common = own.number("Recall of blue", "recall_common"), used = own.number("Rows used", "rows"), cut = own.number("Orange if odds exceed", "cut");
  const later = { common: cloud(generator(900), 3000, 0, [-0.9, -0.3], [1.5, 0.5, 1.5]), rare: cloud(generator(901), 3000, 1, [1.4, 0.9], [1, 0.3, 1]) };
  const laterRows = { common: rowsOf(later.common), rare: rowsOf(later.rare) };

  /** Log odds of orange at rows, by a model of points. */
  function odds(points) {
    const rows = rowsOf(points), rule = model.value === "lda" ? fit(momentsOf(points, 2), { model: "lda" }) : logistic(rows, codesOf(points), { classes: 2, ridge: 1e-3 }).rule;
    return (at) => {
      const scores = rule.scores(at);
      return Float64Array.from({ length: at.length / 2 }, (_, i) => scores[2 * i + 1] - scores[2 * i]);
    };
  }

  const shuffled = (items, random) => items.map((item) => [random.uniform(), item]).sort((a, b) => a[0] - b[0]).map(([, item]) => item);

  /** New rows between orange points and their nearest orange neighbours. */
  function smote(points, n, random) {
    return Array.from({ length: n }, () => {
      const one = points[Math.floor(random.uniform() * points.length)];
      const near = points.filter((point) => point !== one).sort((a, b) => Math.hypot(a.x - one.x, a.y - one.y) - Math.hypot(b.x - one.x, b.y - one.y)).slice(0, neighbours.value);
      const other = near[Math.floor(random.uniform() * near.length)] ?? one, u = random.uniform();
      return { x: one.x + u * (other.x - one.x), y: one.y + u * (other.y - one.y), k: 1, from: one, to: other };
    });
  }

  own.start(() => {
    const { points } = plane, random = generator(seed), blue = points.filter((point) => point.k === 0), orange = points.filter((point) => point.k === 1);
    neighbours.input.disabled = kind.value !== "smote";
    const extra = Math.max(0, blue.length - orange.length), nodes = plane.nodes(), original = odds(points);
    let lead = original, shift = 0, added = [], dropped = [], members = [], rows = points.length, note = "";
    if (kind.value === "threshold") shift = Math.log(blue.length / orange.length);
    else if (kind.value === "under") {
      dropped = shuffled(blue, random).slice(orange.length);
      lead = odds(points.filter((point) => !dropped.includes(point)));
      rows -= dropped.length;
    } else if (kind.value === "over") {
      lead = odds([...points, ...Array.from({ length: extra }, (_, i) => orange[i % orange.length])]);
      rows += extra;
      note = "orange rows repeated";
    } else if (kind.value === "smote") {
      added = smote(orange, extra, random);
      lead = odds([...points, ...added]);
      rows += extra;
      note = `${extra} synthetic`;
    } else if (kind.value === "easy") {
      const parts = Math.max(1, Math.round(blue.length / orange.length)), mixed = shuffled(blue, random);
      members = Array.from({ length: parts }, (_, p) => odds([...orange, ...mixed.filter((_, i) => i % parts === p)]));
      lead = (at) => members.map((member) => member(at)).reduce((sum, values) => sum.map((value, i) => value + values[i] / parts), new Float64Array(at.length / 2));
      note = `${parts} classifiers`;
    }
    const score = (at) => lead(at).map((value) => value + shift), values = score(nodes);
    plane.shade(Int8Array.from(values, (value) => (value > 0 ? 1 : 0)));
    plane.draw(
      added.map(({ x, y, from, to }) => `<g class="k1">${plane.line([from.x, from.y], [to.x, to.y], "faint")}${plane.circle([x, y], 3, "new")}</g>`),
      members.map((member) => plane.contour(member(nodes), "faint dark")),
      plane.contour(original(nodes), "known"), plane.contour(values, "boundary"),
    );
    points.forEach((point) => { point.dropped = dropped.includes(point); });
    markWrong(points, score(rowsOf(points)).map((value) => (value > 0 ? 1 : 0)));
    const share = (at, side) => score(at).filter((value) => value > 0 === side).length / (at.length / 2);
    const [r, c] = [share(laterRows.rare, true), share(laterRows.common, false)], base = blue.length / points.length;
    accuracy(percent(base * c + (1 - base) * r), "with the same share of orange");
    always(percent(base), "accuracy, recall of orange 0");
    rare(percent(r), "share of 3,000 new orange rows");
    common(percent(c), "share of 3,000 new blue rows");
    used(String(rows), note);
    cut(kind.value === "threshold" ? short(orange.length / blue.length) : "1", kind.value === "threshold" ? "m⁺/m⁻" : "probability ½");
  }, { atReset: () => { seed = 1; } });
}

[regression, codes, imbalance].forEach((section) => section());
themeButton(document.getElementById("theme"));
