// One cluster of a campaign.

import { get } from "./api.js";
import { insights } from "./campaign.js";
import { h } from "./dom.js";
import { apiPath, eventsPath } from "./route.js";
import { at, lasted, meter, number, pill, plain, since } from "./words.js";

const path = (route) => `${apiPath(route)}/clusters/${encodeURIComponent(route.cluster)}`;

// What the agent answered when it was last asked, for one cluster at a time.
let asked = null;

/** Asks the agent itself; `redraw` is called when there is an answer. */
export async function ask(route, redraw) {
  const mine = { of: path(route), text: "Asking the cluster…" };
  asked = mine;
  redraw();
  try {
    mine.text = JSON.stringify((await get(`${path(route)}/live`)).object, null, 2);
  } catch (problem) {
    mine.text = `${problem.detail} ${problem.action}`;
  }
  redraw();
}

export const cluster = {
  events: eventsPath,

  async load(route, signal) {
    const detail = await get(path(route), signal);
    return { time: detail.time, cluster: detail.cluster };
  },

  title: (route) => route.cluster,

  summary: (route, data) => `${route.cluster}: ${data.cluster.state}, ${data.cluster.message}`,

  // Other clusters' changes are not this one's.
  concerns: (route, change) => change.changed > change.items.length || change.items.some((row) => row.name === route.cluster),

  draw(route, data) {
    const view = data.cluster;
    return [
      headline(view),
      failure(view),
      steps(view),
      view.insights?.length > 0 && h("section", { class: "block", "aria-labelledby": "insights" },
        h("h2", { id: "insights" }, "Findings"), h("div", { class: "card flush" }, insights(view.insights, "Findings on this cluster"))),
      h("div", { class: "pair" }, checks(view), conditions(view)),
      live(route),
    ];
  },
};

function headline(view) {
  const moves = (view.moves ?? []).map((move) => h("li", {}, `${move.package} `, h("span", { class: "num" }, `${move.from ?? "new"} → ${move.to}`)));
  const entries = [
    ["Wave", view.wave],
    ["Agent", h("span", {}, pill(view.agent), view.agentVersion && h("span", { class: "muted" }, ` ${view.agentVersion}`))],
    ["Last heard", view.lastHeardTime ? h("span", {}, since(view.lastHeardTime), " ago") : "never by this hub"],
    ["Started", view.startTime ? at(view.startTime) : "not yet"],
    view.completionTime && ["Took", lasted(view.startTime, view.completionTime)],
    view.attempt > 0 && ["Attempt", number(view.attempt + 1)],
  ];
  return h("div", { class: "headline" },
    h("div", {},
      h("h1", {}, view.name),
      h("p", { class: "lead" }, pill(view.state), h("span", {}, view.failure ? failedAt(view) : plain(view.message))),
      moves.length > 0 && h("ul", { class: "moves", "aria-label": "Path" }, moves)),
    h("dl", { class: "facts" }, entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

const failedAt = (view) => (view.failure.step === undefined ? "short of its target" : `at step ${view.failure.step + 1} of ${view.steps?.length ?? "?"}`);

function failure({ failure: found }) {
  if (!found) return null;
  return h("section", { class: "card failure", "aria-labelledby": "failure" },
    h("h2", { id: "failure" }, pill(found.type), h("span", {}, found.reason)),
    h("p", {}, plain(found.message)),
    h("p", { class: "do" }, found.remediation));
}

function steps(view) {
  if (!view.steps?.length) {
    return h("section", { class: "block" }, h("h2", {}, "Steps"),
      h("p", { class: "card empty" }, view.moves?.length ? "The steps are not known yet." : "Nothing to do here, or the plan is not known yet: the sentence above says which."));
  }
  return h("section", { class: "block", "aria-labelledby": "steps" },
    h("h2", { id: "steps" }, "Steps"),
    h("div", { class: "card flush" }, h("table", { class: "stack" },
      h("caption", { class: "sr" }, "Steps of this cluster in order"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "num" }, "#"), h("th", { scope: "col" }, "Step"), h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Progress"), h("th", { scope: "col", class: "wide num" }, "Took"))),
      h("tbody", {}, view.steps.map(step)))));
}

function step(entry, index) {
  const moves = entry.moves.map((move) => h("span", { class: "line" }, `${move.package} `, h("span", { class: "num" }, `${move.fromVersion ?? "new"} → ${move.toVersion}`)));
  const under = [entry.namespace, entry.via && "by a pinned catalog", entry.installPlan].filter(Boolean).join(" · ");
  return h("tr", { "data-key": String(index) },
    h("td", { class: "num muted" }, String(index + 1)),
    h("th", { scope: "row", class: "plain" }, moves, h("span", { class: "under" }, under), entry.message && h("span", { class: "under" }, plain(entry.message))),
    h("td", {}, pill(entry.state)),
    h("td", { class: "steps" }, meter(entry.percent, entry.state === "Done" ? "Succeeded" : entry.state, `${entry.percent} percent`), h("span", { class: "under num" }, `${entry.percent}%`)),
    h("td", { class: "wide num" }, lasted(entry.startTime, entry.completionTime)));
}

function checks(view) {
  const report = view.preflight;
  return h("section", { class: "block", "aria-labelledby": "checks" },
    h("h2", { id: "checks" }, "Checks", report && h("span", { class: "aside" }, "run ", since(report.observedTime), " ago")),
    !report?.results?.length
      ? h("p", { class: "card empty" }, "No check has been run on this cluster yet.")
      : h("div", { class: "card flush" }, h("table", {},
        h("caption", { class: "sr" }, "Preflight checks of this cluster"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Outcome"), h("th", { scope: "col" }, "Check, and what to do"))),
        h("tbody", {}, byUrgency(report.results).map((result) => h("tr", { "data-key": result.check },
          h("td", {}, pill(result.outcome), result.disposition === "Waived" && h("span", { class: "under" }, "waived"), result.disposition === "Blocked" && h("span", { class: "under" }, "holds it")),
          h("th", { scope: "row", class: "plain text" }, result.check, h("span", { class: "under" }, result.message), result.subjects?.length > 0 && h("span", { class: "under" }, result.subjects.join(", ")))))))));
}

const OUTCOMES = ["Fail", "Unknown", "Warn", "Pass", "Skipped"];
const byUrgency = (results) => [...results].sort((a, b) => OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome));

function conditions(view) {
  if (!view.operatorConditions?.length) return null;
  return h("section", { class: "block", "aria-labelledby": "conditions" },
    h("h2", { id: "conditions" }, "What the operators say"),
    h("div", { class: "card flush" }, h("table", {},
      h("caption", { class: "sr" }, "Conditions that the operators report"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Condition"), h("th", { scope: "col" }, "Status"))),
      h("tbody", {}, view.operatorConditions.map((condition) => h("tr", {},
        h("th", { scope: "row", class: "plain text" }, condition.type, h("span", { class: "under" }, condition.csv), h("span", { class: "under" }, condition.message)),
        h("td", {}, h("strong", {}, condition.status), h("span", { class: "under" }, condition.reason))))))));
}

function live(route) {
  const answer = asked?.of === path(route) ? asked.text : null;
  return h("section", { class: "block", "aria-labelledby": "live" },
    h("h2", { id: "live" }, "On the cluster itself"),
    h("p", { class: "muted" }, "What is shown above was reported by the agent. This asks it again, now."),
    h("button", { type: "button", class: "solid", id: "ask" }, "Ask the cluster"),
    answer !== null && h("pre", { tabindex: "0", "aria-label": "The agent's answer" }, answer));
}
