// The table of configurations: name and chosen metric stay in view, then settings that differ, states, other metrics.
import { el, number } from './dom.js';

// More columns could not be read; labels name all settings.
const MOST_SETTINGS = 60;

/** The table, and its rows in order. `made` keeps rows that have not changed since the last call. `look` has `sort` (a column's key, a minus in front for falling), `chosen` (a tag) and `statistics`. */
export function table(data, rows, look, made, { onSort, onToggle, onPin, onAll }) {
  const columns = columnsOf(data, look);
  const key = look.sort.replace(/^-/, '');
  const falling = look.sort.startsWith('-');
  const head = columns.map((one, i) => {
    const mine = one.key === key;
    const next = mine && !falling ? `-${one.key}` : mine ? '' : one.key;
    const button = el('button', { type: 'button', title: one.title, 'data-focus': `sort ${one.key}`, click: () => onSort(next) }, one.text, mine ? (falling ? ' ▼' : ' ▲') : '');
    const all = el('input', { type: 'checkbox', checked: rows.every((row) => row.shown), 'aria-label': 'draw all rows', 'data-focus': 'draw all', change: () => onAll(all.checked) });
    const direction = mine ? (falling ? 'descending' : 'ascending') : 'none';
    return el('th', { scope: 'col', className: one.className ?? '', 'aria-sort': direction }, i ? null : all, button, one.small ? el('small', {}, one.small) : null);
  });
  const sorted = sortedBy(columns.find((one) => one.key === key), rows, falling);
  const body = sorted.map((row) => {
    const stamp = [look.version, look.chosen, look.statistics, row.shown, row.pinned, row.colour].join();
    const known = made.get(row.id);
    if (known?.stamp === stamp) return known.line;
    const box = el('input', { type: 'checkbox', checked: row.shown, 'aria-label': `draw ${row.label}`, 'data-focus': `draw ${row.label}`, change: () => onToggle(row, box.checked) });
    box.style.accentColor = row.colour;
    const pin = el('button', { type: 'button', className: 'pin', title: 'Keep on top', 'aria-label': `pin ${row.label}`, 'aria-pressed': String(row.pinned), 'data-focus': `pin ${row.label}`, click: () => onPin(row) }, row.pinned ? '★' : '☆');
    const name = el('th', { scope: 'row', className: 'name', title: row.label }, el('div', {}, box, pin, swatch(row), el('span', {}, row.short)));
    const line = el('tr', { className: row.pinned ? 'pinned' : '' }, name, columns.slice(1).map((one) => el('td', { className: one.className ?? '', title: one.hint?.(row) ?? '' }, ...one.cell(row))));
    made.set(row.id, { stamp, line });
    return line;
  });
  return { table: el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)), rows: sorted };
}

/** A piece of a row's line. */
export function swatch(look) {
  const piece = el('span', { className: 'swatch' });
  piece.style.borderTopColor = look.colour;
  piece.style.borderTopStyle = look.dash?.length ? 'dashed' : 'solid';
  return piece;
}

function sortedBy(column, rows, falling) {
  const sorted = column ? [...rows].sort((a, b) => order(column.value(a), column.value(b), falling)) : rows;
  return [...sorted.filter((row) => row.pinned), ...sorted.filter((row) => !row.pinned)];
}

function columnsOf(data, { chosen, statistics }) {
  const short = (name) => data.names?.[name] ?? name;
  const settings = (data.differing ?? []).slice(0, MOST_SETTINGS).map((name) => ({
    key: `s:${name}`,
    text: short(name),
    title: name,
    className: 'setting',
    value: (row) => row.settings[name],
    hint: (row) => String(row.settings[name] ?? ''),
    cell: (row) => [number(row.settings[name])],
  }));
  const metrics = (data.metrics ?? []).flatMap(({ tag, direction }) => {
    const value = (row) => row.last[tag]?.mean;
    const mean = { key: `m:${tag}`, text: short(tag), title: tag, small: statistics ? 'mean [95% interval] or range' : '', value, cell: (row) => (statistics ? estimate(row.last[tag]) : [number(value(row))]) };
    const better = { key: `p:${tag}`, text: 'P(better)', title: `Probability that a run is better in ${tag}`, small: direction === 'max' ? 'higher is better' : 'lower is better', value: (row) => row.improvement[tag]?.probability, cell: (row) => improvement(row, tag, data) };
    return statistics && direction ? [mean, better] : [mean];
  });
  const isMain = (one) => one.key.slice(2) === chosen;
  const main = metrics.filter(isMain).map((one) => (one.key.startsWith('m:') ? { ...one, className: 'chosen' } : one));
  const name = { key: 'label', text: 'Configuration', title: 'Configuration', className: 'name', value: (row) => row.label };
  const runs = { key: 'n', text: 'Runs', title: 'Runs and their state', value: (row) => row.runs.length, cell: runsOf };
  return [name, ...main, ...settings, runs, ...metrics.filter((one) => !isMain(one))];
}

function estimate(found) {
  if (!found) return ['–'];
  const kind = found.method === 'range' ? 'range ' : '';
  const interval = found.low === null ? 'one run' : `${kind}[${number(found.low)}, ${number(found.high)}]`;
  return [number(found.mean), el('small', {}, `${interval} n=${found.n}`)];
}

function improvement(row, tag, data) {
  const found = row.improvement[tag];
  if (!found) return [data.leading?.[tag] === row.label ? 'best, beyond chance' : '–'];
  const said = { better: 'better', worse: 'worse', open: 'may be chance' }[found.verdict] ?? '';
  const why = `${said}, against ${found.against}; p = ${number(found.p)}, ${found.comparisons} differences looked at`;
  return [`${number(found.probability)} [${number(found.low)}, ${number(found.high)}]`, el('small', { title: why }, `${said}, against ${found.against}`)];
}

function runsOf(row) {
  const counts = new Map();
  for (const run of row.runs) counts.set(run.status, (counts.get(run.status) ?? 0) + 1);
  const unhealthy = row.runs.filter((run) => run.unhealthy).length;
  const states = [...counts].map(([status, count]) => (count === row.runs.length && status === 'completed' ? count : `${count} ${status}`));
  return [states.join(', '), unhealthy ? el('span', { className: 'bad' }, `, ${unhealthy} unhealthy`) : ''];
}

/** The order of two values; missing ones come last either way. */
export function order(a, b, falling) {
  const missing = (value) => value === undefined || value === null;
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const rising = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
  return falling ? -rising : rising;
}
