// Light and dark: TensorBoard's own switch if the tab can see it, else the system's. Colours that the colour-blind can
// tell apart: Okabe and Ito (2008), and ColorBrewer's PuOr for deviations.
const listeners = new Set();
const system = window.matchMedia('(prefers-color-scheme: dark)');

const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'];
const DARK = ['#56b4e9', '#e69f00', '#00b88a', '#e39bc2', '#f0e442', '#f2793d', '#ffffff'];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

function outside() {
  try {
    return window.parent === window ? null : window.parent.document.body;
  } catch {
    return null;
  }
}

export function isDark() {
  const body = outside();
  return (body?.classList.contains('dark-mode') ?? false) || system.matches;
}

/** The colour and the dashes of the i-th line: seven colours, then the same dashed. */
export function ink(index) {
  const colours = isDark() ? DARK : LIGHT;
  return { colour: colours[index % 7], dash: DASHES[Math.floor(index / 7) % 4] };
}

/** A colour of style.css. */
export function named(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const PUOR = [
  [127, 59, 8],
  [224, 130, 20],
  [253, 184, 99],
  [247, 247, 247],
  [178, 171, 210],
  [128, 115, 172],
  [45, 0, 75],
];

function mixed(stops, part) {
  const place = Math.max(0, Math.min(1, part)) * (stops.length - 1);
  const low = Math.min(stops.length - 2, Math.floor(place));
  return stops[low].map((one, i) => Math.round(one + (stops[low + 1][i] - one) * (place - low)));
}

/** Red, green and blue of a deviation from -1 to 1: orange below, violet above. */
export function diverging(part) {
  return mixed(PUOR, (Math.max(-1, Math.min(1, part)) + 1) / 2);
}

// From dark to light, as seen by anybody: a few colours of viridis, without its ends, which a background hides.
const RAMP = [
  [65, 68, 135],
  [42, 120, 142],
  [34, 168, 132],
  [122, 195, 64],
  [214, 190, 30],
];

/** A colour for each value of a setting: numbers that are many from dark to light, others as lines have them. */
export function palette(values) {
  const known = [...new Set(values.filter((value) => value !== undefined && value !== null))];
  const ramp = known.length > 3 && known.every((value) => typeof value === 'number');
  known.sort(ramp ? (a, b) => a - b : undefined);
  const colours = new Map(known.map((value, i) => [value, ramp ? `rgb(${mixed(RAMP, (isDark() ? 0.25 : 0) + (0.75 * i) / (known.length - 1)).join(', ')})` : ink(i).colour]));
  return { of: (value) => colours.get(value) ?? named('dim'), known };
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

/** Follows the theme, and calls a function at each change. */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function followTheme() {
  apply();
  system.addEventListener('change', apply);
  const body = outside();
  if (body) new MutationObserver(apply).observe(body, { attributes: true, attributeFilter: ['class'] });
}
