/** Elements of the page, and numbers as text. Names of the data go to the page as text only. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name in element && !(element instanceof SVGElement) && typeof value !== "string") {
      element[name] = value;
    } else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element; attributes that begin with "on" are listeners. */
export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export const byId = (id) => document.getElementById(id);

// --- numbers ---

export function percent(value, digits = 1) {
  if (value === null || !Number.isFinite(value)) return "–";
  const scaled = 100 * value;
  if (scaled === 0 || scaled === 100) return `${scaled}%`;
  if (Number(scaled.toFixed(digits)) === 100) return `> ${(100 - 10 ** -digits).toFixed(digits)}%`;
  if (Number(scaled.toFixed(digits)) === 0) return `< ${(10 ** -digits).toFixed(digits)}%`;
  return `${scaled.toFixed(digits)}%`;
}

const formats = new Map(); // by decimal places: to create one takes far longer than to use it

function decimal(value, places) {
  if (!formats.has(places)) formats.set(places, new Intl.NumberFormat("en", { maximumFractionDigits: places }));
  return formats.get(places).format(value);
}

export function number(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(value)));
  if (size < -4 || size > 8) return value.toPrecision(digits);
  const places = Math.max(digits - 1 - size, 0);
  return decimal(value, places).replace("-", "−");
}

export const whole = (value) => decimal(value, 0);

export const count = (n, noun, plural = `${noun}s`) => `${whole(n)} ${n === 1 ? noun : plural}`;

/** Round to as many significant digits as a slider shows. */
export const rounded = (value, digits = 3) => Number(value.toPrecision(digits));

// --- classes: a colour and a shape each ---

const COLOURS = 12;
export const colourOf = (k) => k % COLOURS;
export const shapeOf = (k) => (k + Math.floor(k / COLOURS)) % COLOURS;

/** Shapes around (0, 0), as in the report. */
const SHAPES = [
  "M3.4 0A3.4 3.4 0 1 1-3.4 0A3.4 3.4 0 1 1 3.4 0Z",
  "M-3-3H3V3H-3Z",
  "M0-4L3.8 2.7H-3.8Z",
  "M0-4.4L4.4 0 0 4.4-4.4 0Z",
  "M-1.2-4H1.2V-1.2H4V1.2H1.2V4H-1.2V1.2H-4V-1.2H-1.2Z",
  "M0 4L3.8-2.7H-3.8Z",
  "M-3.7-2L-2-3.7 0-1.7 2-3.7 3.7-2 1.7 0 3.7 2 2 3.7 0 1.7-2 3.7-3.7 2-1.7 0Z",
  "M0-4.2L4-1.3 2.5 3.4H-2.5L-4-1.3Z",
  "M4 0L-2.7 3.8V-3.8Z",
  "M0-4.8L1.3-1.6 4.6-1.5 2 .6 2.9 3.8 0 2-2.9 3.8-2 .6-4.6-1.5-1.3-1.6Z",
  "M-4 0L2.7 3.8V-3.8Z",
  "M-1.6-4.4H1.6V4.4H-1.6Z",
];
const SIZE = 3.7; // radius of the shapes
const paths = SHAPES.map((shape) => new Path2D(shape));

/** The outline of the shape of class k around a point. */
export function shapeAt(k, x, y, r) {
  const path = new Path2D();
  path.addPath(paths[shapeOf(k)], new DOMMatrix([r / SIZE, 0, 0, r / SIZE, x, y]));
  return path;
}

/** The shape of class k as a small picture. */
export function mark(k, size = 14) {
  return s("svg", { class: `mark k${colourOf(k)}`, viewBox: "-5 -5 10 10", width: size, height: size, "aria-hidden": "true" },
    s("path", { d: SHAPES[shapeOf(k)] }));
}

/** Text of an element that screen readers announce. */
export function announce(text) {
  const live = byId("live");
  if (live.textContent !== text) live.textContent = text;
}
