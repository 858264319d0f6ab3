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

const COLOURS = 8;
export const colourOf = (k) => k % COLOURS;
export const shapeOf = (k) => (k + Math.floor(k / COLOURS)) % COLOURS;

/** Trace the shape of class k around a point. */
export function traceShape(path, k, x, y, r) {
  const polygon = (corners) => {
    corners.forEach(([dx, dy], i) => path[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
    path.closePath();
  };
  switch (shapeOf(k)) {
    case 0: path.moveTo(x + r, y); path.arc(x, y, r, 0, 2 * Math.PI); break;
    case 1: polygon([[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]); break;
    case 2: polygon([[0, -1.2], [1.1, 0.8], [-1.1, 0.8]]); break;
    case 3: polygon([[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]]); break;
    case 4: polygon([[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2],
      [-0.4, 1.2], [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]]); break;
    case 5: polygon([[0, 1.2], [1.1, -0.8], [-1.1, -0.8]]); break;
    case 6: polygon([[0, -1.2], [1.15, -0.35], [0.7, 1], [-0.7, 1], [-1.15, -0.35]]); break;
    default: polygon([[0, -1.3], [0.35, -0.4], [1.25, -0.4], [0.55, 0.2], [0.8, 1.1], [0, 0.6], [-0.8, 1.1],
      [-0.55, 0.2], [-1.25, -0.4], [-0.35, -0.4]]);
  }
}

/** The shape of class k as a small picture. */
export function mark(k, size = 14) {
  const path = [];
  const pen = {
    moveTo: (x, y) => path.push(`M${x},${y}`), lineTo: (x, y) => path.push(`L${x},${y}`),
    closePath: () => path.push("Z"),
    arc: (x, y, r) => path.push(`A${r},${r} 0 1 1 ${x - r},${y}A${r},${r} 0 1 1 ${x + r},${y}`),
  };
  traceShape(pen, k, 7, 7, 5);
  return s("svg", { class: `mark k${colourOf(k)}`, viewBox: "0 0 14 14", width: size, height: size, "aria-hidden": "true" },
    s("path", { d: path.join("") }));
}

/** Text of an element that screen readers announce. */
export function announce(text) {
  const live = byId("live");
  if (live.textContent !== text) live.textContent = text;
}
