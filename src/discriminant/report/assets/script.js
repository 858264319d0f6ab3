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
    while (Number(scaled.toFixed(digits)) === 0 && digits < 2) digits += 1;
    if (Number(scaled.toFixed(digits)) === 0) return `< ${(10 ** -digits).toFixed(digits)}%`;
    return `${scaled.toFixed(digits)}%`;
  };
  const number = (value, digits = 3) => {
    if (value === null || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size < -4 || size > 8) return value.toPrecision(digits);
    const places = Math.max(digits - 1 - size, 0);
    return value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }).replace("-", "−");
  };
  const axisNumber = (value) => {  // no comma below 10,000, because it may be a year
    const text = Number.isInteger(value) && Math.abs(value) < 1e9
      ? value.toLocaleString("en").replace("-", "−") : number(value);
    return Math.abs(value) < 1e4 ? text.replace(",", "") : text;
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
  addEventListener("beforeprint", () =>
    document.querySelectorAll("details:not(.behind)").forEach((d) => { d.open = true; }));

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

  // --- the tip: lines of text beside the pointer or beside an element with the focus ---
  const tip = by("tip");
  const line = (tag, text) => {
    const part = document.createElement(tag);
    part.textContent = text;
    return part;
  };
  const say = (lines, x, y) => {
    tip.replaceChildren(...lines.map((text, i) => line(i ? "span" : "b", text)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, innerWidth - box.width - 8);
    const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = `translate(${Math.max(left, 8)}px, ${Math.max(top, 8)}px)`;
  };
  const hush = () => { tip.hidden = true; };
  const beside = (one, lines) => {
    const box = one.getBoundingClientRect();
    say(lines, box.left + box.width / 2, box.bottom - 10);
  };

  // --- tables that can be sorted ---
  document.querySelectorAll("table.sortable").forEach((table) => {
    const value = (row, i) => {
      const text = row.cells[i].textContent.trim().replace("−", "-").replace(/,/g, "");
      const found = Number.parseFloat(text.replace(/^[<>] /, ""));
      return text === "–" ? Infinity : Number.isNaN(found) ? text : found;
    };
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        [...table.tHead.rows[0].cells].forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].sort((one, two) => {
          const [x, y] = [value(one, i), value(two, i)];
          const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
          return down ? -order : order;
        });
        table.tBodies[0].append(...rows);
      });
    });
  });

  // --- selecting the same rows everywhere: a cell, a class, a bar ---
  const space = facts.space;
  const plot = document.querySelector(".plot");
  const dots = plot ? [...plot.querySelectorAll(".points use")] : [];
  const cards = [...document.querySelectorAll("[data-card]")];
  const strips = [...document.querySelectorAll("[data-strip]")];
  const SVG = "http://www.w3.org/2000/svg";
  const brush = by("brush");
  const select = (holds, text, origin) => {
    const rows = holds && space ? space.codes.map((_, i) => holds(i)) : null;
    const count = rows ? rows.filter(Boolean).length : 0;
    dots.forEach((dot, i) => dot.classList.toggle("faded", rows !== null && !rows[i]));
    cards.forEach((card, c) => {
      const svg = card.querySelector("svg.card");
      svg.querySelectorAll(".picked").forEach((one) => one.remove());
      svg.classList.toggle("dim", rows !== null);
      const { bins, names } = facts.cards[c];
      if (!rows || !bins) return;
      const sums = new Array(names.length).fill(0);
      rows.forEach((inside, i) => { if (inside) sums[bins.charCodeAt(i) - 65] += 1; });
      const covers = [...svg.querySelectorAll(".cover")];
      const top = Math.max(...sums, 1);
      covers.forEach((cover, b) => {
        const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(cover.getAttribute(name)));
        const bar = document.createElementNS(SVG, "rect");
        const high = (height * sums[b]) / top;
        Object.entries({ x: x + 3, y: y + height - high, width: width - 6, height: high, class: "picked" })
          .forEach(([name, to]) => bar.setAttribute(name, to));
        svg.insertBefore(bar, covers[0]);
      });
    });
    strips.forEach((figure) => {
      const svg = figure.querySelector("svg.strip");
      svg.querySelectorAll(".picked").forEach((one) => one.remove());
      svg.classList.toggle("dim", rows !== null);
      const { bins, names, codes } = facts.strips[figure.dataset.strip];
      if (!rows || !bins) return;
      const covers = [...svg.querySelectorAll(".cover")];
      const sums = codes.map((code) => names.map((_, b) =>
        rows.filter((inside, i) => inside && space.codes[i] === code && bins.charCodeAt(i) - 65 === b).length));
      const top = Math.max(...sums.flat(), 1);
      covers.forEach((cover, b) => {
        const [x, width, height] = ["x", "width", "height"].map((name) => Number(cover.getAttribute(name)));
        codes.forEach((_, side) => {
          const bar = document.createElementNS(SVG, "rect");
          const high = ((height / 2 - 2) * sums[side][b]) / top;
          Object.entries({ x: x + 1, y: side ? height / 2 : height / 2 - high, width: Math.max(width - 2, 1), height: high, class: "picked" })
            .forEach(([name, to]) => bar.setAttribute(name, to));
          svg.insertBefore(bar, covers[0]);
        });
      });
    });
    document.querySelectorAll("[data-row]").forEach((row) => {
      const i = rows ? space.numbers.indexOf(Number(row.dataset.row)) : -1;
      row.classList.toggle("lit", i >= 0 && rows[i]);
    });
    document.querySelectorAll(".matrix button").forEach((cell) => {
      const [k, a] = [Number(cell.dataset.true), Number(cell.dataset.decided)];
      cell.classList.toggle("lit", rows !== null && space.codes.some((code, i) => rows[i] && code === k && space.decided && space.decided[i] === a));
    });
    document.querySelectorAll("[aria-pressed]").forEach((one) => one.removeAttribute("aria-pressed"));
    if (origin && rows) origin.setAttribute("aria-pressed", "true");
    brush.hidden = rows === null;
    if (rows) brush.querySelector("span").textContent = `${whole(count)} of the rows shown: ${text}`;
  };
  const toggle = (origin, holds, text) =>
    origin.getAttribute("aria-pressed") === "true" ? select(null) : select(holds, text, origin);
  brush.querySelector("button").addEventListener("click", () => select(null));
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hush();
    select(null);
  });
  if (space) {
    document.querySelectorAll("[data-class].pick").forEach((one) => one.addEventListener("click", () => {
      const k = Number(one.dataset.class);
      toggle(one, (i) => space.codes[i] === k, `class ${space.labels[k]}`);
    }));
    const pickable = cards.map((card, c) => [card, facts.cards[c]])
      .concat(strips.map((figure) => [figure, facts.strips[figure.dataset.strip]]));
    pickable.forEach(([card, { name, bins, names }]) => {
      if (!bins) return;
      card.querySelectorAll("[data-bin]").forEach((one) => one.addEventListener("click", () => {
        const b = Number(one.dataset.bin);
        toggle(one, (i) => bins.charCodeAt(i) - 65 === b, `${name} ${names[b]}`);
      }));
    });
  }

  // --- cells of the confusion table ---
  const wilson = (x, n) => {
    const z2 = 1.959963984540054 ** 2 / n;
    const p = x / n;
    const middle = p + z2 / 2;
    const reach = Math.sqrt(z2 * (p * (1 - p) + z2 / 4));
    return [x === 0 ? 0 : (middle - reach) / (1 + z2), x === n ? 1 : (middle + reach) / (1 + z2)];
  };
  document.querySelectorAll(".matrix button").forEach((cell) => {
    const [k, a] = [Number(cell.dataset.true), Number(cell.dataset.decided)];
    const { labels, actions, confusion } = facts.decision;
    const [x, n] = [confusion[a][k], confusion.reduce((sum, row) => sum + row[k], 0)];
    const decided = a < actions.length ? actions[a] : "rejected";
    const [low, high] = wilson(x, n);
    const lines = [
      `${labels[k]} → ${decided}`,
      `${whole(x)} of ${whole(n)} rows: ${percent(x / n)}`,
      `95% interval ${percent(low)} to ${percent(high)}`,
    ];
    cell.setAttribute("aria-label", lines.join(", "));
    cell.addEventListener("pointerenter", () => beside(cell, lines));
    cell.addEventListener("focus", () => beside(cell, lines));
    cell.addEventListener("pointerleave", hush);
    cell.addEventListener("blur", hush);
    cell.addEventListener("click", () => {
      if (!space || !space.decided) return;
      toggle(cell, (i) => space.codes[i] === k && space.decided[i] === a, `${labels[k]} decided as ${decided}`);
    });
  });

  // --- rows in discriminant space ---
  if (plot && space) {
    const svg = plot.querySelector("svg");
    let near = -1;
    const leave = () => {
      if (near >= 0) dots[near].classList.remove("near");
      near = -1;
      hush();
    };
    const describe = (i) => {
      const { labels, codes, numbers, decided, probability, shown, values } = space;
      const lines = [`Row ${numbers[i].toLocaleString("en")}: ${labels[codes[i]]}`];
      if (decided) {
        const p = probability[i] === null ? "" : `, probability ${percent(probability[i])}`;
        const label = decided[i] < labels.length ? labels[decided[i]] : "rejected";
        lines.push(`${decided[i] === codes[i] ? "Decided" : "Misclassified: decided"} ${label}${p}`);
      }
      return [...lines, ...shown.map((name, j) => `${name}: ${values[i][j]}`)];
    };
    const spot = (i) => [Number(dots[i].getAttribute("x")), Number(dots[i].getAttribute("y"))];
    const visible = (i) => dots[i].style.display !== "none";
    const show = (i, x, y) => {
      leave();
      near = i;
      dots[i].classList.add("near");
      const box = dots[i].getBoundingClientRect();
      say(describe(i), x === undefined ? box.left + box.width / 2 : x, y === undefined ? box.bottom : y);
    };
    svg.addEventListener("pointermove", (event) => {
      const [x, y] = place(svg, event);
      let best = -1;
      let least = 14 * 14;
      dots.forEach((_, i) => {
        if (!visible(i)) return;
        const [a, b] = spot(i);
        const far = (a - x) ** 2 + (b - y) ** 2;
        if (far < least) { least = far; best = i; }
      });
      if (best < 0) leave();
      else if (best !== near) show(best, event.clientX, event.clientY);
    });
    svg.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const order = dots.map((_, i) => i).filter(visible).sort((i, j) => spot(i)[0] - spot(j)[0] || i - j);
      const at = order.indexOf(near);
      show(order[at < 0 ? (step > 0 ? 0 : order.length - 1) : (at + step + order.length) % order.length]);
    });

    // --- other directions, and zoom: the plane is drawn anew ---
    if (space.axes.length > 1) {
      const [left, right, top, foot] = svg.dataset.box.split(" ").map(Number);
      const pair = by("pair");
      const part = (tag, names, text) => {
        const one = document.createElementNS(SVG, tag);
        Object.entries(names).forEach(([name, to]) => one.setAttribute(name, to));
        if (text !== undefined) one.textContent = text;
        return one;
      };
      const ticks = (low, high, most) => {
        const raw = (high - low) / most;
        const size = 10 ** Math.floor(Math.log10(raw));
        const step = [1, 2, 2.5, 5, 10].map((k) => k * size).find((k) => k >= raw * (1 - 1e-9));
        const first = Math.ceil(low / step - 1e-9);
        const places = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)) + (String(step).includes("25") && step < 10 ? 1 : 0);
        const count = Math.floor(high / step + 1e-9) - first + 1;
        return Array.from({ length: count }, (_, i) => [(first + i) * step, ((first + i) * step).toFixed(places).replace("-", "−")]);
      };
      let view = null;
      const draw = () => {
        const region = space.regions[pair ? pair.value : 0];
        const [i, j] = region.directions;
        const frame = view || region.frame;
        const x = (value) => left + ((value - frame[0]) / (frame[1] - frame[0])) * (right - left);
        const y = (value) => foot - ((value - frame[2]) / (frame[3] - frame[2])) * (foot - top);
        const inside = (a, b) => a >= left - 0.5 && a <= right + 0.5 && b >= top - 0.5 && b <= foot + 0.5;
        const clip = (value, low, high) => Math.min(Math.max(value, low), high);
        const paths = new Map();
        const [width, height] = [(region.frame[1] - region.frame[0]) / region.across, (region.frame[3] - region.frame[2]) / region.up];
        for (let row = 0; row < region.up && region.codes; row += 1) {
          let start = 0;
          for (let column = 1; column <= region.across; column += 1) {
            const at = row * region.across;
            if (column < region.across && region.codes[at + column] === region.codes[at + start]) continue;
            const [a, b] = [start, column].map((k) => clip(x(region.frame[0] + k * width), left, right));
            const [low, high] = [row, row + 1].map((k) => clip(y(region.frame[2] + k * height), top, foot));
            if (b > a && low > high) {
              const code = region.codes.charCodeAt(at + start) - 65;
              paths.set(code, `${paths.get(code) || ""}M${a} ${high}H${b}V${low}H${a}z`);
            }
            start = column;
          }
        }
        svg.querySelector(".regions").replaceChildren(...[...paths].map(([k, d]) => part("path", { d, class: `region k${k % 12}` })));
        svg.querySelector(".ticks-across").replaceChildren(...ticks(frame[0], frame[1], 6).flatMap(([value, text]) => [
          part("line", { x1: x(value), x2: x(value), y1: top, y2: foot, class: "grid" }),
          part("text", { x: x(value), y: foot + 17, "text-anchor": "middle" }, text),
        ]));
        svg.querySelector(".ticks-up").replaceChildren(...ticks(frame[2], frame[3], 5).flatMap(([value, text]) => [
          part("line", { x1: left, x2: right, y1: y(value), y2: y(value), class: "grid" }),
          part("text", { x: left - 6, y: y(value) + 4.5, "text-anchor": "end" }, text),
        ]));
        dots.forEach((dot, k) => {
          const [a, b] = [x(space.points[k][i]), y(space.points[k][j])];
          const [c, d] = [clip(a, left, right), clip(b, top, foot)];
          const [across, up] = [Math.abs(a - c), Math.abs(b - d)];
          const within = inside(a, b);
          const side = across >= up ? (a < c ? 0 : 1) : (b < d ? 2 : 3);
          const code = space.codes[k];
          dot.setAttribute("x", within ? a : c);
          dot.setAttribute("y", within ? b : d);
          dot.setAttribute("href", within ? `#s${(code + Math.floor(code / 12)) % 12}` : `#out${side}`);
          dot.style.display = within || !view ? "" : "none";
        });
        svg.querySelector(".ellipses").replaceChildren(...space.ellipses.map(({ code, centre, covariance, radius }) => {
          const [a, b, c] = [covariance[i][i], covariance[i][j], covariance[j][j]];
          const first = Math.sqrt(Math.max(a, 1e-12));
          const rest = Math.sqrt(Math.max(c - (b * b) / (first * first), 0));
          const around = Array.from({ length: 60 }, (_, k) => {
            const [u, v] = [Math.cos((k * Math.PI) / 30), Math.sin((k * Math.PI) / 30)];
            return `${x(centre[i] + radius * first * u)} ${y(centre[j] + radius * ((b / first) * u + rest * v))}`;
          });
          return part("path", { d: `M${around.join("L")}Z`, class: `ellipse k${code % 12}` });
        }));
        svg.querySelector(".names").replaceChildren(...space.labels.map((label, k) => {
          const [a, b] = [x(space.means[k][i]), y(space.means[k][j])];
          const one = part("text", { x: a, y: b, "text-anchor": "middle", class: `mean k${k % 12}` }, label.slice(0, 18));
          if (!inside(a, b)) one.style.display = "none";
          return one;
        }));
        const beyond = by("outside");
        if (beyond) beyond.textContent = region.outside || 0;
        svg.querySelector(".axis.across").textContent = space.axes[i];
        svg.querySelector(".axis.up").textContent = space.axes[j];
        leave();
      };
      const zoom = (factor, at) => {
        const frame = view || space.regions[pair ? pair.value : 0].frame;
        const centre = at || [(frame[0] + frame[1]) / 2, (frame[2] + frame[3]) / 2];
        view = factor === 0 ? null : frame.map((end, k) => centre[k >> 1] + factor * (end - centre[k >> 1]));
        draw();
      };
      document.querySelectorAll("[data-zoom]").forEach((button) =>
        button.addEventListener("click", () => zoom(Number(button.dataset.zoom))));
      svg.addEventListener("dblclick", (event) => {
        const frame = view || space.regions[pair ? pair.value : 0].frame;
        const [a, b] = place(svg, event);
        zoom(0.5, [
          frame[0] + ((a - left) / (right - left)) * (frame[1] - frame[0]),
          frame[2] + ((foot - b) / (foot - top)) * (frame[3] - frame[2]),
        ]);
      });
      if (pair) pair.addEventListener("change", () => { view = null; draw(); });
    }
  }

  // --- one row: the model runs in the page ---
  const tryRow = () => {
    const one = facts.one_row;
    const form = by("row-form");
    if (!one || !form || typeof rowModel === "undefined") return;
    const { fields, examples, classes } = one;
    const start = by("row-start");
    const inputs = fields.map((_, i) => by(`field-${i}`));
    const typical = fields.map((field) => field.typical);

    // A number as few digits: those that read back as the same number, at most six if it has more.
    const digits = (value) => {
      if (Number.isInteger(value)) return String(value);
      const single = Math.fround(value) === value;
      const most = Math.max(6, Math.floor(Math.log10(Math.abs(value))) + 2);
      for (let count = 1; count < most; count += 1) {
        const short = Number(value.toPrecision(count));
        if (short === value || (single && Math.fround(short) === value)) return String(short);
      }
      return String(Number(value.toPrecision(most)));
    };
    // The exact cell behind each field: it holds as long as the text of the field is not changed.
    let written = [];
    const write = (cells) => {
      written = inputs.map((input, i) => {
        const place = fields[i].levels.length ? fields[i].levels.indexOf(cells[i]) + 1 : cells[i];
        input.value = cells[i] === null ? "" : typeof place === "number" ? digits(place) : String(place);
        return { text: input.value, cell: cells[i] };
      });
    };
    const read = () => inputs.map((input, i) => {
      const { kind, levels } = fields[i];
      if (written[i] && input.value === written[i].text) return written[i].cell;
      const text = input.value.trim();
      if (text === "") return null;
      if (kind === "boolean") return text === "true";
      if (levels.length) return levels[Number(text) - 1];
      return Number.isNaN(Number(text)) ? text : Number(text);
    });
    const cellText = (cell) => {
      if (cell === null) return "missing";
      if (typeof cell === "boolean") return cell ? "yes" : "no";
      return typeof cell === "number" ? axisNumber(cell) : cell;
    };

    const predict = (cells) => rowModel.outputs(Object.fromEntries(fields.map((field, i) => [field.name, cells[i]])));
    const decision = (out) => (out.action === undefined ? out.label : out.action);
    const nameOf = (choice) => {
      const k = rowModel.classes.indexOf(choice);
      return k < 0 ? "rejected" : classes[k];
    };
    // Numbers that rank the classes: log probabilities, or scores.
    const measures = (out) => {
      const logs = out.log_p || (out.p && out.p.map(Math.log));  // a pool has probabilities only
      if (logs) return logs.map((value) => Math.max(value, -700));
      const scores = [out.score].flat();
      return scores.length === 1 ? [-scores[0] / 2, scores[0] / 2] : scores;
    };

    // Shapley values of the columns: all sets of columns if they are few, else orders in pairs.
    const contributions = (cells, value) => {
      const d = cells.length;
      const mixed = (inside) => value(cells.map((cell, i) => (inside(i) ? cell : typical[i])));
      const parts = new Array(d).fill(0);
      if (d <= 7) {
        const values = Array.from({ length: 2 ** d }, (_, set) => mixed((i) => (set >> i) & 1));
        const weight = [];
        for (let size = 0, choose = 1; size < d; size += 1) {
          weight.push(1 / (d * choose));
          choose = (choose * (d - 1 - size)) / (size + 1);
        }
        values.forEach((_, set) => {
          const size = [...Array(d).keys()].filter((i) => (set >> i) & 1).length;
          for (let i = 0; i < d; i += 1) {
            if (!((set >> i) & 1)) parts[i] += weight[size] * (values[set | (1 << i)] - values[set]);
          }
        });
        return parts;
      }
      let seed = 1;
      const random = () => { seed = (seed * 48271) % 2147483647; return seed / 2147483647; };
      const pairs = Math.max(1, Math.min(10, Math.floor(300 / d)));
      for (let pair = 0; pair < pairs; pair += 1) {
        const order = [...Array(d).keys()];
        for (let i = d - 1; i > 0; i -= 1) {
          const j = Math.floor(random() * (i + 1));
          [order[i], order[j]] = [order[j], order[i]];
        }
        [order, [...order].reverse()].forEach((columns) => {
          const inside = new Set();
          let before = mixed(() => false);
          columns.forEach((i) => {
            inside.add(i);
            const after = mixed((k) => inside.has(k));
            parts[i] += (after - before) / (2 * pairs);
            before = after;
          });
        });
      }
      return parts;
    };

    // The smallest change of each column, within the range of the rows, that changes the decision.
    const flips = (cells, before) => {
      const after = (i, cell) => {
        const out = decision(predict(cells.map((old, k) => (k === i ? cell : old))));
        return out === before ? null : nameOf(out);
      };
      const outward = (i, from, to) => {  // a short number beyond `to`, seen from `from`
        for (let digits = fields[i].whole ? 0 : 3; digits < 16; digits += 1) {
          const size = fields[i].whole ? 1 : 10 ** (Math.floor(Math.log10(Math.abs(to) || 1)) + 1 - digits);
          const value = Number(((to > from ? Math.ceil(to / size) : Math.floor(to / size)) * size).toPrecision(12));
          if (value >= fields[i].low && value <= fields[i].high && after(i, value)) return value;
          if (fields[i].whole) return null;
        }
        return to;
      };
      const found = [];
      fields.forEach((field, i) => {
        const cell = cells[i];
        if (!field.suggested) return;
        if (field.levels.length || field.kind === "boolean") {
          (field.levels.length ? field.levels : [true, false]).filter((level) => level !== cell).forEach((level) => {
            const to = after(i, level);
            if (to) found.push({ i, level, to, size: 1 });
          });
          return;
        }
        if (typeof cell !== "number" || !field.sd || field.low === null) return;
        [field.low, field.high].forEach((end) => {
          let near = cell;
          for (let step = 1; step <= 24; step += 1) {
            let far = cell + ((end - cell) * step) / 24;
            if (far === cell) return;
            if (!after(i, far)) { near = far; continue; }
            for (let cut = 0; cut < 30; cut += 1) {
              const middle = (near + far) / 2;
              if (after(i, middle)) far = middle; else near = middle;
            }
            const level = outward(i, cell, far);
            if (level !== null) found.push({ i, level, to: after(i, level), size: Math.abs(level - cell) / field.sd });
            return;
          }
        });
      });
      return found.sort((a, b) => a.size - b.size);
    };
    const flipText = ({ i, level, to, size }, cells) => {
      const value = (cell) => {
        if (typeof cell !== "number") return cellText(cell);
        return Number.isInteger(cell) ? axisNumber(cell) : digits(cell).replace("-", "−");
      };
      const sd = typeof level === "number" ? ` (${number(size, 2)} standard deviations)` : "";
      return `${fields[i].title} from ${value(cells[i])} to ${typeof level === "number" && digits(level) !== String(level) ? level : value(level)}${sd} gives ${to}`;
    };
    const unchanged = fields.filter((field) => !field.suggested).map((field) => field.title);
    const except = unchanged.length
      ? ` No change of ${unchanged.slice(0, 3).join(", ")}${unchanged.length > 3 ? " and others" : ""} is suggested: see the data checks at the top.` : "";

    const cellsOf = (texts) => texts.map((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (i) cell.className = "n"; else cell.scope = "row";
      cell.textContent = text;
      return cell;
    });
    const bar = (from, to, kind) => {
      const td = document.createElement("td");
      const svg = document.createElementNS(SVG, "svg");
      const rect = document.createElementNS(SVG, "rect");
      Object.entries({ class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" })
        .forEach(([name, text]) => svg.setAttribute(name, text));
      Object.entries({ class: kind, x: 100 * from, width: Math.max(100 * (to - from), 0), height: 8 })
        .forEach(([name, text]) => rect.setAttribute(name, text));
      td.className = "drawn";
      svg.append(rect);
      td.append(svg);
      return td;
    };
    const row = (texts, drawn) => {
      const tr = document.createElement("tr");
      tr.append(...cellsOf(texts), drawn);
      return tr;
    };
    const signed = (value, top) => {
      if (value !== 0 && Math.abs(value) < Math.min(0.0005, top / 100)) return "about 0";
      return `${value < 0 ? "−" : "+"}${number(Math.abs(value), 2)}`;
    };

    const explain = (cells, out) => {
      const ranked = measures(out);
      const order = ranked.map((_, k) => k).sort((a, b) => ranked[b] - ranked[a]);
      const [a, b] = order;
      const lead = (values) => { const m = measures(predict(values)); return m[a] - m[b]; };
      const parts = contributions(cells, lead);
      const total = parts.reduce((sum, part) => sum + part, 0);
      const kind = out.p || out.log_p ? "Log odds" : "Difference of the scores";
      by("row-evidence").textContent = `${kind} of ${classes[a]} against ${classes[b]}: ${number(ranked[a] - ranked[b])} for this row, ${number(ranked[a] - ranked[b] - total)} for a typical row. The contributions add up to the difference.`;
      const top = Math.max(...parts.map(Math.abs), 1e-12);
      const listed = parts.map((_, i) => i).sort((i, j) => Math.abs(parts[j]) - Math.abs(parts[i]));
      const most = 12;
      const lines = listed.slice(0, most).map((i) => {
        const middle = 0.5 + (0.5 * parts[i]) / top;
        const drawn = bar(Math.min(middle, 0.5), Math.max(middle, 0.5), `k${(parts[i] < 0 ? b : a) % 12}`);
        return row([fields[i].title, cellText(cells[i]), cellText(typical[i]), parts[i] ? signed(parts[i], top) : "0"], drawn);
      });
      const rest = listed.slice(most).reduce((sum, i) => sum + parts[i], 0);
      if (listed.length > most) lines.push(row([listed.length - most === 1 ? "1 other column" : `${listed.length - most} other columns`, "", "", rest ? signed(rest, top) : "0"], bar(0, 0, "")));
      by("row-parts").tBodies[0].replaceChildren(...lines);
      const changes = flips(cells, decision(out));
      by("row-flip").textContent = changes.length
        ? `Smallest changes of a single column that change the decision: ${changes.slice(0, 3).map((one) => flipText(one, cells)).join("; ")}.${except}`
        : `No change of a single ${unchanged.length ? "other column" : "column"} within the range of the rows changes the decision.${except}`;
    };

    let waiting = 0;
    const update = () => {
      clearTimeout(waiting);
      const cells = read();
      inputs.forEach((input, i) => {
        const field = fields[i];
        const beyond = typeof cells[i] === "number" && field.low !== null && (cells[i] < field.low || cells[i] > field.high);
        input.classList.toggle("beyond", beyond);
      });
      let out;
      try {
        out = predict(cells);
      } catch (error) {
        by("row-answer").textContent = error.message;
        by("row-flip").textContent = by("row-evidence").textContent = "";
        by("row-classes").tBodies[0].replaceChildren();
        by("row-parts").tBodies[0].replaceChildren();
        return;
      }
      const ranked = measures(out);
      const order = ranked.map((_, k) => k).sort((a, b) => ranked[b] - ranked[a]);
      const shares = out.p || null;
      const choice = nameOf(decision(out));
      const k = classes.indexOf(choice);
      const outside = inputs.filter((input) => input.classList.contains("beyond")).length;
      by("row-answer").replaceChildren(
        `Predicted: `, line("b", choice), shares && k >= 0 ? `, with probability ${percent(shares[k])}.` : ".",
        outside ? ` ${outside === 1 ? "One value is" : `${outside} values are`} outside the range of the rows: the prediction is an extrapolation.` : "",
      );
      by("row-measure").textContent = shares ? "Probability" : "Score";
      const least = Math.min(...ranked);
      const width = Math.max(ranked[order[0]] - least, 1e-12);
      by("row-classes").tBodies[0].replaceChildren(...order.slice(0, 12).map((c) =>
        row([classes[c], shares ? percent(shares[c]) : number(ranked[c])], bar(0, shares ? shares[c] : (ranked[c] - least) / width, `k${c % 12}`))));
      waiting = setTimeout(() => explain(cells, out), 60);
    };
    const begin = (i) => {
      start.value = String(i);
      write(i < 0 ? typical : examples[i].cells);
      update();
    };
    start.addEventListener("change", () => begin(Number(start.value)));
    form.addEventListener("input", (event) => { if (event.target !== start) update(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    document.querySelectorAll("tr[data-row] > th").forEach((head) => {
      const i = examples.findIndex((example) => example.row === Number(head.parentElement.dataset.row));
      if (i < 0) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "to-form";
      button.title = "Try this row in the form";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        begin(i);
        by("one_row").scrollIntoView();
        start.focus({ preventScroll: true });
      });
    });
    form.hidden = false;
    begin(examples.length ? 0 : -1);
  };
  tryRow();

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
    by("passed-rows").textContent = whole(passed);
    const price = (rows) => rows.reduce((sum, row, a) => sum + row.reduce((part, n, k) => part + n * (a === A ? (aside.value === NEVER ? 0 : aside.value) : cost[a][k]), 0), 0);
    by("paid-before").textContent = number((100 * price(decision.confusion)) / total);
    const single = cost.map((row) => row.reduce((sum, value, k) => sum + value * sums[k], 0));
    by("paid-guess").textContent = number(100 * Math.min(...single.map((value) => value / total), aside.value));
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
