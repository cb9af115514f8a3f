// Builds elements and turns one tree into another in place, so that what has the focus, the
// selection or the reader's eye stays the same element while the numbers in it change.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `null`, `undefined` and `false` are left out. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Makes the children of `element` what `children` are. */
export function show(element, ...children) {
  const wanted = document.createElement(element.tagName);
  wanted.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  morphChildren(element, wanted);
}

function morph(old, wanted) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !keeps(old, name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (old.getAttribute(name) !== value && !keeps(old, name)) old.setAttribute(name, value);
  }
  if (old.dataset?.keep === undefined) morphChildren(old, wanted);
  if (old.tagName === "INPUT" && old !== document.activeElement) old.value = wanted.value;
}

// What the reader does to an element is the reader's.
function keeps(element, name) {
  return (element.tagName === "DETAILS" && name === "open") || (element.tagName === "INPUT" && name === "value");
}

function morphChildren(old, wanted) {
  const keyed = new Map();
  for (const child of old.children) {
    if (child.dataset?.key) keyed.set(child.dataset.key, child);
  }
  let at = old.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = next.dataset?.key;
    const found = key ? keyed.get(key) : at && fits(at, next) ? at : null;
    if (found && fits(found, next)) {
      if (found !== at) old.insertBefore(found, at);
      else at = at.nextSibling;
      morph(found, next);
    } else {
      old.insertBefore(next, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function fits(old, wanted) {
  return old.nodeType === wanted.nodeType && old.nodeName === wanted.nodeName && old.dataset?.key === wanted.dataset?.key;
}
