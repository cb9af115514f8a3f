// The keyboard: rows, filter, up, help. Single keys can be switched off, for those who type by
// voice or by accident.

const SWITCH = "wavelift.keys";

/** Listens; `goUp` is called when the reader wants one level up. */
export function listen(goUp) {
  const help = document.getElementById("help");
  const enabled = document.getElementById("keys-on");
  enabled.checked = stored() !== "off";
  enabled.addEventListener("change", () => store(enabled.checked ? "on" : "off"));
  document.getElementById("help-open").addEventListener("click", () => help.showModal());

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || help.open) return;
    const typing = event.target.closest("input, textarea, select");
    if (event.key === "Escape") {
      if (typing) typing.blur();
      else goUp();
      return;
    }
    if (typing) {
      if (event.key === "ArrowDown" || event.key === "Enter") move(event, 1);
      return;
    }
    if (event.key === "ArrowDown" && inRows(event.target)) return move(event, 1);
    if (event.key === "ArrowUp" && inRows(event.target)) return move(event, -1);
    if (!enabled.checked) return;
    if (event.key === "j") move(event, 1);
    else if (event.key === "k") move(event, -1);
    else if (event.key === "/") focusFilter(event);
    else if (event.key === "?") help.showModal();
  });
}

const inRows = (element) => element.classList.contains("row-link");

function move(event, by) {
  const links = [...document.querySelectorAll("a.row-link")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
  event.preventDefault();
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
}

function focusFilter(event) {
  const filter = document.getElementById("filter");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
  filter.select();
}

// A browser may refuse storage; then the switch lasts as long as the page.
function stored() {
  try {
    return localStorage.getItem(SWITCH);
  } catch {
    return null;
  }
}

function store(value) {
  try {
    localStorage.setItem(SWITCH, value);
  } catch {
    // Nothing is lost but the memory of it.
  }
}
