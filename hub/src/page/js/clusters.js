// The table of a campaign's clusters. The hub filters, counts, sorts and cuts; the address says how.

import { get } from "./api.js";
import { h } from "./dom.js";
import { apiPath, campaignHref, clusterHref, withParam } from "./route.js";
import { STATES, icon, meter, number, pill, plain, since, tone } from "./words.js";

const PARAMS = ["state", "wave", "check", "q", "sort", "order", "continue"];
const PAGE = 25;

export async function loadClusters(route, signal) {
  const query = new URLSearchParams({ sort: "state", limit: PAGE });
  for (const name of PARAMS) {
    if (route.query.get(name)) query.set(name, route.query.get(name));
  }
  return get(`${apiPath(route)}/clusters?${query}`, signal);
}

export function drawClusters(route, list, total) {
  return h("section", { class: "block", "aria-labelledby": "clusters" },
    h("div", { class: "bar-label" },
      h("h2", { id: "clusters" }, "Clusters"),
      h("span", { class: "muted num" }, `${number(list.total)} of ${number(total)}`)),
    filters(route, list),
    list.items.length === 0 ? nothing(route) : table(route, list.items),
    pages(route, list));
}

function filters(route, list) {
  const { query } = route;
  const chosen = new Set((query.get("state") ?? "").split(",").filter(Boolean));
  const counts = new Map(list.facets.states.map(({ state, clusters }) => [state, clusters]));
  const chips = STATES.filter((state) => counts.has(state) || chosen.has(state)).map((state) => {
    const next = new Set(chosen);
    if (!next.delete(state)) next.add(state);
    const href = campaignHref(route, withParam(query, "state", [...next].join(",")));
    return h("button", { type: "button", class: `chip ${tone(state)}`, "aria-pressed": String(chosen.has(state)), "data-go": href, "data-key": state },
      icon(state), state, h("span", { class: "num" }, number(counts.get(state) ?? 0)));
  });
  const active = ["wave", "check"].filter((name) => query.get(name)).map((name) =>
    h("button", { type: "button", class: "chip only", "data-go": campaignHref(route, withParam(query, name, null)), "data-key": name },
      `${name}: ${query.get(name)}`, h("span", { "aria-hidden": "true" }, "×"), h("span", { class: "sr" }, ", take this filter away")));
  return h("div", { class: "filters" },
    h("label", { class: "search" }, h("span", { class: "sr" }, "Filter clusters by name, message or failure"),
      h("input", { id: "filter", type: "search", name: "q", placeholder: "Filter by name or message", autocomplete: "off", spellcheck: "false", value: query.get("q") ?? "", "aria-keyshortcuts": "/" })),
    h("div", { class: "chips", role: "group", "aria-label": "Filter by state" }, chips, active));
}

function nothing(route) {
  return h("div", { class: "card empty" },
    h("p", {}, "No cluster matches these filters."),
    h("button", { type: "button", class: "solid", "data-go": campaignHref(route, new URLSearchParams()) }, "Show all clusters"));
}

function table(route, rows) {
  return h("div", { class: "card flush" },
    h("table", { class: "rows clusters stack" },
      h("caption", { class: "sr" }, "Clusters of this campaign"),
      h("thead", {}, h("tr", {},
        head(route, "name", "Cluster"), head(route, "state", "State"), head(route, "percent", "Progress"),
        head(route, "wave", "Wave", "wide"), h("th", { scope: "col", class: "wide" }, "Why"), h("th", { scope: "col", class: "wide num" }, "Since"))),
      h("tbody", {}, rows.map((row) => line(route, row)))));
}

function head(route, sort, text, extra = "") {
  const { query } = route;
  const sorted = (query.get("sort") ?? "state") === sort;
  const falling = query.get("order") === "desc";
  const next = withParam(withParam(query, "sort", sort), "order", sorted && !falling ? "desc" : null);
  return h("th", { scope: "col", class: extra, "aria-sort": sorted ? (falling ? "descending" : "ascending") : null },
    h("a", { class: "sort", href: campaignHref(route, next) }, text, sorted && h("span", { "aria-hidden": "true" }, falling ? " ↓" : " ↑")));
}

function line(route, row) {
  const versions = (row.moves ?? []).map((move) => `${move.package} ${move.from ?? "new"} → ${move.to}`);
  return h("tr", { "data-key": row.name },
    h("th", { scope: "row" },
      h("a", { class: "row-link", href: clusterHref(route, row.name) }, row.name),
      h("span", { class: "under clip" }, versions[0] ?? "no plan yet", versions.length > 1 && ` and ${versions.length - 1} more`),
      h("span", { class: "under narrow" }, plain(row.message))),
    h("td", {}, pill(row.state), row.agent === "Silent" && row.state !== "Unreachable" && h("span", { class: "under" }, "agent silent")),
    h("td", { class: "steps" }, row.percent === undefined
      ? h("span", { class: "muted" }, "–")
      : [meter(row.percent, row.state, `${row.percent} percent`), h("span", { class: "under num" }, `${row.percent}%`, row.step && ` · step ${row.step}`)]),
    h("td", { class: "wide" }, row.wave),
    h("td", { class: "wide text" }, h("span", { class: "clip2" }, plain(row.message))),
    h("td", { class: "wide num" }, since(row.sinceTime)));
}

function pages(route, list) {
  const first = route.query.get("continue") && campaignHref(route, withParam(route.query, "continue", null));
  const query = new URLSearchParams(route.query);
  if (list.continue) query.set("continue", list.continue);
  const next = list.continue && campaignHref(route, query);
  if (!first && !next) return null;
  return h("nav", { class: "pages", "aria-label": "Pages of clusters" },
    first && h("a", { class: "ghost", href: first }, "First page"),
    h("span", { class: "muted num" }, `${number(list.items.length)} of ${number(list.total)}`),
    next && h("a", { class: "ghost", href: next, rel: "next" }, "Next page"));
}

