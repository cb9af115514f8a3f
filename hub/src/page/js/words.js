// Words, icons, numbers and times: how a state looks and how long ago something was.

import { h, svg } from "./dom.js";

/** Cluster states in the order in which they need somebody. */
export const STATES = ["Failed", "Stalled", "Unreachable", "Blocked", "Upgrading", "Verifying", "Preflight", "Ready", "Pending", "Skipped", "Succeeded"];

// States in the order in which they fill a bar: done first, then what moves, then what stands.
const BAR = ["Succeeded", "Verifying", "Upgrading", "Preflight", "Ready", "Pending", "Skipped", "Blocked", "Unreachable", "Stalled", "Failed"];

// Drawn on 16 x 16.
const ICONS = {
  Succeeded: "M3.5 8.5 6.5 11.5 12.5 5",
  Failed: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  Stalled: "M5 3H11M5 13H11M5.5 3C5.5 6.5 8 7 8 8S5.5 9.5 5.5 13M10.5 3C10.5 6.5 8 7 8 8S10.5 9.5 10.5 13",
  Unreachable: "M3 3 13 13M4.5 8A5 5 0 0 1 6 6.4M11.7 8.2A5 5 0 0 0 8.8 5.6M2.2 5.4A8 8 0 0 1 3.8 4.2M13.8 5.4A8 8 0 0 0 7.2 3M8 12V12.1",
  Blocked: "M8 2.8 13.6 12.8H2.4ZM8 6.6V9.2M8 11V11.1",
  Upgrading: "M8 13V4M4.5 7.5 8 4 11.5 7.5",
  Verifying: "M7 11.5A4.5 4.5 0 1 1 7 2.5 4.5 4.5 0 0 1 7 11.5M10.2 10.2 13.5 13.5",
  Preflight: "M8 2.5 13 4.5V8C13 11 10.8 12.8 8 13.8 5.2 12.8 3 11 3 8V4.5Z",
  Ready: "M5.5 3.8V12.2L12 8Z",
  Pending: "M8 2.5A5.5 5.5 0 1 1 8 13.5 5.5 5.5 0 0 1 8 2.5M8 5.2V8L10 9.4",
  Skipped: "M3.5 4 8 8 3.5 12M8.5 4 13 8 8.5 12",
  Done: "M3.5 8.5 6.5 11.5 12.5 5",
  Running: "M8 13V4M4.5 7.5 8 4 11.5 7.5",
  Complete: "M3.5 8.5 6.5 11.5 12.5 5",
  Paused: "M5.5 4V12M10.5 4V12",
  Connected: "M3.5 8.5 6.5 11.5 12.5 5",
  Silent: "M3 3 13 13M4.5 8A5 5 0 0 1 6 6.4M11.7 8.2A5 5 0 0 0 8.8 5.6M8 12V12.1",
  Pass: "M3.5 8.5 6.5 11.5 12.5 5",
  Warn: "M8 2.8 13.6 12.8H2.4ZM8 6.6V9.2M8 11V11.1",
  Fail: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  Unknown: "M5.6 6A2.4 2.4 0 1 1 8 8.4V9.6M8 12V12.1",
  Info: "M8 7.2V12M8 4.2V4.3",
  Warning: "M8 2.8 13.6 12.8H2.4ZM8 6.6V9.2M8 11V11.1",
  Error: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  Critical: "M8 3V9M8 12V12.2",
};

// Which of the shapes and colours above a word without its own takes.
const LOOKS = {
  Planning: "Pending", Previewed: "Ready", Preflighting: "Preflight", Preflighted: "Ready", AwaitingConsent: "Blocked",
  Running: "Upgrading", Frozen: "Paused", Halting: "Stalled", SucceededWithFailures: "Warn", Cancelled: "Skipped",
};

const SPELLED = {
  AwaitingConsent: "Awaiting consent", SucceededWithFailures: "Succeeded with failures", Preflighted: "Ready to launch",
  UpdateSpeed: "Update speed", UpdateStalled: "Update stalled", ApiAvailability: "API availability",
  ApplicationAvailability: "Application availability", StopOnBreach: "Stop on breach",
};

/** A word of the API as people write it. */
export const spell = (word) => SPELLED[word] ?? word;

/** A small drawing for a word; it says nothing that the word beside it does not. */
export function icon(word) {
  const shape = ICONS[word] ?? ICONS[LOOKS[word]] ?? ICONS.Pending;
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" }, svg("path", { d: shape }));
}

/** The class that gives a word its colour. */
export const tone = (word) => `s-${LOOKS[word] ?? word}`;

/** Icon and word. */
export function pill(word) {
  return h("span", { class: `pill ${tone(word)}` }, icon(word), spell(word));
}

/** A bar of states: each as wide as its share, in a fixed order. */
export function bar(states, total, label) {
  const count = new Map(states.map(({ state, clusters }) => [state, clusters]));
  let at = 0;
  const parts = BAR.filter((state) => count.get(state)).map((state) => {
    const width = (100 * count.get(state)) / Math.max(total, 1);
    const part = svg("rect", { class: tone(state), x: `${at}%`, y: "0", width: `${width}%`, height: "100%" });
    at += width;
    return part;
  });
  return svg("svg", { class: "bar", role: "img", "aria-label": label, width: "100%", height: "10" }, parts);
}

/** A bar of one share. */
export function meter(percent, word, label) {
  return svg("svg", { class: "meter", role: "img", "aria-label": label, width: "100%", height: "6" },
    svg("rect", { class: tone(word), x: "0", y: "0", width: `${percent}%`, height: "100%" }));
}

/** `1 cluster`, `2 clusters`. */
export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** With thousands separated. */
export const number = (n) => new Intl.NumberFormat("en").format(n);

/** `13 Succeeded, 2 Failed`, most urgent first. */
export const listStates = (states) =>
  STATES.map((state) => states.find((entry) => entry.state === state)).filter(Boolean)
    .map(({ state, clusters }) => `${number(clusters)} ${state}`).join(", ");

// === time ===

let base = { hub: Date.now(), here: performance.now(), factor: 1 };

/** Sets the hub's clock: ages are counted on it, not on the reader's. */
export function setClock(time, factor = base.factor) {
  base = { hub: Date.parse(time), here: performance.now(), factor };
}

const hubNow = () => base.hub + (performance.now() - base.here) * base.factor;

/** `42s`, `7m`, `1h 12m`, `2d 4h`. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours}h ${minutes % 60}m` : `${hours}h`;
  const days = Math.floor(hours / 24);
  return hours % 24 ? `${days}d ${hours % 24}h` : `${days}d`;
}

/** `2026-03-14 01:42 UTC`, and the reader's own time where that is another. */
export function moment(time) {
  const date = new Date(time);
  const utc = `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  if (date.getTimezoneOffset() === 0) return utc;
  const local = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return `${utc} (${local} here)`;
}

/** A sentence with its times as people write them: `03:04 UTC`, with the date on another day. */
export function plain(text) {
  const today = new Date(hubNow()).toISOString().slice(0, 10);
  return text.replace(/(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}(?:\.\d+)?Z/g, (_, date, clock) => (date === today ? `${clock} UTC` : `${date} ${clock} UTC`));
}

/** How long ago, going on by itself. */
export function since(time) {
  if (!time) return h("span", { class: "muted" }, "–");
  return h("time", { datetime: time, title: moment(time), "data-age": time }, span(hubNow() - Date.parse(time)));
}

/** A moment, written out. */
export const at = (time) => h("time", { datetime: time }, moment(time));

/** From one moment to another, or to now. */
export function lasted(from, to) {
  if (!from) return "–";
  return to ? span(Date.parse(to) - Date.parse(from)) : since(from);
}

/** Lets all ages go on. */
export function tick() {
  for (const element of document.querySelectorAll("time[data-age]")) {
    const text = span(hubNow() - Date.parse(element.dataset.age));
    if (element.textContent !== text) element.textContent = text;
  }
}
