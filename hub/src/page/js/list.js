// All campaigns.

import { get } from "./api.js";
import { h } from "./dom.js";
import { bar, count, listStates, number, pill, plain, since } from "./words.js";
import { campaignHref } from "./route.js";

export const list = {
  events: () => "events?clusters=Exclude",

  async load(_route, signal) {
    const [upgrades, agents] = await Promise.all([get("fleetupgrades?limit=200", signal), get("agents?limit=1", signal)]);
    return { time: upgrades.time, upgrades, agents };
  },

  title: () => "Campaigns",

  summary({ upgrades }) {
    const needing = upgrades.items.filter((row) => row.needsYou > 0).length;
    return `${count(upgrades.total, "campaign")}, ${needing} with something that needs you`;
  },

  draw(_route, { upgrades, agents }) {
    return [
      h("div", { class: "headline" },
        h("h1", {}, "Campaigns"),
        h("p", { class: "muted" }, `${count(agents.connected, "agent")} connected`, agents.silent > 0 && h("strong", { class: "alarm" }, `, ${number(agents.silent)} silent`))),
      upgrades.items.length === 0 ? empty() : table(upgrades.items),
      upgrades.total > upgrades.items.length && h("p", { class: "muted" }, `The newest ${number(upgrades.items.length)} of ${number(upgrades.total)} are shown; the CLI lists all.`),
    ];
  },
};

function table(rows) {
  const heads = ["Campaign", "Phase", "Clusters", "Wave", "Needs you", "Age"];
  return h("div", { class: "card flush" },
    h("table", { class: "rows stack" },
      h("caption", { class: "sr" }, "Campaigns, newest first"),
      h("thead", {}, h("tr", {}, heads.map((head, i) => h("th", { scope: "col", class: i > 2 ? "wide" : null }, head)))),
      h("tbody", {}, rows.map(line))));
}

function line(row) {
  const { summary } = row;
  const target = row.targets.map((t) => `${t.package} ${t.version ?? t.versionRange ?? "(channel head)"}`).join(", ");
  const done = `${number(summary.succeeded)} of ${number(summary.clusters)} done`;
  return h("tr", { "data-key": `${row.namespace}/${row.name}` },
    h("th", { scope: "row" },
      h("a", { class: "row-link", href: campaignHref(row) }, row.name),
      h("span", { class: "under" }, h("span", { class: "ns" }, row.namespace), target)),
    h("td", {}, pill(row.phase), h("span", { class: "under clip" }, plain(row.message))),
    h("td", { class: "grow" }, bar(row.states, summary.clusters, listStates(row.states)), h("span", { class: "under" }, done, summary.failed > 0 && h("span", { class: "s-Failed toned" }, `, ${number(summary.failed)} failed`))),
    h("td", { class: "wide" }, row.currentWave ?? "–", h("span", { class: "under" }, `${number(row.wavesComplete)} of ${number(row.wavesTotal)} complete`)),
    h("td", { class: "wide num" }, row.needsYou > 0 ? h("strong", { class: "alarm" }, number(row.needsYou)) : h("span", { class: "muted" }, "–")),
    h("td", { class: "wide num" }, since(row.creationTime)));
}

const EXAMPLE = `apiVersion: wavelift.io/v1alpha1
kind: FleetUpgrade
metadata: {name: logging, namespace: default}
spec:
  targets:
    operators: [{package: my-operator}]
  clusters: {labelSelector: {}}
  stage: Preview`;

function empty() {
  return h("div", { class: "card empty" },
    h("h2", {}, "No campaign yet"),
    h("p", {}, "A campaign is one object. This one shows what upgrading an operator would change on every cluster, and changes nothing:"),
    h("pre", { tabindex: "0" }, EXAMPLE),
    h("p", {}, "Apply it with ", h("code", {}, "kubectl apply"), "; it appears here at once."));
}
