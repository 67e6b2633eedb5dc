// Data of the server, beside this module. Nothing else is ever asked for.
function address(route, query = {}) {
  const url = new URL(`./data/${route}`, import.meta.url);
  for (const [key, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== '') url.searchParams.append(key, one);
    }
  }
  return url;
}

let ready = Promise.resolve();

/** Answers are handed out only after a promise: the page's styles, by whose sizes views draw. */
export function after(promise) {
  ready = promise;
}

/** An object without a prototype, at every level: no name in a run finds what every object of JavaScript inherits. */
function bare(value) {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value)) Object.setPrototypeOf(value, null);
  else if (typeof value[0] !== 'object') return value;
  Object.values(value).forEach(bare);
  return value;
}

/** The answer of a route, and its text, by which a view sees whether anything has changed. */
export async function ask(route, query) {
  const response = await fetch(address(route, query), { credentials: 'same-origin' });
  const text = await response.text();
  await ready;
  let data;
  try {
    data = bare(JSON.parse(text));
  } catch {
    throw new Error(`The server answered ${response.status}.`);
  }
  if (data.error) throw new Error(data.error);
  return { data, text };
}

/** The address of a picture of samples. */
export function picture(run, step) {
  return address('sample', { run, step }).href;
}
