// Rows as lines over parallel axes, as points of a setting against a metric, and as pictures of their samples.
import { picture } from './api.js';
import { el, number, svg } from './dom.js';
import { order, swatch } from './table.js';

const HEIGHT = 330;
const TOP = 44;
const BOTTOM = 300;
const MISSING = 318;
const MOST_AXES = 10;
const MOST_PICTURED = 60;
const MOST_RUNS = 6;

/** Places of values between 0 and 1, and ticks: texts in order, numbers on a line, logarithmic from two decades on. */
function scaleOf(values) {
  const known = [...new Set(values.filter((value) => value !== undefined && value !== null))].sort(order);
  if (known.some((value) => typeof value !== 'number')) {
    const place = (value) => (known.includes(value) ? (known.indexOf(value) + 0.5) / known.length : null);
    return { place, ticks: known.map((value) => [place(value), String(value)]) };
  }
  const log = known[0] > 0 && known.at(-1) / known[0] >= 100;
  const on = log ? Math.log10 : (value) => value;
  const [low, high] = [on(known[0]), on(known.at(-1))];
  const place = (value) => (typeof value !== 'number' ? null : high > low ? (on(value) - low) / (high - low) : 0.5);
  const even = [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (high - low)).map((value) => (log ? 10 ** value : value));
  return { place, ticks: (known.length <= 6 ? known : even).map((value) => [place(value), number(value)]) };
}

const describe = (row, metric) => `${row.label}: ${number(metric.of(row))}`;
const drawing = (width, label, ...parts) => svg('svg', { class: 'plot', width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: 'img', 'aria-label': label }, ...parts);
const text = (x, y, said, anchor, full = said) => svg('text', { x, y, 'text-anchor': anchor }, said, svg('title', {}, full));
const cut = (said, most = 16) => (said.length > most ? `${said.slice(0, most - 1)}…` : said);

/** Lines over an axis for each setting, the metric last; `axes` have `name`, `full` and `of(row)`. */
export function parallel(box, rows, axes, onPin) {
  const used = [...axes.slice(0, -1).slice(0, MOST_AXES), axes.at(-1)];
  const width = Math.max(box.clientWidth, 120 * used.length);
  const x = (i) => 60 + (i * (width - 130)) / Math.max(1, used.length - 1);
  const scales = used.map((axis) => scaleOf(rows.map(axis.of)));
  const y = (place) => (place === null ? MISSING : BOTTOM - place * (BOTTOM - TOP));
  const lines = rows.map((row) => {
    const points = used.map((axis, i) => `${x(i)},${y(scales[i].place(axis.of(row)))}`).join(' ');
    return svg('polyline', { class: row.pinned ? 'line pinned' : 'line', points, stroke: row.colour, click: () => onPin(row) }, svg('title', {}, describe(row, used.at(-1))));
  });
  const marks = used.map((axis, i) => [
    svg('line', { class: 'axis', x1: x(i), x2: x(i), y1: TOP, y2: BOTTOM }),
    text(x(i), 16 + 14 * (i % 2), cut(axis.name, 22), 'middle', axis.full),
    ...scales[i].ticks.map(([place, said]) => text(x(i) + 5, y(place) + 4, cut(said), 'start', said)),
  ]);
  box.replaceChildren(drawing(width, 'Parallel coordinates', ...lines, ...marks.flat()));
}

/** A point for each row, with its interval if wanted. */
export function scatter(box, rows, across, metric, statistics, onPin) {
  const width = box.clientWidth || 360;
  const [xs, ys] = [scaleOf(rows.map(across.of)), scaleOf(rows.flatMap((row) => [metric.of(row), ...(statistics ? metric.ends(row) : [])]))];
  const x = (value) => (xs.place(value) === null ? 70 : 84 + xs.place(value) * (width - 124));
  const y = (value) => BOTTOM - 10 - ys.place(value) * (BOTTOM - 10 - TOP);
  const points = rows
    .filter((row) => ys.place(metric.of(row)) !== null)
    .flatMap((row) => {
      const [low, high] = statistics ? metric.ends(row) : [];
      const bar = typeof low === 'number' && typeof high === 'number' ? svg('line', { class: 'whisker', stroke: row.colour, x1: x(across.of(row)), x2: x(across.of(row)), y1: y(low), y2: y(high) }) : '';
      const dot = { class: row.pinned ? 'dot pinned' : 'dot', cx: x(across.of(row)), cy: y(metric.of(row)), r: row.pinned ? 7 : 5, fill: row.colour, click: () => onPin(row) };
      return [bar, svg('circle', dot, svg('title', {}, `${describe(row, metric)}; ${across.name} ${number(across.of(row))}`))];
    });
  const grid = ys.ticks.flatMap(([place, said]) => {
    const at = BOTTOM - 10 - place * (BOTTOM - 10 - TOP);
    return [svg('line', { class: 'axis', x1: 76, x2: width - 30, y1: at, y2: at }), text(70, at + 4, cut(said, 9), 'end', said)];
  });
  const letters = Math.max(12, Math.floor((width - 124) / xs.ticks.length / 4)); // in two rows, of about 7 pixels each
  const below = xs.ticks.map(([place, said], i) => text(84 + place * (width - 124), BOTTOM + 10 + 13 * (i % 2), cut(said, letters), 'middle', said));
  box.replaceChildren(drawing(width, `${metric.name} against ${across.name}`, ...grid, ...points, ...below, text(4, 20, metric.full, 'start')));
}

const pictures = new Map();

/** The newest picture of each run of each row. */
export function samples(box, rows, metric) {
  const made = rows.slice(0, MOST_PICTURED).map((row) => {
    const grids = row.runs.slice(0, MOST_RUNS).map((run) => el('figure', {}, newest(row, run), el('figcaption', {}, run.seed === null ? run.name : `seed ${run.seed}`, el('small', {}, run.status))));
    const more = row.runs.length > MOST_RUNS ? [el('p', { className: 'caption' }, `${row.runs.length - MOST_RUNS} more runs`)] : [];
    return el('tr', {}, el('th', { scope: 'row', title: row.label }, swatch(row), row.short, el('small', {}, `${metric?.name ?? ''} ${metric ? number(metric.of(row)) : ''}`)), el('td', {}, el('div', { className: 'thumbs' }, grids, more)));
  });
  const rest = rows.length > made.length ? [el('p', { className: 'caption' }, `The first ${made.length} of ${rows.length} ticked rows: filter to see others.`)] : [];
  box.replaceChildren(...rest, el('table', { className: 'pictured' }, el('tbody', {}, made)));
}

function newest(row, run) {
  const address = `${picture(run.id, 'last')}&at=${run.step}`;
  if (!pictures.has(address)) {
    const none = el('p', { className: 'empty' }, 'no samples yet');
    const failed = () => (pictures.set(address, none), image.replaceWith(none));
    const image = el('img', { src: address, alt: `Newest samples of ${run.name}`, loading: 'lazy', error: failed });
    pictures.set(address, image);
  }
  return pictures.get(address);
}
