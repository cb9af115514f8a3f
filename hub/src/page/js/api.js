// Talks with the hub: single answers by fetch, changes by Server-Sent Events.

/** An answer that is a problem: what happened and what to do. */
export class Problem extends Error {
  constructor({ code, title, detail, action }) {
    super(detail);
    Object.assign(this, { code, title, detail, action });
  }
}

/** GETs a path below `/api/v1/`. */
export async function get(path, signal) {
  let response;
  try {
    response = await fetch(`api/v1/${path}`, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({
      code: "unreachable",
      title: "The hub does not answer",
      detail: "The request did not reach the hub.",
      action: "See whether the hub runs and the way to it (port-forward, route, proxy) is up. The page tries again by itself.",
    });
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  throw new Problem(body ?? { code: "unreadable", title: "Unreadable answer", detail: `Status ${response.status} without a problem document.`, action: "See the log of the hub and of proxies before it." });
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

/** Follows the hub's events and begins again, ever more slowly, whenever the stream ends. */
export class Live {
  #source = null;
  #timer = 0;
  #wait = FIRST_WAIT;
  #path = null;
  #handlers;

  /** `handlers`: hello, upgrade, clusters, removed, state. */
  constructor(handlers) {
    this.#handlers = handlers;
    addEventListener("online", () => this.#now());
    document.addEventListener("visibilitychange", () => document.hidden || this.#now());
  }

  /** Follows another path; the same one goes on. */
  follow(path) {
    if (path === this.#path) return;
    this.#path = path;
    this.#wait = FIRST_WAIT;
    this.#open();
  }

  #now() {
    if (this.#timer) this.#open();
  }

  #open() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#source?.close();
    const source = new EventSource(`api/v1/${this.#path}`);
    this.#source = source;
    for (const kind of ["hello", "upgrade", "clusters", "removed"]) {
      source.addEventListener(kind, (event) => {
        if (source !== this.#source) return;
        if (kind === "hello") {
          this.#wait = FIRST_WAIT;
          this.#handlers.state("live");
        }
        this.#handlers[kind](JSON.parse(event.data));
      });
    }
    source.addEventListener("error", () => {
      if (source !== this.#source) return;
      source.close();
      this.#handlers.state("reconnecting");
      const wait = this.#wait * (0.5 + Math.random() / 2);
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
      this.#timer = setTimeout(() => this.#open(), wait);
    });
  }
}
