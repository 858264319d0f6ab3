/** Small line charts as SVG. */

import { s } from "./elements.js";
import { ticks } from "./space.js";

const WIDTH = 320, HEIGHT = 250, LEFT = 56, RIGHT = 18, TOP = 10, BOTTOM = 40;

/**
 * A chart with lines and dots. `x` and `y` are { low, high, title, format }; `lines` are
 * { points, class }; `dots` are { at, r, class, title, onclick }.
 */
export function chart({ label, x, y, lines = [], dots = [] }) {
  const px = (value) => LEFT + ((value - x.low) / (x.high - x.low || 1)) * (WIDTH - LEFT - RIGHT);
  const py = (value) => TOP + (1 - (value - y.low) / (y.high - y.low || 1)) * (HEIGHT - TOP - BOTTOM);
  const bottom = HEIGHT - BOTTOM;
  const grid = [];
  for (const value of ticks(x.low, x.high, 5)) {
    grid.push(s("line", { class: "grid", x1: px(value), x2: px(value), y1: TOP, y2: bottom }),
      s("text", { x: px(value), y: bottom + 15, "text-anchor": "middle" }, x.format(value)));
  }
  for (const value of ticks(y.low, y.high, 5)) {
    grid.push(s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(value), y2: py(value) }),
      s("text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, y.format(value)));
  }
  const fixed = (value) => Number(value.toFixed(2));
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    grid,
    s("text", { class: "title", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, x.title),
    s("text", { class: "title", x: 11, y: (TOP + bottom) / 2, "text-anchor": "middle",
      transform: `rotate(-90 11 ${(TOP + bottom) / 2})` }, y.title),
    lines.map((line) => s("path", { class: line.class, fill: "none",
      d: pathOf(line.points.map(([a, b]) => [px(a), py(b)])) })),
    dots.map((dot) => s("circle", { class: dot.class, cx: fixed(px(dot.at[0])), cy: fixed(py(dot.at[1])), r: dot.r ?? 4,
      onclick: dot.onclick }, dot.title ? s("title", {}, dot.title) : null)));
}

/** The path through points; points closer than half a pixel to the last one are left out. */
function pathOf(points) {
  const parts = [];
  let [lastX, lastY] = [NaN, NaN];
  points.forEach(([x, y], i) => {
    if (i > 0 && i < points.length - 1 && Math.abs(x - lastX) < 0.5 && Math.abs(y - lastY) < 0.5) return;
    parts.push(`${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`);
    [lastX, lastY] = [x, y];
  });
  return parts.join("");
}

/** Ends of an axis of shares. */
export const unit = { low: 0, high: 1 };
