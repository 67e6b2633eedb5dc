// Elements. Texts become text nodes, whatever they hold: no text of a run is ever read as HTML.

/** Makes an element. Properties are set as such; `data`, `aria` and `role` as attributes; functions as listeners. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (key === 'role' || key.startsWith('aria-') || key.startsWith('data-')) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined).map(asNode));
  return element;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** Makes an element of a drawing: attributes, whose names are never those of a run, and functions as listeners. */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else element.setAttribute(key, String(value));
  }
  element.append(...children.map(asNode));
  return element;
}

/** A control with its name. */
export function labelled(text, control) {
  return el('label', { className: 'control' }, el('span', {}, text), control);
}

/** Gives a select its options, and keeps its value if that is still among them. Options are texts or [value, text]. */
export function setOptions(select, options, value) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  const now = JSON.stringify(pairs);
  if (select.dataset.options !== now) {
    select.replaceChildren(...pairs.map(([of, text]) => el('option', { value: of }, text)));
    select.dataset.options = now;
  }
  if (value !== undefined && pairs.some(([of]) => of === value)) select.value = value;
}

/** A number as text, with so many significant digits; a dash for none. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number') return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? Number(value.toPrecision(digits - 1)).toExponential() : String(Number(value.toPrecision(digits)));
}

/** Texts for the numbers of an axis, with as many digits as tell them apart; empty for null. */
export function ticks(values) {
  for (let digits = 4; ; digits += 2) {
    const texts = values.map((value) => (value === null ? '' : number(value, digits)));
    if (digits > 16 || new Set(texts).size === new Set(values).size) return texts;
  }
}

/** A number of JSON, in which those that are not finite are texts; null for these. */
export function finite(value) {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
