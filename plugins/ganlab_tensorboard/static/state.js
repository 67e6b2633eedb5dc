// What the reader chose, in the address: in TensorBoard's, as `#ganlab&p.ganlab.view=compare`, so that it can be shared.
const PREFIX = 'p.ganlab.';
const LONGEST = 4000;

function top() {
  try {
    if (window.parent !== window && window.parent.location.origin === window.location.origin) return window.parent;
  } catch {
    // another origin: a page of theirs around ours
  }
  return window;
}

function parts() {
  return top().location.hash.replace(/^#/, '').split('&').filter(Boolean);
}

function decoded(text) {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return '';
  }
}

const values = new Map();
for (const part of parts()) {
  const at = part.indexOf('=');
  if (part.startsWith(PREFIX) && at > 0) values.set(part.slice(PREFIX.length, at), decoded(part.slice(at + 1)));
}

/** A choice; the default if there is none. */
export function get(key, fallback = '') {
  return values.get(key) ?? fallback;
}

/** Sets a choice; an empty one is left out of the address. */
export function set(key, value) {
  const text = String(value ?? '');
  if (text === '') values.delete(key);
  else values.set(key, text.slice(0, LONGEST));
  write();
}

function write() {
  const own = [...values].map(([key, value]) => `${PREFIX}${key}=${encodeURIComponent(value)}`);
  const others = parts().filter((part) => !part.startsWith(PREFIX));
  const page = top();
  const plugin = page === window || others.length ? [] : ['ganlab'];
  const { pathname, search } = page.location;
  try {
    page.history.replaceState(page.history.state, '', `${pathname}${search}#${[...plugin, ...others, ...own].join('&')}`);
  } catch {
    // too many changes in a moment: the next one writes all of them
  }
}
