// The table of configurations: settings that differ, means with intervals, probabilities of improvement.
import { el, number } from './dom.js';

// More columns could not be read; labels name all settings.
const MOST_SETTINGS = 60;

/** The table. `sort` is a column's key, with a minus in front for falling. */
export function table(data, rows, { sort, onSort, onToggle }) {
  const columns = columnsOf(data);
  const key = sort.replace(/^-/, '');
  const falling = sort.startsWith('-');
  const column = columns.find((one) => one.key === key);
  const sorted = column ? [...rows].sort((a, b) => order(column.value(a), column.value(b), falling)) : rows;
  const head = columns.map((one) => {
    const mine = one.key === key;
    const button = el(
      'button',
      { type: 'button', title: one.title, 'data-focus': `sort ${one.key}`, click: () => onSort(mine && !falling ? `-${one.key}` : mine ? '' : one.key) },
      one.text,
      mine ? (falling ? ' ▼' : ' ▲') : '',
    );
    return el('th', { scope: 'col', 'aria-sort': mine ? (falling ? 'descending' : 'ascending') : 'none' }, button, one.small ? el('small', {}, one.small) : null);
  });
  const body = sorted.map((row) => {
    const box = el('input', { type: 'checkbox', checked: row.shown, 'aria-label': `draw ${row.label}`, 'data-focus': `draw ${row.label}`, change: () => onToggle(row.label, box.checked) });
    const swatch = el('span', { className: 'swatch' });
    swatch.style.borderTopColor = row.colour;
    swatch.style.borderTopStyle = row.dash.length ? 'dashed' : 'solid';
    const cells = columns.slice(1).map((one) => one.cell(row));
    return el('tr', {}, el('th', { scope: 'row' }, box, swatch, row.label), cells);
  });
  return el('table', {}, el('thead', {}, el('tr', {}, head)), el('tbody', {}, body));
}

function columnsOf(data) {
  const columns = [{ key: 'label', text: 'Configuration', title: 'Configuration', value: (row) => row.label }];
  for (const name of (data.differing ?? []).slice(0, MOST_SETTINGS)) {
    columns.push({
      key: `s:${name}`,
      text: name.split('.').slice(-2).join('.'),
      title: name,
      value: (row) => row.settings[name],
      cell: (row) => el('td', { className: 'setting', title: String(row.settings[name] ?? '') }, number(row.settings[name])),
    });
  }
  columns.push({ key: 'n', text: 'Runs', title: 'Runs and their state', value: (row) => row.runs.length, cell: runsCell });
  for (const { tag, direction } of data.metrics ?? []) {
    columns.push({
      key: `m:${tag}`,
      text: tag.replace(/^evaluation\//, ''),
      title: tag,
      small: 'mean [95% interval] or range',
      value: (row) => row.last[tag]?.mean,
      cell: (row) => el('td', {}, ...estimate(row.last[tag])),
    });
    if (!direction) continue;
    columns.push({
      key: `p:${tag}`,
      text: 'P(better)',
      title: `Probability that a run is better in ${tag}`,
      small: direction === 'max' ? 'higher is better' : 'lower is better',
      value: (row) => row.improvement[tag]?.probability,
      cell: (row) => improvementCell(row, tag, data),
    });
  }
  return columns;
}

function estimate(found) {
  if (!found) return ['–'];
  const kind = found.method === 'range' ? 'range ' : '';
  const interval = found.low === null ? 'one run' : `${kind}[${number(found.low)}, ${number(found.high)}]`;
  return [number(found.mean), el('small', {}, `${interval} n=${found.n}`)];
}

function improvementCell(row, tag, data) {
  const found = row.improvement[tag];
  if (!found) return el('td', {}, data.leading?.[tag] === row.label ? 'best, beyond chance' : '–');
  const said = { better: 'better', worse: 'worse', open: 'may be chance' }[found.verdict] ?? '';
  return el(
    'td',
    { title: `against ${found.against}; p = ${number(found.p)}, ${found.comparisons} differences looked at` },
    `${number(found.probability)} [${number(found.low)}, ${number(found.high)}]`,
    el('small', {}, `${said}, against ${found.against}`),
  );
}

function runsCell(row) {
  const counts = new Map();
  for (const run of row.runs) counts.set(run.status, (counts.get(run.status) ?? 0) + 1);
  const unhealthy = row.runs.filter((run) => run.unhealthy).length;
  const states = [...counts].map(([status, count]) => `${count} ${status}`);
  return el('td', {}, row.runs.length, el('small', { className: unhealthy ? 'bad' : '' }, [...states, ...(unhealthy ? [`${unhealthy} unhealthy`] : [])].join(', ')));
}

function order(a, b, falling) {
  const missing = (value) => value === undefined || value === null;
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  const rising = typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
  return falling ? -rising : rising;
}
