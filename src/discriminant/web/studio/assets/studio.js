/** The studio: opens tables, and keeps its panels and its URL up to date. */

import { announce, byId, count } from "./elements.js";
import { Cohorts } from "./panels/cohorts.js";
import { Columns } from "./panels/columns.js";
import { Decide } from "./panels/decide.js";
import { Dials } from "./panels/dials.js";
import { Export } from "./panels/export.js";
import { Session } from "./model.js";
import { Space } from "./space.js";
import { Start } from "./start.js";
import { WhatIf } from "./panels/what_if.js";
import { decodeState, encodeState, validChoice } from "./state.js";
import { get, getArrays, post, readToken } from "./server.js";

const TABS = ["decide", "what-if", "cohorts", "columns", "export"];
let studio = null; // the open table and its panels
let tab = "decide";
let written = "";
let writing = null; // the timer that writes the URL

const start = new Start({ open: openTable });

async function openTable(source, target, plan = {}) {
  const facts = await post("/api/open", { source, target, ...plan });
  const name = source.example ? { example: source.example } : source.given ? { given: "1" } : { table: String(facts.id) };
  await show(facts, { ...name, target }, source);
}

async function show(facts, urlSource, source, wanted = null) {
  const arrays = await getArrays(`/api/tables/${facts.id}/data`);
  studio?.session.close();
  studio?.space.close();
  const session = new Session(facts, arrays);
  if (wanted) session.begin(validChoice(wanted.choice, session));
  start.hide();
  const panels = {};
  const select = (points) => {
    session.selection = new Set(points);
    announce(points.length ? `${count(points.length, "point")} selected.` : "Nothing selected.");
    session.changed();
  };
  const explain = (point, focus = false) => {
    panels["what-if"].open(point);
    if (tab !== "what-if" && (focus || matchMedia("(min-width: 60rem)").matches)) openTab("what-if", focus);
  };
  session.update();
  panels.decide = new Decide(session, { select });
  panels["what-if"] = new WhatIf(session);
  panels.cohorts = new Cohorts(session, { select });
  panels.columns = new Columns(session, { reopen: (options) => start.openAtOnce(source, facts.target, options) });
  panels.export = new Export(session);
  const space = new Space(session, { explain, select });
  const dials = new Dials(session);
  studio = { session, space, dials, panels, urlSource };
  if (wanted?.axes?.length === 2) {
    const names = session.axisNames().map(({ id }) => id);
    if (wanted.axes.every((id) => names.includes(id))) {
      space.ids = wanted.axes;
      space.aim();
    }
  }
  session.onChange(refresh);
  byId("table-title").textContent = `${facts.name} · ${facts.target} · ${count(facts.rows, "row")}`;
  document.title = `${facts.name} – discriminant studio`;
  openTab(TABS.includes(wanted?.tab) ? wanted.tab : "decide");
  performance.mark("studio-open");
  session.changed();
}

/** Draw what has changed; called at most once a frame. */
function refresh() {
  const { session, space, dials, panels } = studio;
  space.draw();
  dials.update();
  for (const [name, panel] of Object.entries(panels)) panel.update(name === tab);
  warn(session);
  clearTimeout(writing);
  writing = setTimeout(writeUrl, 120);
}

function warn(session) {
  const texts = {
    collinear: (w) => `Features are linearly dependent: ${w.columns.slice(0, 4).join(", ")}.`,
    constant_column: (w) => `Constant: ${w.columns.slice(0, 4).join(", ")}.`,
    scarce_rows: (w) => `Few rows for the covariance${w.label === undefined ? "" : ` of ${w.label}`}: try shrinkage.`,
    shrinkage_chosen: (w) => `A covariance is singular, so it is shrunk${w.label === undefined ? "" : ` (${w.label})`}.`,
    separating_column: (w) => `${w.columns.slice(0, 4).join(", ")} determine the class: is it a leak?`,
    constant_in_class: (w) => `Constant within ${w.label}: ${w.columns.slice(0, 4).join(", ")}.`,
    separation: () => "The classes are separated, so that the coefficients have no finite optimum: raise the penalty.",
    not_converged: () => "The fit did not converge: raise the penalty.",
  };
  const lines = [...new Set((session.warnings ?? []).map((each) => texts[each.kind]?.(each)).filter(Boolean))];
  if (session.problem) lines.unshift(session.problem);
  byId("warnings").textContent = lines.slice(0, 3).join(" ");
}

function writeUrl() {
  const { session, space, urlSource } = studio, standard = space.defaultAxes().join();
  const fragment = encodeState({ source: urlSource, choice: session.choice, tab, axes: space.ids.join() === standard ? null : space.ids });
  if (fragment === written) return;
  written = fragment;
  history.replaceState(null, "", fragment);
}

function openTab(name, focus = false) {
  tab = name;
  for (const id of TABS) {
    const button = byId(`tab-${id}`), chosen = id === name;
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    byId(id).hidden = !chosen;
  }
  if (focus) byId(`tab-${name}`).focus();
  studio?.session.changed();
}

function listen() {
  TABS.forEach((id, i) => {
    const button = byId(`tab-${id}`);
    button.addEventListener("click", () => openTab(id));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) openTab(TABS[(i + step + TABS.length) % TABS.length], true);
    });
  });
  const wide = matchMedia("(min-width: 60rem)"), box = byId("dials-box");
  box.open = wide.matches;
  wide.addEventListener("change", () => { box.open = wide.matches; });
  byId("home").addEventListener("click", () => {
    start.show();
    history.replaceState(null, "", "#");
    written = "";
  });
  byId("chosen-forget").addEventListener("click", () => studio.space.forget());
  byId("chosen-clear").addEventListener("click", () => {
    studio.session.selection.clear();
    studio.session.changed();
  });
  byId("chosen-class").addEventListener("change", (event) => {
    if (event.target.value) studio.space.setClass(Number(event.target.value));
    event.target.value = "";
  });
  addEventListener("keydown", (event) => {
    if (!studio || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (/^(INPUT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
    event.preventDefault();
    studio.session[event.shiftKey ? "redo" : "undo"]();
  });
  const root = document.documentElement, dark = () =>
    (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    byId("theme").textContent = dark() ? "Light" : "Dark";
    studio?.space.recolour();
  });
  byId("theme").textContent = dark() ? "Light" : "Dark";
}

async function begin() {
  const hasToken = readToken();
  listen();
  if (!hasToken) {
    start.note("This page has no token. Open the address that discriminant studio has printed.");
    return;
  }
  const wanted = decodeState(location.hash);
  try {
    const { examples, given } = await start.load();
    const { source } = wanted, example = examples.find(({ name }) => name === source.example);
    if (source.table) {
      const facts = await get(`/api/tables/${Number(source.table)}`);
      await show(facts, source, null, wanted);
    } else if (example) {
      const facts = await post("/api/open", { source: { example: example.name }, target: example.target });
      await show(facts, source, { example: example.name }, wanted);
    } else if (given && source.given && source.target) {
      const facts = await post("/api/open", { source: { given: true }, target: source.target });
      await show(facts, source, { given: true }, wanted);
    } else if (given) await start.preview({ given: true });
  } catch (error) {
    start.show();
    start.note(error.message);
  }
}

begin();
