/**
 * Notebook widget: LDA, QDA and RDA of a small table, in the plane of two of its features.
 *
 * `model` is the model of anywidget, which Python shares; `discriminant.widget` describes its traits.
 */

import { decide, fit, LeaveOneOut, logPosterior, Moments } from "./moments.js";
import { countOf, Explorable, renderAll, short } from "./figures.js";
import { ellipse, mean } from "./statistics.js";

let views = 0;

/** Show the table of `model` in the element `el`; the function that is returned ends the view. */
export function render({ model, el }) {
  const section = document.createElement("div"), names = model.get("labels"), features = model.get("features");
  section.id = `discriminant-view-${++views}`;
  el.classList.add("discriminant-widget");
  el.append(section);
  const own = new Explorable(section), K = names.length, d = features.length;
  const span = (j) => {
    const values = model.get("rows").map((row) => row[j]), [low, high] = [Math.min(...values), Math.max(...values)];
    const space = 0.08 * (high - low || 1);
    return [low - space, high + space];
  };
  let axes = [...model.get("axes")];
  const stored = () => model.get("rows").map((row, i) => ({ x: row[axes[0]], y: row[axes[1]], k: model.get("codes")[i], row: [...row] }));
  /** Write the place of a point into its row; a new point gets the means of the other features. */
  const place = (point) => {
    const row = point.row ? [...point.row] : features.map((_, j) => mean(plane.points.filter((each) => each.row).map((each) => each.row[j])));
    row[axes[0]] = point.x;
    row[axes[1]] = point.y;
    return { ...point, row };
  };
  const plane = own.plane({
    label: "Rows and regions of the model", x: span(axes[0]), y: span(axes[1]), points: stored(), adding: names, place,
    xLabel: features[axes[0]], yLabel: features[axes[1]], caption: d > 2 ? "Regions where the other features have their means. Circled: misclassified." : "Circled: misclassified.",
  });
  plane.initial = stored;
  const first = { rows: model.get("rows"), codes: model.get("codes") };
  const kind = own.choice("Model", { lda: "LDA", qda: "QDA", rda: "RDA" }, model.get("model"));
  const pooling = own.slider("Pooling", { min: 0, max: 1, step: 0.05, value: model.get("pooling") });
  const shrinkage = own.slider("Shrinkage", { min: 0, max: 1, step: 0.05, value: model.get("shrinkage") });
  const selects = ["Horizontal", "Vertical"].map((title, a) => {
    const label = document.createElement("label"), select = document.createElement("select");
    features.forEach((name, j) => select.add(new Option(name, j, j === axes[a], j === axes[a])));
    label.append(`${title} `, select);
    own.controls.append(label);
    select.addEventListener("change", () => {
      axes[a] = Number(select.value);
      show();
    });
    return select;
  });
  function show() {
    plane.rescale(span(axes[0]), span(axes[1]));
    plane.rename(features[axes[0]], features[axes[1]]);
    plane.setPoints(stored());
  }
  const training = own.number("Training error", "training"), held = own.number("Leave-one-out error", "held_out"), loss = own.number("Leave-one-out log loss", "log_loss");

  /** Share the state with Python. */
  function share(numbers) {
    const rows = plane.points.map((point) => point.row), codes = plane.points.map((point) => point.k);
    const state = { rows, codes, model: kind.value, pooling: pooling.value, shrinkage: shrinkage.value, axes: [...axes], numbers };
    for (const [name, value] of Object.entries(state)) {
      if (JSON.stringify(model.get(name)) !== JSON.stringify(value)) model.set(name, value);
    }
    model.save_changes();
  }

  const changed = () => { // in Python
    if (model.get("rows").length !== model.get("codes").length) return; // one of them is set after the other
    const rows = plane.points.map((point) => point.row);
    kind.value = model.get("model");
    pooling.value = model.get("pooling");
    shrinkage.value = model.get("shrinkage");
    const same = JSON.stringify([rows, axes, plane.points.map((point) => point.k)]) === JSON.stringify([model.get("rows"), model.get("axes"), model.get("codes")]);
    axes = [...model.get("axes")];
    selects.forEach((select, a) => { select.value = axes[a]; });
    if (same) own.update();
    else show();
  };
  const watched = ["rows", "codes", "model", "pooling", "shrinkage", "axes"].map((name) => `change:${name}`);
  watched.forEach((name) => model.on(name, changed));

  own.start(() => {
    pooling.input.disabled = kind.value !== "rda";
    const { points } = plane, codes = points.map((point) => point.k), rows = Float64Array.from(points.flatMap((point) => point.row));
    const moments = Moments.ofRows(rows, codes, { labels: names, features });
    const options = { model: kind.value, shrinkage: shrinkage.value, ...(kind.value === "rda" && { pooling: pooling.value }) };
    const rule = fit(moments, options), centre = Float64Array.from(moments.centre(), (value, j) => value + moments.origin[j]);
    const unit = (j) => Float64Array.from({ length: d }, (_, i) => (i === j ? 1 : 0));
    const nodes = plane.nodes().map((value, i) => value - centre[axes[i % 2]]);
    const ellipses = names.map((_, k) => {
      const n = moments.rows[k], C = [0, 0, 1, 1].map((a, i) => moments.scatter[k * d * d + axes[a] * d + axes[i % 2]] / (n - 1));
      const at = axes.map((j) => moments.origin[j] + moments.mean[k * d + j]);
      return n > 2 ? `<g class="k${k}">${plane.curve(ellipse(at, C), "own dashed")}${plane.circle(at, 7, "centre")}</g>` : "";
    });
    plane.draw(axes[0] === axes[1] ? plane.clear() ?? "" : plane.regions(rule.onPlane(centre, axes.map(unit)).scores(nodes), K), ellipses);
    const predicted = rule.predict(rows), wrong = codes.filter((k, i) => predicted[i] !== k).length;
    points.forEach((point, i) => { point.wrong = predicted[i] !== point.k; });
    training(countOf(wrong, points.length));
    if (own.dragging) return; // the rest follows when the point is released
    const logs = logPosterior(new LeaveOneOut(moments, rows, codes).scores(options), K), left = decide(logs, K);
    const missed = codes.filter((k, i) => left[i] !== k).length, logLoss = -mean(codes.map((k, i) => logs[i * K + k]));
    held(countOf(missed, points.length));
    loss(short(logLoss));
    share({ training: wrong, held_out: missed, log_loss: logLoss });
  }, { atReset: () => {
    model.set("rows", first.rows);
    model.set("codes", first.codes);
    show();
  } });
  const themes = new MutationObserver(renderAll);
  themes.observe(document.body, { attributeFilter: ["data-jp-theme-light", "class"] });
  return () => {
    themes.disconnect();
    watched.forEach((name) => model.off(name, changed));
    own.end();
  };
}
