// One campaign.

import { get } from "./api.js";
import { drawClusters, loadClusters } from "./clusters.js";
import { h } from "./dom.js";
import { apiPath, campaignHref, eventsPath, previewHref, withParam } from "./route.js";
import { at, bar, count, icon, lasted, listStates, meter, number, pill, plain, since, spell, tone } from "./words.js";

export const campaign = {
  events: eventsPath,

  async load(route, signal) {
    const [detail, clusters] = await Promise.all([get(apiPath(route), signal), loadClusters(route, signal)]);
    return { time: detail.time, upgrade: detail.upgrade, clusters };
  },

  title: (route) => route.name,

  summary: (route, { upgrade }) => `${route.name}: ${spell(upgrade.phase)}, ${upgrade.message}`,

  draw(route, { upgrade, clusters }) {
    return [
      headline(upgrade),
      progress(upgrade),
      needsYou(upgrade),
      waves(route, upgrade),
      drawClusters(route, clusters, upgrade.summary.clusters),
      h("div", { class: "pair" }, preflight(route, upgrade), paths(route, upgrade)),
      history(upgrade),
    ];
  },
};

function headline(upgrade) {
  return h("div", { class: "headline" },
    h("div", {},
      h("h1", {}, upgrade.name, h("span", { class: "ns" }, upgrade.namespace)),
      h("p", { class: "lead" }, pill(upgrade.phase), h("span", {}, plain(upgrade.message)))),
    facts(upgrade));
}

function facts(upgrade) {
  const { budget } = upgrade;
  const target = upgrade.targets.map((t) => `${t.package} → ${t.version ?? t.versionRange ?? "channel head"}`);
  const tolerated = budget.maxFailures === undefined ? `${number(budget.failed)} failed` : `${number(budget.failed)} of ${number(budget.maxFailures)} tolerated`;
  const entries = [
    ["Target", target.join(", ")],
    ["Failures", h("span", {}, tolerated, h("span", { class: "muted" }, ` · ${spell(budget.mode)}`))],
    upgrade.rolloutStartTime ? ["Elapsed", lasted(upgrade.rolloutStartTime, upgrade.completionTime)] : ["Stage", upgrade.stage],
    upgrade.planDigest && ["Plan", h("span", {}, h("code", { title: upgrade.planDigest }, short(upgrade.planDigest)), consent(upgrade))],
  ];
  return h("dl", { class: "facts" }, entries.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

const short = (digest) => digest.replace("sha256:", "").slice(0, 12);

function consent(upgrade) {
  if (upgrade.consentedDigest === undefined) return h("span", { class: "muted" }, " not launched");
  if (upgrade.consentedDigest === "" || upgrade.consentedDigest === upgrade.planDigest) return h("span", { class: "muted" }, " consented");
  return h("strong", { class: "alarm" }, " changed since the launch");
}

function progress(upgrade) {
  const { summary, wavesComplete, wavesTotal } = upgrade;
  const total = Math.max(summary.clusters, 1);
  const done = Math.floor((100 * summary.succeeded) / total);
  return h("section", { class: "card progress", "aria-label": "Progress" },
    h("p", { class: "big num" }, `${done}`, h("small", {}, "%")),
    h("div", { class: "bars" },
      h("div", {},
        h("p", { class: "bar-label" }, h("span", {}, "Clusters"), h("span", { class: "num" }, `${number(summary.succeeded)} of ${number(summary.clusters)} done`)),
        bar(upgrade.states, total, `Clusters: ${listStates(upgrade.states)}`)),
      h("div", {},
        h("p", { class: "bar-label" }, h("span", {}, "Waves"), h("span", { class: "num" }, `${number(wavesComplete)} of ${number(wavesTotal)} complete`)),
        meter((100 * wavesComplete) / Math.max(wavesTotal, 1), "Succeeded", `Waves: ${wavesComplete} of ${wavesTotal} complete`))));
}

function needsYou(upgrade) {
  if (!upgrade.insights?.length) return null;
  return h("section", { class: "block", "aria-labelledby": "needs" },
    h("h2", { id: "needs" }, "Needs you"),
    h("div", { class: "card flush" }, insights(upgrade.insights, "What was found, loudest first")));
}

/** Findings as a table; also of one cluster. */
export function insights(list, caption) {
  const fleet = list.some((insight) => insight.clusters !== undefined);
  return h("table", { class: "stack" },
    h("caption", { class: "sr" }, caption),
    h("thead", {}, h("tr", {},
      h("th", { scope: "col" }, "Level"), h("th", { scope: "col" }, "What happened, and what to do"),
      h("th", { scope: "col", class: "wide" }, "Impact"), fleet && h("th", { scope: "col", class: "num" }, "Clusters"),
      h("th", { scope: "col", class: "num" }, "Since"))),
    h("tbody", {}, list.map((insight) => h("tr", { "data-key": insight.id },
      h("td", {}, pill(insight.level)),
      h("td", { class: "text" }, h("span", {}, plain(insight.message)), h("span", { class: "under do" }, insight.remediation)),
      h("td", { class: "wide" }, spell(insight.impact)),
      fleet && h("td", { class: "num", "data-label": "Clusters" }, insight.clusters === undefined ? "–" : number(insight.clusters)),
      h("td", { class: "num", "data-label": "Since" }, since(insight.sinceTime))))));
}

function waves(route, upgrade) {
  return h("section", { class: "block", "aria-labelledby": "waves" },
    h("h2", { id: "waves" }, "Waves"),
    h("ol", { class: "waves", tabindex: "0", "aria-label": "Waves in order" }, upgrade.waves.map((wave) => card(route, wave))));
}

function card(route, wave) {
  const href = campaignHref(route, withParam(new URLSearchParams(), "wave", wave.name));
  const limit = wave.budgetParallelism !== undefined && wave.budgetParallelism < wave.maxConcurrent;
  return h("li", { class: `wave ${wave.state === "Running" ? "now" : ""}`, "data-key": wave.name },
    h("p", { class: "wave-head" }, h("a", { href }, wave.name), h("span", { class: `word ${tone(wave.state === "Complete" ? "Succeeded" : wave.state)}` }, icon(wave.state), wave.state)),
    bar(wave.states, wave.clusters, listStates(wave.states)),
    h("p", { class: "num" }, h("strong", {}, number(wave.succeeded)), ` of ${number(wave.clusters)}`,
      wave.running > 0 && h("span", { class: "s-Upgrading toned" }, ` · ${number(wave.running)} running`),
      wave.failed > 0 && h("span", { class: "s-Failed toned" }, ` · ${number(wave.failed)} failed`)),
    h("p", { class: "muted small num" }, `${number(wave.maxConcurrent)} at once, ${count(wave.maxFailures, "failure")} tolerated`,
      limit && h("span", { class: "s-Blocked toned" }, ` · the budget lets ${number(wave.budgetParallelism)} run`)));
}

function preflight(route, upgrade) {
  const outcomes = ["pass", "warn", "fail", "unknown", "skipped"];
  const cell = (check, outcome) => {
    const value = check[outcome] ?? 0;
    const word = outcome[0].toUpperCase() + outcome.slice(1);
    const loud = value > 0 && outcome !== "pass" && outcome !== "skipped";
    return h("td", { class: `num ${loud ? `${tone(word)} toned strong` : ""}` }, value > 0 ? number(value) : h("span", { class: "muted" }, "–"));
  };
  const link = (word) => h("a", { href: campaignHref(route, new URLSearchParams({ check: word })) }, word);
  return h("section", { class: "block", "aria-labelledby": "preflight" },
    h("h2", { id: "preflight" }, "Preflight"),
    !upgrade.preflight?.length
      ? h("p", { class: "card empty" }, "No check has been run yet. Set stage Preflight to run them everywhere.")
      : h("div", { class: "card flush" }, h("table", {},
        h("caption", { class: "sr" }, "Clusters by outcome of each check"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Check"), ["Pass", "Warn", "Fail", "Unknown", "Skipped"].map((word) => h("th", { scope: "col", class: "num" }, link(word))))),
        h("tbody", {}, upgrade.preflight.map((check) => h("tr", { "data-key": check.check }, h("th", { scope: "row", class: "plain" }, check.check), outcomes.map((outcome) => cell(check, outcome))))))));
}

function paths(route, upgrade) {
  return h("section", { class: "block", "aria-labelledby": "paths" },
    h("h2", { id: "paths" }, "Paths", h("a", { class: "aside", href: previewHref(route) }, "What changes")),
    !upgrade.preview?.length
      ? h("p", { class: "card empty" }, "The paths are shown as soon as the clusters' catalogs have been read.")
      : h("div", { class: "card flush" }, h("table", {},
        h("caption", { class: "sr" }, "Paths that clusters take"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Path"), h("th", { scope: "col", class: "num" }, "Hops"), h("th", { scope: "col", class: "num" }, "Clusters"))),
        h("tbody", {}, upgrade.preview.map((path) => h("tr", {},
          h("th", { scope: "row", class: "plain" },
            h("span", { class: "num" }, path.to ? `${path.from} → ${path.to}` : path.from),
            h("span", { class: "under" }, [path.package, path.note].filter(Boolean).join(" · "))),
          h("td", { class: "num" }, path.hops > 0 ? number(path.hops) : h("span", { class: "muted" }, "–")),
          h("td", { class: "num" }, number(path.clusters))))))));
}

function history(upgrade) {
  if (!upgrade.history?.length) return null;
  return h("section", { class: "block", "aria-labelledby": "history" },
    h("h2", { id: "history" }, "History"),
    h("ol", { class: "card history" }, [...upgrade.history].reverse().map((entry) => h("li", {},
      h("span", { class: "num muted when" }, at(entry.time)), h("strong", {}, entry.reason), h("span", {}, entry.message)))));
}
