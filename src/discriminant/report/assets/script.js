"use strict";
/* One small script: the theme, the tip at a row, and the decision made anew.
   Names come from JSON and go to the page as text, never as markup. */
(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  root.classList.add("live");

  // --- numbers, formatted as by report/format.py ---
  const percent = (value, digits = 1) => {
    if (value === null || !Number.isFinite(value)) return "–";
    const scaled = 100 * value;
    if (scaled === 0 || scaled === 100) return `${scaled}%`;
    if (Number(scaled.toFixed(digits)) === 100) return `> ${(100 - 10 ** -digits).toFixed(digits)}%`;
    while (Number(scaled.toFixed(digits)) === 0 && digits < 4) digits += 1;
    return `${scaled.toFixed(digits)}%`;
  };
  const number = (value, digits = 3) => {
    if (value === null || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size < -4 || size > 8) return value.toPrecision(digits);
    const places = Math.max(digits - 1 - size, 0);
    return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  };
  const whole = (value) =>
    value.toLocaleString("en", { maximumFractionDigits: Math.abs(value - Math.round(value)) < 1e-6 ? 0 : 1 });

  // --- light and dark ---
  const theme = by("theme");
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => {
    theme.querySelector("span").textContent = dark() ? "Light" : "Dark";
  };
  theme.hidden = false;
  nameTheme();
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    nameTheme();
  });

  // --- everything is open on paper ---
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));

  // --- copying ---
  document.querySelectorAll("[data-copy]").forEach((button) => {
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(facts.use[button.dataset.copy]).then(
        () => { button.textContent = "Copied"; },
        () => { button.textContent = "Select and copy by hand"; },
      );
    });
  });

  // Where the pointer is, in the units of a drawing.
  const place = (svg, event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [at.x, at.y];
  };

  // --- rows in discriminant space ---
  const plane = document.querySelector("svg.space");
  if (plane && facts.space) {
    const rows = [...plane.querySelectorAll(".points use")];
    const spots = rows.map((row) => [Number(row.getAttribute("x")), Number(row.getAttribute("y"))]);
    const tip = by("tip");
    let near = -1;
    const leave = () => {
      if (near >= 0) rows[near].classList.remove("near");
      near = -1;
      tip.hidden = true;
    };
    const line = (tag, text) => {
      const part = document.createElement(tag);
      part.textContent = text;
      return part;
    };
    plane.addEventListener("pointermove", (event) => {
      const [x, y] = place(plane, event);
      let best = -1;
      let least = 14 * 14;
      spots.forEach(([a, b], i) => {
        const far = (a - x) ** 2 + (b - y) ** 2;
        if (far < least) { least = far; best = i; }
      });
      if (best !== near) {
        leave();
        if (best < 0) return;
        near = best;
        rows[near].classList.add("near");
        const { labels, codes, shown, values } = facts.space;
        tip.replaceChildren(
          line("b", labels[codes[near]]),
          ...shown.map((name, j) => line("span", `${name}: ${values[near][j]}`)),
        );
        tip.hidden = false;
      }
      if (near < 0) return;
      const box = tip.getBoundingClientRect();
      const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
      const top = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18;
      tip.style.transform = `translate(${Math.max(left, 8)}px, ${Math.max(top, 8)}px)`;
    });
    plane.addEventListener("pointerleave", leave);
  }

  // --- the decision ---
  const decision = facts.decision;
  const form = document.querySelector(".controls");
  if (!decision || !form) return;
  const K = decision.labels.length;
  const A = decision.actions.length;
  const { own, roc, held } = decision;
  const NEVER = Infinity;

  // A slider over given steps; the start is put among them.
  const steps = (input, values, start, says) => {
    const all = [...new Set([...values, start])].sort((a, b) => a - b);
    input.min = 0;
    input.max = all.length - 1;
    input.step = 1;
    const write = () => {
      const text = says(all[input.value]);
      by(`${input.id}-says`).textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    input.defaultValue = all.indexOf(start);
    input.value = all.indexOf(start);
    return { get value() { return all[input.value]; }, write };
  };
  const COSTS = decision.dials.cost;
  const over = (value, bound) => value > bound * (1 + decision.tie);  // differences below are ties
  const aside = steps(by("aside"), [...decision.dials.aside, NEVER], decision.reject === null ? NEVER : decision.reject, (value) =>
    value === NEVER ? "never done" : String(value));

  // As long as nothing is moved, the table is that of the facts: the model may decide in its own way.
  const moved = () => [...form.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
  const table = () => Array.from({ length: A + 1 }, () => new Array(K).fill(0));

  // What a table of decisions comes to, and the page with it.
  const show = (done, cost) => {
    let total = 0, decided = 0, right = 0, paid = 0, passed = 0;
    done.forEach((row, a) => row.forEach((rows, k) => {
      total += rows;
      if (a === A) { passed += rows; paid += rows * (aside.value === NEVER ? 0 : aside.value); return; }
      paid += rows * cost[a][k];
      if (own[a] >= 0) { decided += rows; right += own[a] === k ? rows : 0; }
    }));
    const sums = done[0].map((_, k) => done.reduce((sum, row) => sum + row[k], 0));
    done.forEach((row, a) => row.forEach((rows, k) => {
      const cell = document.querySelector(`[data-cell="${a}-${k}"]`);
      if (!cell) return;
      cell.textContent = whole(rows);
      cell.className = cell.className.replace(/\bw\d+\b/, "").trim();
      const much = sums[k] ? Math.min(Math.floor((10 * rows) / sums[k] + 0.999), 10) : 0;
      if (a < A) cell.classList.add(`w${much}`);
    }));
    const last = document.querySelector(".confusion tr.aside");
    if (last) last.hidden = passed === 0;
    const wrong = decided ? (decided - right) / decided : null;
    by("wrong").textContent = percent(wrong);
    by("passed").textContent = percent(1 - decided / total);
    by("paid").textContent = number((100 * paid) / total);
    move(document.querySelector("svg.coverage"), decided / total, wrong);
    return { total, decided, right };
  };

  // The point of a drawing goes to a place, given in the numbers of its axes.
  const frame = (svg) => svg.dataset.frame.split(" ").map(Number);
  const move = (svg, x, y) => {
    const point = svg && svg.querySelector(".handle");
    if (!point) return;
    point.style.display = x === null || y === null ? "none" : "";
    if (x === null || y === null) return;
    const [x0, x1, left, right, y0, y1, low, high] = frame(svg);
    point.setAttribute("cx", left + ((x - x0) / (x1 - x0)) * (right - left));
    point.setAttribute("cy", Math.max(low + ((y - y0) / (y1 - y0)) * (high - low), 4));
  };

  if (roc) {
    const yes = decision.positive;
    const no = 1 - yes;
    const slider = by("threshold");
    const at = (i) => (roc.threshold[i] === null ? Infinity : roc.threshold[i]);
    // The last point whose threshold is at least p, or above it: how many rows are so probable.
    const last = (holds) => {
      let low = 0, high = roc.tp.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (holds(at(middle))) low = middle; else high = middle - 1;
      }
      return low;
    };
    // A tie goes to the first of the two classes.
    const from = (p) => last((t) => (yes === 0 ? !over(p, t) : over(t, p)));
    const even = () => alarm.value / (alarm.value + miss.value);
    const miss = steps(by("miss"), COSTS, decision.cost[no][yes], String);
    const alarm = steps(by("alarm"), COSTS, decision.cost[yes][no], String);
    const update = () => {
      const i = Number(slider.value);
      const t = at(i);
      const cost = [[0, 0], [0, 0]];
      cost[no][yes] = miss.value;
      cost[yes][no] = alarm.value;
      const r = aside.value;
      const sure = r === NEVER ? i : Math.min(i, last((p) => !over(1 - p, r / alarm.value)));
      const clear = r === NEVER ? i : Math.max(i, last((p) => over(p, r / miss.value)));
      const done = table();
      if (moved()) {
        done[yes][yes] = roc.tp[sure];
        done[yes][no] = roc.fp[sure];
        done[no][yes] = roc.positives - roc.tp[clear];
        done[no][no] = roc.negatives - roc.fp[clear];
        done[2][yes] = roc.tp[clear] - roc.tp[sure];
        done[2][no] = roc.fp[clear] - roc.fp[sure];
      } else decision.confusion.forEach((row, a) => { done[a] = row; });
      show(done, cost);
      by("found").textContent = percent(done[yes][yes] / roc.positives);
      const text = i === from(even()) ? percent(even()) : t === Infinity ? "never" : percent(t);
      by("threshold-says").textContent = text;
      slider.setAttribute("aria-valuetext", text);
      move(document.querySelector("svg.roc"), roc.fp[i] / roc.negatives, roc.tp[i] / roc.positives);
      [miss, alarm, aside].forEach((dial) => dial.write());
    };
    // Other costs call for another threshold: p miss > (1 - p) alarm.
    const follow = () => {
      slider.value = from(even());
      update();
    };
    form.addEventListener("input", (event) => (event.target.dataset.cost ? follow() : update()));
    form.addEventListener("reset", () => setTimeout(update));
    const svg = document.querySelector("svg.roc");
    const drag = (event) => {
      const [x0, x1, left, right, y0, y1, low, high] = frame(svg);
      const [x, y] = place(svg, event);
      const fpr = x0 + ((x - left) / (right - left)) * (x1 - x0);
      const tpr = y0 + ((y - low) / (high - low)) * (y1 - y0);
      let best = 0, least = Infinity;
      roc.tp.forEach((tp, i) => {
        const far = (tp / roc.positives - tpr) ** 2 + (roc.fp[i] / roc.negatives - fpr) ** 2;
        if (far < least) { least = far; best = i; }
      });
      slider.value = best;
      update();
    };
    svg.addEventListener("pointerdown", (event) => { svg.setPointerCapture(event.pointerId); drag(event); });
    svg.addEventListener("pointermove", (event) => { if (event.buttons) drag(event); });
    form.hidden = false;
    update();
    return;
  }

  const rows = held.logs.map((logs) => logs.map((value) => Math.exp(-value / 1000)));
  const dials = [...form.querySelectorAll("[data-class]")].map((input) => steps(input, COSTS, 1, (v) => `× ${v}`));
  const update = () => {
    const cost = decision.cost.map((line) => line.map((value, k) => value * (dials[k] ? dials[k].value : 1)));
    const done = table();
    if (!moved()) decision.confusion.forEach((row, a) => { done[a] = row; });
    else rows.forEach((p, i) => {
      let best = 0, least = Infinity;
      for (let a = 0; a < A; a += 1) {
        let expected = 0;
        for (let k = 0; k < K; k += 1) expected += cost[a][k] * p[k];
        if (over(least, expected)) { least = expected; best = a; }
      }
      if (over(least, aside.value)) best = A;
      done[best][held.truth[i]] += held.weight[held.truth[i]];
    });
    show(done, cost);
    [...dials, aside].forEach((dial) => dial.write());
  };
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.hidden = false;
  [...dials, aside].forEach((dial) => dial.write());
})();
