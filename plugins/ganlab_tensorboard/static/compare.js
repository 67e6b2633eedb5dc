// Configurations side by side: a table to browse, and curves, plots or samples of its rows. All statistics are the
// server's, by ganlab_compare.
import { ask } from './api.js';
import { chart, smooth } from './chart.js';
import { el, finite, labelled, number, setOptions } from './dom.js';
import { parallel, samples, scatter } from './plots.js';
import { query } from './query.js';
import { get, set } from './state.js';
import { swatch, table } from './table.js';
import { ink, onTheme, palette } from './theme.js';

const AXES = {
  steps: ['step', () => 1],
  examples: ['examples', (one) => finite(one.examples_per_step)],
  time: ['seconds of training', (one) => finite(one.seconds_per_step)],
};
const PANELS = { curves: 'Curves', parallel: 'Parallel coordinates', scatter: 'Scatter', samples: 'Samples' };
const BY = [['', 'all settings but the seed'], ['*', 'nothing: each run']];

// As many curves as the server sends, and as can be told apart.
const MOST_DRAWN = 20;

// What runs have beside settings and metrics, to filter by.
const OF_RUNS = ['status', 'seed', 'step', 'name'];

// Milliseconds after the last key before curves of other rows are asked for.
const PAUSE = 250;

export function compareView(root, refresh) {
  const choice = (key, options, local, fallback = '') => {
    const select = el('select', { change: () => choose(key, select.value, local) });
    setOptions(select, options, get(key, fallback));
    return select;
  };
  const flag = (key, name) => {
    const box = el('input', { type: 'checkbox', checked: get(key) === '1', change: () => choose(key, box.checked ? '1' : '', true) });
    return el('label', { className: 'control row' }, box, name);
  };
  const metric = choice('metric', [], false);
  const better = choice('better', [['', 'automatic'], ['max', 'higher is better'], ['min', 'lower is better']], false);
  const by = choice('by', BY, false);
  const colour = choice('colour', [], true);
  const across = choice('across', [], true);
  const axis = choice('x', [['steps', 'steps'], ['examples', 'examples'], ['time', 'wall time']], true, 'steps');
  const weight = el('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value: get('smooth', '0'), input: () => choose('smooth', weight.value, true) });
  const filter = el('input', { type: 'search', placeholder: 'lr>0.001 modes>=6 -clipping', value: get('filter'), input: () => choose('filter', filter.value, true) });
  const statistics = el('button', { type: 'button', className: 'plain', click: () => choose('stats', get('stats') ? '' : '1', true) }, 'Statistics');
  const found = el('p', { className: 'note', role: 'status' });
  const tableBox = el('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Configurations' });
  const constants = el('details', { className: 'constants' }, el('summary', {}), el('p', { className: 'note' }));
  const verdict = el('p', { className: 'note' });
  const notes = el('ul', { className: 'list note' });
  const noteBox = el('details', {}, el('summary', {}, 'Notes'), notes);
  const curves = chart('Curves');
  const legend = el('ul', { className: 'legend' });
  const plot = el('div', { className: 'drawn', tabIndex: 0, role: 'region', 'aria-label': 'Plot' });
  const panels = Object.entries(PANELS).map(([name, title]) => el('button', { type: 'button', className: 'plain', 'data-panel': name, click: () => choose('show', name, name !== 'curves') }, title));
  const ofCurves = el('div', { className: 'controls' }, labelled('x axis', axis), labelled('Smoothing', weight), flag('log', 'log scale'));
  const ofScatter = el('div', { className: 'controls' }, labelled('Setting', across));
  const find = labelled('Filter', filter);
  find.classList.add('wide');
  root.append(
    el('div', { className: 'controls' }, find, labelled('Metric', metric), labelled('Better', better), labelled('Group by', by), labelled('Colour by', colour), flag('only', 'ticked rows only'), statistics),
    found,
    tableBox,
    constants,
    verdict,
    el('div', { className: 'controls', role: 'group', 'aria-label': 'Below the table' }, panels),
    legend,
    ofCurves,
    ofScatter,
    curves.box,
    plot,
    noteBox,
  );
  let seen = '';
  let data = null;
  let asked = null;
  let version = 0;
  const rowLines = new Map();
  let timer = 0;

  function choose(key, value, localOnly) {
    set(key, value);
    show();
    if (!localOnly) refresh();
  }

  const list = (key) => new Set(get(key).split('|').filter(Boolean));

  /** Adds rows to a list in the address, or removes them; a list may have labels, from before rows had ids. */
  function mark(key, rows, on) {
    const marked = list(key);
    for (const row of rows) {
      marked.delete(row.label);
      if (on) marked.add(row.id);
      else marked.delete(row.id);
    }
    choose(key, [...marked].join('|'), true);
  }

  const panel = () => (Object.hasOwn(PANELS, get('show')) ? get('show') : 'curves');
  const shortOf = (name) => data.names?.[name] ?? name;

  function rowsOf() {
    const [hidden, pins, colourBy] = [list('hidden'), list('pin'), get('colour')];
    const colours = colourBy ? palette(data.configurations.map((one) => valueOf(one, colourBy))) : null;
    const rows = data.configurations.map((one, index) => ({
      ...one,
      ...(colours ? { colour: colours.of(valueOf(one, colourBy)), dash: [] } : ink(index)),
      shown: !hidden.has(one.id) && !hidden.has(one.label),
      pinned: pins.has(one.id),
      text: textOf(one),
      values: (name) => (OF_RUNS.includes(name) ? one.runs.map((run) => run[name]) : [valueOf(one, name)]),
    }));
    legend.replaceChildren(...(colours?.known ?? []).map((value) => el('li', {}, swatch({ colour: colours.of(value) }), number(value))));
    return rows;
  }

  function valueOf(row, name) {
    const known = row.settings[name] ?? row.last[name]?.mean;
    return known === undefined && hasPart(row, name) ? data.common[name] : known;
  }

  /** Whether a row has the part that a setting such as `constraints.r1.weight` belongs to: common ones need not be of all. */
  function hasPart(row, name) {
    const [kind, part, parameter] = name.split('.');
    const named = [kind, kind.replace(/s$/, '')].map((key) => row.settings[key] ?? data.common[key]).find((value) => value !== undefined);
    return parameter === undefined || named === undefined || String(named).split(/[^\w]+/).includes(part);
  }

  function show() {
    if (!data) return;
    const all = rowsOf();
    const { accepts, problems } = query(get('filter'), [...OF_RUNS, ...data.differing, ...data.metrics.map((one) => one.tag)], Object.keys(data.common));
    const rows = all.filter((row) => (row.pinned || accepts(row)) && (row.shown || get('only') !== '1'));
    const hidden = all.length - rows.length;
    found.textContent = [...problems, hidden ? `${rows.length} of ${all.length} rows.` : ''].join(' ');
    const focus = document.activeElement?.dataset?.focus;
    const sort = get('sort') || bestFirst();
    const look = { version, sort, chosen: data.curve, statistics: get('stats') === '1' };
    const made = table(data, rows, look, rowLines, {
      onSort: (key) => choose('sort', key, true),
      onToggle: (row, on) => mark('hidden', [row], !on),
      onPin: (row) => mark('pin', [row], !row.pinned),
      onAll: (on) => mark('hidden', rows, !on),
    });
    tableBox.replaceChildren(made.table);
    if (focus) [...tableBox.querySelectorAll('[data-focus]')].find((e) => e.dataset.focus === focus)?.focus();
    statistics.setAttribute('aria-pressed', String(look.statistics));
    verdict.textContent = look.statistics ? (data.verdicts?.[data.curve] ?? '') : '';
    const same = Object.entries(data.common ?? {}).map(([name, value]) => `${name.split('.').slice(-2).join('.')}=${number(value)}`);
    constants.hidden = !same.length;
    constants.firstChild.textContent = `The same in all: ${same.length} settings: ${same.slice(0, 12).join(', ')}`;
    constants.lastChild.textContent = same.join(', ');
    notes.replaceChildren(...(data.problems ?? []).map((problem) => el('li', {}, problem)));
    noteBox.hidden = !data.problems?.length;
    noteBox.firstChild.textContent = `Notes (${data.problems?.length ?? 0})`;
    draw(made.rows.filter((row) => row.shown), look.statistics);
  }

  function bestFirst() {
    const direction = data.metrics.find((one) => one.tag === data.curve)?.direction;
    return direction ? `${direction === 'max' ? '-' : ''}m:${data.curve}` : '';
  }

  function draw(rows, wantsEnds) {
    const chosen = panel();
    for (const button of panels) button.setAttribute('aria-pressed', String(button.dataset.panel === chosen));
    ofCurves.hidden = curves.box.hidden = chosen !== 'curves';
    ofScatter.hidden = chosen !== 'scatter';
    plot.hidden = chosen === 'curves';
    plot.dataset.width = plot.clientWidth;
    if (chosen === 'curves') return drawCurves(rows);
    const last = (row) => row.last[data.curve];
    const main = { name: shortOf(data.curve), full: data.curve, of: (row) => finite(last(row)?.mean), ends: (row) => [finite(last(row)?.low), finite(last(row)?.high)] };
    const settings = data.differing.map((name) => ({ name: shortOf(name), full: name, of: (row) => row.settings[name] }));
    const pin = (row) => mark('pin', [row], !row.pinned);
    if (!data.curve || (!rows.length && chosen !== 'samples')) plot.replaceChildren(el('p', { className: 'empty' }, 'No row to draw.'));
    else if (chosen === 'samples') samples(plot, rows, main);
    else if (!settings.length) plot.replaceChildren(el('p', { className: 'empty' }, 'These rows differ in no setting.'));
    else if (chosen === 'parallel') parallel(plot, rows, [...settings, main], pin);
    else scatter(plot, rows, settings.find((one) => one.full === across.value) ?? settings[0], main, wantsEnds, pin);
  }

  function drawCurves(rows) {
    const wanted = rows.slice(0, MOST_DRAWN);
    const by = new Map(data.curves.map((curve) => [curve.label, curve]));
    const ids = wanted.map((row) => row.id).join('|');
    if (ids !== asked && !wanted.every((row) => by.has(row.label))) {
      asked = ids;
      clearTimeout(timer);
      timer = setTimeout(refresh, PAUSE);
    }
    const [xTitle, factorOf] = AXES[Object.hasOwn(AXES, get('x')) ? get('x') : 'steps'];
    const smoothing = Number(get('smooth', '0')) || 0;
    const isLog = get('log') === '1';
    const lines = [];
    let lost = 0;
    let without = 0;
    let most = 0;
    for (const one of wanted.filter((row) => by.has(row.label))) {
      const curve = by.get(one.label);
      const factor = factorOf(one);
      if (!factor) {
        without += 1;
        continue;
      }
      const x = curve.steps.map((step) => step * factor);
      const mean = curve.mean.map(finite);
      most = Math.max(most, ...curve.n);
      if (isLog) lost += mean.filter((value) => value !== null && value <= 0).length;
      const band = Math.max(...curve.n) > 1 && wanted.length <= 8 ? { low: curve.low.map(finite), high: curve.high.map(finite) } : {};
      const look = { colour: one.colour, dash: one.dash };
      if (smoothing) lines.push({ ...look, label: one.short, x, y: mean, faint: true });
      lines.push({ ...look, ...band, label: one.short, x, y: smooth(mean, smoothing) });
    }
    const bands = wanted.length <= 8 ? `, bands hold all ${most} of them` : '';
    const says = [`Lines are means over seeds${most > 1 ? bands : ' (one seed)'}, at steps that every run that reached them has logged.`];
    if (rows.length > wanted.length) says.unshift(`The first ${wanted.length} of ${rows.length} ticked rows: filter, pin or untick to see others.`);
    if (smoothing) says.push(`Smoothed: an exponential moving average of the means with weight ${smoothing}, without the bias of its start; faint lines are as measured, bands are not smoothed.`);
    if (lost) says.push(`${lost} points that are not positive are left out of the log scale.`);
    if (get('x') === 'time') says.push('Wall time is the step times the mean seconds per step of the configuration.');
    if (get('x') === 'examples') says.push('Examples are real examples that the critic saw: step × batch size × critic steps.');
    if (without) says.push(`${without} configurations lack what this axis needs.`);
    if (data.curve_problem) says.push(data.curve_problem);
    if (data.pending) says.push(`Still reading ${data.pending} long files: few points until then.`);
    curves.box.firstChild.textContent = data.curve ?? 'Curves';
    curves.draw({ lines, xTitle, yTitle: '', log: isLog, describe: says.join(' '), empty: 'No run has logged this metric yet.' });
  }

  const off = onTheme(show);
  const resized = new ResizeObserver(() => panel() !== 'curves' && plot.dataset.width !== String(plot.clientWidth) && show());
  resized.observe(plot);
  return {
    destroy() {
      off();
      resized.disconnect();
      clearTimeout(timer);
      curves.destroy();
    },
    async refresh(current) {
      const wanted = get('metric') || undefined;
      const way = get('better');
      const asking = (curve) => ask('compare', { curve, by: get('by'), draw: panel() === 'curves' ? asked?.split('|') : ['none'] });
      const first = asking(wanted && way ? `${wanted}:${way}` : wanted);
      const all = await ask('overview');
      let { data: answer, text } = await first;
      if (way && !wanted && answer.curve) ({ data: answer, text } = await asking(`${answer.curve}:${way}`));
      if (!current()) return { text: '' };
      if (text !== seen) {
        seen = text;
        version += 1;
        rowLines.clear();
        data = { common: {}, differing: [], ...answer };
        setOptions(metric, all.data.metrics.map((tag) => [tag, tag.replace(/^evaluation\//, '')]), get('metric') || data.curve);
        setOptions(by, [...BY, ...(data.groups ?? [])], get('by'));
        setOptions(colour, [['', 'row'], ...data.differing, ...data.metrics.map((one) => one.tag)], get('colour'));
        setOptions(across, data.differing, get('across'));
        show();
      }
      const count = (status) => all.data.runs.filter((run) => run.status === status).length;
      const stopped = ['killed', 'interrupted', 'failed', 'diverged'].filter(count).map((status) => `, ${count(status)} ${status}`);
      const reading = data.pending ? `, reading ${data.pending} long files` : '';
      return { text: `${all.data.runs.length} runs, ${count('running')} training${stopped.join('')}${reading}`, pending: data.pending };
    },
  };
}

function textOf(one) {
  const settings = Object.entries(one.settings).map(([name, value]) => `${name}=${number(value)}`);
  return [one.label, ...settings, ...one.runs.flatMap((run) => [run.name, run.status])].join(' ').toLowerCase();
}
