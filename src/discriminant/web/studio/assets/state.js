/** The state of the page in its URL: the table, the model, the axes and the open tab. */

import { DEFAULTS, MODELS } from "./model.js";

const list = (values) => values.map((value) => Number(value.toPrecision(6))).join(",");

/** The fragment of the URL for a state. */
export function encodeState({ source, choice, axes, tab }) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(source)) if (value) parts.set(name, value);
  for (const name of ["model", "degree", "pooling", "shrinkage", "ridge", "reject"]) {
    if (choice[name] !== DEFAULTS[name]) parts.set(name, String(choice[name]));
  }
  if (choice.prior) parts.set("prior", list(choice.prior));
  if (choice.cost) parts.set("cost", choice.cost.map(list).join(";"));
  choice.off.forEach((column) => parts.append("off", column));
  if (axes) parts.set("axes", axes.join(","));
  if (tab && tab !== "decide") parts.set("tab", tab);
  return `#${parts}`;
}

const numbers = (text) => text.split(",").map(Number);
const unit = (text) => { const value = Number(text); return value >= 0 && value <= 1 ? value : undefined; };

/** The state in a fragment; what is not valid there is left out. */
export function decodeState(fragment) {
  const parts = new URLSearchParams(fragment.slice(1)), choice = {};
  const source = {};
  for (const name of ["example", "given", "table", "target"]) if (parts.get(name)) source[name] = parts.get(name);
  if (Object.hasOwn(MODELS, parts.get("model"))) choice.model = parts.get("model");
  if (parts.get("degree") === "2") choice.degree = 2;
  for (const name of ["pooling", "shrinkage"]) if (parts.has(name)) choice[name] = unit(parts.get(name)) ?? DEFAULTS[name];
  for (const name of ["ridge", "reject"]) if (Number(parts.get(name)) >= 0 && parts.get(name)) choice[name] = Number(parts.get(name));
  if (parts.get("prior")) choice.prior = numbers(parts.get("prior"));
  if (parts.get("cost")) choice.cost = parts.get("cost").split(";").map(numbers);
  if (parts.has("off")) choice.off = parts.getAll("off");
  return { source, choice, axes: parts.get("axes")?.split(",") ?? null, tab: parts.get("tab") };
}

/** The parts of a choice that fit the classes and columns of a table. */
export function validChoice(choice, session) {
  const { K } = session, positive = (values) => values?.length === K && values.every((value) => value > 0);
  const valid = { ...choice };
  if (valid.prior) {
    const total = valid.prior.reduce((a, b) => a + b, 0);
    valid.prior = positive(valid.prior) && total > 0 ? valid.prior.map((value) => value / total) : null;
  }
  if (valid.cost && !(valid.cost.length === K && valid.cost.every((row) => row.length === K && row.every((value) => value >= 0)))) {
    valid.cost = null;
  }
  if (valid.off) {
    valid.off = valid.off.filter((name) => session.columns.some((column) => column.name === name));
    if (valid.off.length >= session.columns.length) valid.off = [];
  }
  return valid;
}
