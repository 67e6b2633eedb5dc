// Configurations side by side, and curves with bands over seeds. All statistics are the server's, by ganlab_compare.
import { ask } from './api.js';
import { chart, smooth } from './chart.js';
import { el, finite, labelled, number, setOptions } from './dom.js';
import { get, set } from './state.js';
import { ink } from './theme.js';
import { table } from './table.js';

const AXES = {
  steps: ['step', () => 1],
  examples: ['examples', (one) => finite(one.examples_per_step)],
  time: ['seconds of training', (one) => finite(one.seconds_per_step)],
};

export function compareView(root, refresh) {
  const metric = el('select', { change: () => choose('metric', metric.value) });
  const better = el('select', { change: () => choose('better', better.value) });
  const axis = el('select', { change: () => choose('x', axis.value, true) });
  const log = el('input', { type: 'checkbox', change: () => choose('log', log.checked ? '1' : '', true) });
  const weight = el('input', { type: 'range', min: 0, max: 0.99, step: 0.01, input: () => choose('smooth', weight.value, true) });
  const filter = el('input', { type: 'search', placeholder: 'words, e.g. weight=10', input: () => choose('filter', filter.value, true) });
  const tableBox = el('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'Configurations' });
  const verdict = el('p', { className: 'note' });
  const notes = el('ul', { className: 'list note' });
  const noteBox = el('details', {}, el('summary', {}, 'Notes'), notes);
  const curves = chart('Curves');
  setOptions(better, [['', 'automatic'], ['max', 'higher is better'], ['min', 'lower is better']], get('better'));
  setOptions(axis, [['steps', 'steps'], ['examples', 'examples'], ['time', 'wall time']], get('x', 'steps'));
  log.checked = get('log') === '1';
  weight.value = get('smooth', '0');
  filter.value = get('filter');
  root.append(
    el('div', { className: 'controls' }, labelled('Filter', filter), labelled('Metric', metric), labelled('Better', better)),
    tableBox,
    verdict,
    el('div', { className: 'controls' }, labelled('x axis', axis), labelled('Smoothing', weight), el('label', { className: 'control row' }, log, 'log scale')),
    curves.box,
    noteBox,
  );
  let seen = '';
  let data = null;
  let tags = [];

  function choose(key, value, localOnly = false) {
    set(key, value);
    if (localOnly) show();
    else refresh();
  }

  function hidden() {
    return new Set(get('hidden').split('|').filter(Boolean));
  }

  function toggle(label, on) {
    const labels = hidden();
    if (on) labels.delete(label);
    else labels.add(label);
    set('hidden', [...labels].join('|'));
    show();
  }

  function show() {
    if (!data) return;
    const words = get('filter').toLowerCase().split(/\s+/).filter(Boolean);
    const rows = data.configurations
      .map((one, index) => ({ ...one, ...ink(index), shown: !hidden().has(one.label) }))
      .filter((one) => words.every((word) => textOf(one).includes(word)));
    const focus = document.activeElement?.dataset?.focus;
    tableBox.replaceChildren(table(data, rows, { sort: get('sort'), onSort: (key) => (set('sort', key), show()), onToggle: toggle }));
    if (focus) [...tableBox.querySelectorAll('[data-focus]')].find((e) => e.dataset.focus === focus)?.focus();
    verdict.textContent = data.verdicts?.[data.curve] ?? '';
    notes.replaceChildren(...(data.problems ?? []).map((problem) => el('li', {}, problem)));
    noteBox.hidden = !data.problems?.length;
    noteBox.firstChild.textContent = `Notes (${data.problems?.length ?? 0})`;
    draw(rows);
  }

  function draw(rows) {
    const [xTitle, factorOf] = AXES[Object.hasOwn(AXES, get('x')) ? get('x') : 'steps'];
    const by = new Map(data.curves.map((curve) => [curve.label, curve]));
    const smoothing = Number(get('smooth', '0')) || 0;
    const isLog = get('log') === '1';
    const lines = [];
    let lost = 0;
    let without = 0;
    let most = 0;
    for (const one of rows.filter((row) => row.shown && by.has(row.label))) {
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
      const band = Math.max(...curve.n) > 1 ? { low: curve.low.map(finite), high: curve.high.map(finite) } : {};
      const look = { colour: one.colour, dash: one.dash };
      if (smoothing) lines.push({ ...look, label: one.label, x, y: mean, faint: true });
      lines.push({ ...look, ...band, label: one.label, x, y: smooth(mean, smoothing) });
    }
    const says = [`Lines are means over seeds${most > 1 ? `, bands hold all ${most} of them` : ' (one seed)'}, at steps that every run has logged.`];
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

  return {
    destroy: curves.destroy,
    async refresh(current) {
      const way = get('better');
      const wanted = get('metric') || undefined;
      const query = { curve: wanted && way ? `${wanted}:${way}` : wanted };
      const first = ask('compare', query);
      const all = await ask('overview');
      const { data: found, text } = await first;
      if (!current()) return { text: '' };
      tags = all.data.metrics;
      if (text !== seen) {
        seen = text;
        data = found;
        setOptions(metric, tags, get('metric') || data.curve);
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
  return [one.label, ...settings].join(' ').toLowerCase();
}
