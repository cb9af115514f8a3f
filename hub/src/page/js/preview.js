// What a campaign's plans change: groups of clusters that see the same, and one of them whole.

import { get } from "./api.js";
import { h } from "./dom.js";
import { apiPath, clusterHref, eventsPath, previewHref } from "./route.js";
import { count, number, pill, plain } from "./words.js";

const path = (route) => `${apiPath(route)}/preview`;

export const preview = {
  events: eventsPath,

  // What one cluster does says nothing about what its plan changes.
  concerns: () => false,

  async load(route, signal) {
    const list = await get(`${path(route)}?limit=200`, signal);
    const group = route.group && (await get(`${path(route)}/${encodeURIComponent(route.group)}`, signal));
    return { time: list.time, list, group };
  },

  title: (route) => `What ${route.name} changes`,

  summary: (route, { list }) => `${route.name}: ${count(list.total, "group")}, ${count(list.blocked, "cluster")} blocked`,

  draw(route, { list, group }) {
    return group ? whole(route, list, group) : all(route, list);
  },
};

function all(route, list) {
  const planned = list.items.reduce((sum, group) => sum + group.clusters, 0);
  return [
    h("div", { class: "headline" },
      h("div", {},
        h("h1", {}, "What changes", h("span", { class: "ns" }, route.name)),
        h("p", { class: "lead" }, pill(list.state === "Making" ? "Planning" : "Previewed"),
          h("span", {}, list.state === "Making" ? "Some changes are still being found out." : "Nothing on any cluster was changed to find this out."))),
      facts([
        ["Clusters", number(list.clusters)],
        ["With a plan", number(planned)],
        ["At the target", number(list.atTarget)],
        ["Blocked", number(list.blocked)],
        ["As a document", documents(path(route))],
      ])),
    groups(route, list),
    blockers(route, list),
  ];
}

const facts = (entries) => h("dl", { class: "facts" }, entries.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

function documents(base) {
  const link = (format, word) => h("a", { href: `api/v1/${base}?format=${format}`, target: "_blank", rel: "noopener" }, word);
  return h("span", {}, link("html", "HTML"), ", ", link("markdown", "Markdown"));
}

function groups(route, list) {
  const heads = ["Gained", "Look at", "CRDs", "Steps", "Missing", "Unlike others", "Clusters"];
  return h("section", { class: "block", "aria-labelledby": "groups" },
    h("h2", { id: "groups" }, "Groups of clusters that see the same"),
    !list.items.length
      ? h("p", { class: "card empty" }, "No cluster has a plan yet, or all are at the target.")
      : h("div", { class: "card flush" }, h("table", { class: "stack" },
        h("caption", { class: "sr" }, "Groups, most clusters first"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Group"), heads.map((head) => h("th", { scope: "col", class: "num" }, head)))),
        h("tbody", {}, list.items.map((group) => row(route, group))))),
    list.leftOut > 0 && h("p", { class: "muted" }, `${count(list.leftOut, "smaller group")} not compared.`));
}

function row(route, group) {
  const { counts } = group;
  const cells = [
    ["Gained", counts.permissionsGained, ""],
    ["Look at", counts.dangerousTotal, "s-Warn"],
    ["CRDs refused", counts.crdsRefused.length, "s-Fail"],
    ["Manual steps", counts.manualStepsTotal, "s-Warn"],
    ["Missing", counts.missingTotal, "s-Warn"],
    ["Unlike others", group.differences, ""],
  ];
  return h("tr", { "data-key": group.id },
    h("th", { scope: "row", class: "plain text" },
      h("a", { class: "row-link", href: previewHref(route, group.id) }, group.ways.map(way).join("; ")),
      h("span", { class: "under" }, group.catalogs.map((seen) => `${seen.source} ${short(seen.digest)}`).join(", "))),
    group.state === "Making"
      ? h("td", { class: "muted", colspan: String(cells.length) }, "being found out")
      : cells.map(([label, value, tone]) => h("td", { class: `num ${value > 0 && tone ? `${tone} toned strong` : ""}`, "data-label": label },
        value > 0 ? number(value) : h("span", { class: "muted" }, "–"))),
    h("td", { class: "num", "data-label": "Clusters" }, number(group.clusters)));
}

const way = ({ package: name, from, to, pinned }) => `${name} ${[from ?? "new", ...to].join(" → ")}${pinned ? `, stops at ${pinned.join(", ")} by a pinned catalog` : ""}`;
const short = (digest) => digest.replace("sha256:", "").slice(0, 8);

const WHY = { NoPath: "No path", NotKnown: "Not known", Checks: "Held by checks", Held: "Held" };

function blockers(route, list) {
  if (!list.blocked) return null;
  return h("section", { class: "block", "aria-labelledby": "blockers" },
    h("h2", { id: "blockers" }, "In the way"),
    h("div", { class: "card flush" }, h("table", {},
      h("caption", { class: "sr" }, "What stands in the way of which cluster"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Cluster"), h("th", { scope: "col" }, "Why"))),
      h("tbody", {}, list.blockers.map((one) => h("tr", { "data-key": one.cluster },
        h("th", { scope: "row", class: "plain" }, h("a", { href: clusterHref(route, one.cluster) }, one.cluster)),
        h("td", { class: "text" }, WHY[one.kind] ?? one.kind, h("span", { class: "under" }, plain(one.why)))))))),
    list.blocked > list.blockers.length && h("p", { class: "muted" }, `and ${count(list.blocked - list.blockers.length, "more cluster")}.`));
}

function whole(route, list, { group, members, differences, operators }) {
  const { counts } = group;
  const more = group.clusters - members.length;
  return [
    h("div", { class: "headline" },
      h("div", {},
        h("h1", {}, "What changes", h("span", { class: "ns" }, count(group.clusters, "cluster"))),
        h("ul", { class: "moves", "aria-label": "Path" }, group.ways.map((one) => h("li", {}, `${way(one)} (${one.namespace})`)))),
      facts([
        ["Permissions", `${number(counts.permissionsGained)} gained, ${number(counts.permissionsLost)} lost`],
        ["Images", number(counts.images)],
        ["Release notes", number(counts.releaseNotes)],
        ["As a document", documents(`${path(route)}/${group.id}`)],
      ])),
    group.state === "Making" && h("p", { class: "card empty" }, "Its changes are still being found out."),
    alarms("missing", "Could not be looked at", "Nothing is said of what is listed here.", counts.missing, counts.missingTotal),
    alarms("steps", "Manual steps", null, counts.manualSteps, counts.manualStepsTotal),
    alarms("refused", "Refused by OLM", null, counts.crdsRefused, counts.crdsRefused.length),
    alarms("danger", "Permissions that deserve a look", null, counts.dangerous, counts.dangerousTotal),
    apart(list, differences, group),
    operators.map(operator),
    h("section", { class: "block", "aria-labelledby": "members" },
      h("h2", { id: "members" }, "Clusters"),
      h("p", { class: "card" }, members.map((name, index) => [index > 0 && ", ", h("a", { href: clusterHref(route, name) }, name)]), more > 0 && ` and ${number(more)} more`)),
  ];
}

function alarms(id, title, note, lines, total) {
  if (!total) return null;
  return h("section", { class: "block", "aria-labelledby": id },
    h("h2", { id }, title, h("span", { class: "aside" }, number(total))),
    h("div", { class: "card" }, note && h("p", { class: "muted" }, note), entries(lines, total)));
}

function entries(lines, total = lines.length) {
  return h("ul", { class: "entries" }, lines.map((line) => h("li", { class: line.startsWith(" ") && "below" }, plain(line))), total > lines.length && h("li", { class: "muted" }, `and ${number(total - lines.length)} more`));
}

function apart(list, differences, group) {
  if (list.total < 2) return null;
  const line = (one) => (one.kind === "Has"
    ? `Here${one.groups ? ` and in ${count(one.groups, "other group")}` : " alone"}: ${one.package}, ${one.section}: ${one.text}`
    : `In all others, not here: ${one.package}, ${one.section}: ${one.text}`);
  return h("section", { class: "block", "aria-labelledby": "apart" },
    h("h2", { id: "apart" }, "Unlike other groups", h("span", { class: "aside" }, number(group.differences))),
    h("div", { class: "card" }, differences.length ? entries(differences.map(line), group.differences) : h("p", { class: "muted" }, "The same changes as every other group that moves these packages.")));
}

function operator(one) {
  return h("section", { class: "block", "data-key": `${one.namespace}/${one.package}` },
    h("h2", {}, one.package, h("span", { class: "aside" }, one.namespace)),
    h("div", { class: "card" }, one.sections.length
      ? one.sections.map((section) => h("details", { "data-key": section.title, open: section.importance === "High" }, h("summary", {}, `${section.title} (${number(section.total)})`), entries(section.lines)))
      : h("p", { class: "muted" }, "Nothing is known to change.")));
}
