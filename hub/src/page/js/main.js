// The loop: address -> data -> page, again whenever the address or the data changes.

import { Live, Problem } from "./api.js";
import { campaign } from "./campaign.js";
import { ask, cluster } from "./cluster.js";
import { h, show } from "./dom.js";
import { listen } from "./keys.js";
import { list } from "./list.js";
import { preview } from "./preview.js";
import { campaignHref, parse, previewHref, remember, up, withParam } from "./route.js";
import { setClock, tick } from "./words.js";

const VIEWS = { list, campaign, cluster, preview };
const REFRESH_MS = 1_000;
const RETRY_MS = 5_000;
const ANNOUNCE_MS = 10_000;
const TYPING_MS = 250;

const main = document.getElementById("main");
const announcement = document.getElementById("announce");

let route = parse(location.hash);
let data = null;
let request = null;
let timer = 0;
let refreshedAt = -Infinity;
let announcedAt = -Infinity;

const live = new Live({
  hello(hello) {
    setClock(hello.time, hello.timeFactor);
    refresh();
  },
  upgrade: () => soon(),
  removed: () => soon(),
  clusters(change) {
    const { concerns } = VIEWS[route.kind];
    if (!concerns || concerns(route, change)) soon();
  },
  state: showLink,
});

function showLink(state) {
  const link = document.getElementById("link");
  const words = { live: "Live", reconnecting: "Reconnecting", connecting: "Connecting" };
  link.dataset.state = state;
  link.querySelector(".word").textContent = words[state];
}

/** Refreshes soon, but not more often than a reader can read. */
function soon(wait = Math.max(0, refreshedAt + REFRESH_MS - performance.now())) {
  if (timer) return;
  timer = setTimeout(refresh, wait);
}

async function refresh() {
  clearTimeout(timer);
  timer = 0;
  refreshedAt = performance.now();
  request?.abort();
  const mine = new AbortController();
  request = mine;
  const view = VIEWS[route.kind];
  try {
    const loaded = await view.load(route, mine.signal);
    if (mine !== request) return;
    data = loaded;
    setClock(data.time);
    draw();
    announce(view.summary(...(view === list ? [data] : [route, data])));
  } catch (problem) {
    if (mine !== request || problem.name === "AbortError") return;
    if (!(problem instanceof Problem)) throw problem;
    drawProblem(problem);
  }
}

function draw() {
  const view = VIEWS[route.kind];
  document.title = `${view.title(route)} · Wavelift`;
  crumbs();
  show(main, view.draw(route, data));
  main.removeAttribute("aria-busy");
}

function drawProblem(problem) {
  crumbs();
  const panel = h("div", { class: "card problem", role: "alert" },
    h("h1", {}, problem.title), h("p", {}, problem.detail), h("p", { class: "do" }, problem.action));
  // What was shown last stays, marked as old: it is still the best that is known.
  if (data && problem.code !== "not-found") {
    show(main, panel, VIEWS[route.kind].draw(route, data));
  } else {
    data = null;
    show(main, panel);
  }
  // A page that went stale (its list has another order now) begins again at the first.
  if (problem.code === "invalid-continue") go(campaignHref(route, withParam(route.query, "continue", null)));
  soon(RETRY_MS);
}

function crumbs() {
  const parts = [];
  if (route.kind !== "list") parts.push(h("a", { href: "#/" }, "Campaigns"));
  if (route.kind === "campaign") parts.push(h("span", { "aria-current": "page" }, route.name));
  if (route.kind === "cluster") {
    parts.push(h("a", { href: campaignHref(route) }, route.name), h("span", { "aria-current": "page" }, route.cluster));
  }
  if (route.kind === "preview") {
    const here = route.group ? route.group.slice(0, 8) : "What changes";
    parts.push(h("a", { href: campaignHref(route) }, route.name), route.group && h("a", { href: previewHref(route) }, "What changes"), h("span", { "aria-current": "page" }, here));
  }
  show(document.getElementById("crumbs"), h("ol", {}, parts.filter(Boolean).map((part) => h("li", {}, part))));
}

/** Says what changed to those who listen, at most every ten seconds. */
function announce(text) {
  if (performance.now() < announcedAt + ANNOUNCE_MS || announcement.textContent === text) return;
  announcedAt = performance.now();
  announcement.textContent = text;
}

function go(hash) {
  history.replaceState(null, "", hash);
  navigate();
}

function navigate() {
  const before = route;
  route = parse(location.hash);
  remember(route);
  const moved = before.kind !== route.kind || before.name !== route.name || before.cluster !== route.cluster || before.group !== route.group || before.namespace !== route.namespace;
  if (moved) {
    data = null;
    main.setAttribute("aria-busy", "true");
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announcedAt = -Infinity;
  }
  live.follow(VIEWS[route.kind].events(route));
  refresh();
}

addEventListener("hashchange", navigate);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (event.target.closest("#skip")) {
    event.preventDefault();
    main.focus();
  } else if (button?.dataset.go) {
    go(button.dataset.go);
  } else if (button?.id === "ask") {
    ask(route, () => data && draw());
  }
});

let typing = 0;
document.addEventListener("input", (event) => {
  if (event.target.id !== "filter") return;
  clearTimeout(typing);
  typing = setTimeout(() => go(campaignHref(route, withParam(route.query, "q", event.target.value))), TYPING_MS);
});

listen(() => {
  const target = up(route);
  if (target) location.hash = target;
});
setInterval(tick, 1_000);
remember(route);
live.follow(VIEWS[route.kind].events(route));
refresh();
