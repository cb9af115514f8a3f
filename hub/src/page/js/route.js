// Where the page is, in the address: `#/namespace/campaign/cluster?filters`, and
// `#/namespace/campaign/~changes/group` for what a campaign changes; no cluster has such a name.

const CHANGES = "~changes";

/** The route of an address. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [namespace, name, cluster, group] = path.split("/").filter(Boolean).map(decode);
  if (cluster === CHANGES) return { kind: "preview", namespace, name, group, query: new URLSearchParams(query) };
  const kind = cluster ? "cluster" : name ? "campaign" : "list";
  return { kind, namespace, name, cluster, query: new URLSearchParams(query) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// The filters that a campaign was last seen with: one comes back to what one left.
const last = new Map();

/** Remembers a campaign's filters. */
export function remember({ kind, namespace, name, query }) {
  if (kind === "campaign") last.set(`${namespace}/${name}`, query.toString());
}

const join = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** A campaign, with filters. */
export function campaignHref({ namespace, name }, query) {
  const text = query?.toString() ?? last.get(`${namespace}/${name}`) ?? "";
  return join(namespace, name) + (text ? `?${text}` : "");
}

/** A cluster of a campaign. */
export const clusterHref = ({ namespace, name }, cluster) => join(namespace, name, cluster);

/** What a campaign changes, or what changes on one group of its clusters. */
export const previewHref = ({ namespace, name }, group) => (group ? join(namespace, name, CHANGES, group) : join(namespace, name, CHANGES));

/** One level up, or null at the top. */
export function up(route) {
  if (route.kind === "cluster") return campaignHref(route);
  if (route.kind === "preview") return route.group ? previewHref(route) : campaignHref(route);
  return route.kind === "campaign" ? "#/" : null;
}

/** The path of a campaign in the API. */
export const apiPath = ({ namespace, name }) => `fleetupgrades/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** The event stream of a campaign. */
export const eventsPath = ({ namespace, name }) => `events?${new URLSearchParams({ namespace, name })}`;

/** A copy of filters with one changed; the page begins again at its first. */
export function withParam(query, name, value) {
  const next = new URLSearchParams(query);
  next.delete("continue");
  if (value) next.set(name, value);
  else next.delete(name);
  return next;
}
