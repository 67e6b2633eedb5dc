// What constraints and diagnostics logged of one run: charts that know their metrics, and a chart for each of the others.
import { ask } from './api.js';
import { chart } from './chart.js';
import { el, finite, labelled } from './dom.js';
import { runPicker } from './picker.js';
import { get, set } from './state.js';
import { ink } from './theme.js';

const INTERVAL = 'diagnostics/lipschitz_interval/';
const NORMS = 'diagnostics/gradient_norms/';
const SLOPES = 'diagnostics/slopes/';
const ERROR = 'diagnostics/wasserstein_error/';
const WEIGHTS = 'diagnostics/weights/at_largest';
// What constraints log of the same.
const OF_CONSTRAINTS = /^constraints\/.*\/(lipschitz_bound|saturated|slope|steepest)$/;
const MOST = 60;

// Charts of metrics that this view does not know, and lines of one.
const MOST_OTHERS = 12;
// How many times as large a metric is that gets a chart of its own.
const APART = 100;
const OTHERS = /^((?:generator_)?constraints\/[^/]+|diagnostics\/[^/]+)\//;

// Metrics of diagnostics that are asked for before others, and those of layers.
const FIRST = [INTERVAL, NORMS, SLOPES, ERROR];
const LAYERS = /^diagnostics\/gradient_norms\/(activations|weights)\//;

const line = (name) => `experiment.diagnostics = [@diagnostics.${name}()]`;

export function lipschitzView(root, refresh) {
  const picker = runPicker(refresh);
  const log = el('input', { type: 'checkbox', checked: get('llog') === '1', change: () => (set('llog', log.checked ? '1' : ''), show()) });
  const slider = el('input', { type: 'range', min: 0, max: 0, step: 1, input: slide });
  const said = el('output', {});
  const charts = {
    interval: chart('Lipschitz constant: between attacked and certified'),
    norms: chart('Gradient norms of the critic’s loss, by layer'),
    distance: chart('Wasserstein-1: the critic’s estimate and the exact distance'),
    slopes: chart('Slopes of the critic'),
    saturation: chart('Weights at the limit'),
  };
  const stepControl = labelled('Step of the gradient norms', slider);
  stepControl.classList.add('wide');
  charts.norms.box.insertBefore(el('div', { className: 'controls' }, stepControl, said), charts.norms.box.children[1]);
  const health = el('ul', { className: 'list' });
  const missing = el('ul', { className: 'list' });
  const lacking = el('details', {}, el('summary', {}, 'What can be logged, too'), missing);
  const others = new Map();
  const grid = el('div', { className: 'grid' }, el('section', { className: 'chart' }, el('figcaption', {}, 'Health'), health), ...Object.values(charts).map((one) => one.box));
  root.append(
    el('div', { className: 'controls' }, labelled('Run', picker.select), el('label', { className: 'control row' }, log, 'log scale')),
    grid,
    lacking,
  );
  let run = null;
  let series = {};
  let seen = '';

  // The metrics that charts of this view have drawn.
  const drawn = new Set();
  const points = (tag) => drawn.add(tag) && ({ x: series[tag]?.steps ?? [], y: (series[tag]?.values ?? []).map(finite) });
  const lineOf = (tag, label, index, more = {}) => ({ ...ink(index), label, ...points(tag), ...more });
  const has = (tag) => Boolean(series[tag]?.steps.length);
  const ofConstraints = (...names) => Object.keys(series).filter((tag) => OF_CONSTRAINTS.test(tag) && names.includes(tag.split('/').at(-1)) && has(tag));

  /** Draws what was logged, or hides the chart: the card of what was not logged names it. */
  function draw(one, what) {
    const lines = what.lines.filter((each) => each.x.length);
    one.box.hidden = !lines.length;
    if (lines.length) one.draw({ ...what, lines });
  }

  function slide() {
    const steps = normSteps();
    set('lstep', steps[Number(slider.value)] ?? '');
    drawNorms();
  }

  function normSteps() {
    return [...new Set(Object.keys(series).filter((tag) => tag.startsWith(NORMS)).flatMap((tag) => series[tag].steps))].sort((a, b) => a - b);
  }

  function drawNorms() {
    const steps = normSteps();
    const wanted = get('lstep') === '' ? Infinity : Number(get('lstep'));
    const step = steps.filter((one) => one <= wanted).at(-1) ?? steps[0];
    slider.max = Math.max(0, steps.length - 1);
    slider.value = Math.max(0, steps.indexOf(step));
    said.textContent = step === undefined ? '' : `step ${step}`;
    slider.setAttribute('aria-valuetext', said.textContent);
    const layers = [...new Set(Object.keys(series).filter((tag) => LAYERS.test(tag)).map((tag) => tag.slice(NORMS.length).replace(/^(activations|weights)\//, '')))];
    const at = (kind, layer) => {
      const found = series[`${NORMS}${kind}/${layer}`];
      const index = found ? found.steps.indexOf(step) : -1;
      return index < 0 ? null : finite(found.values[index]);
    };
    const lines = ['activations', 'weights'].map((kind, i) => ({ ...ink(i), label: `by ${kind}`, x: layers.map((_, j) => j), y: layers.map((layer) => at(kind, layer)) }));
    const positive = lines.some((one) => one.y.some((value) => value > 0));
    draw(charts.norms, { lines: layers.length ? lines : [], ticks: layers, xRange: [-0.3, layers.length - 0.7], xTitle: 'layer', log: positive, describe: positive ? 'Log scale, input to output. A straight falling or rising line: gradients vanish or explode.' : '' });
  }

  function show() {
    if (!run) return;
    const isLog = get('llog') === '1';
    drawn.clear();
    const common = { xTitle: 'step', log: isLog };
    const bounds = ofConstraints('lipschitz_bound');
    const lower = points(`${INTERVAL}lower`);
    const upper = points(`${INTERVAL}upper`);
    const both = has(`${INTERVAL}lower`) && has(`${INTERVAL}upper`);
    const lines = [];
    if (has(`${INTERVAL}lower`)) {
      const band = both ? { low: lower.y, high: lower.x.map((step) => upper.y[upper.x.indexOf(step)] ?? null) } : {};
      lines.push({ ...ink(0), label: 'attacked: the steepest slope found', ...lower, ...band });
    }
    if (has(`${INTERVAL}upper`)) lines.push(lineOf(`${INTERVAL}upper`, 'certified: no slope is steeper', 1));
    bounds.forEach((tag, i) => lines.push(lineOf(tag, tag.replace(/^constraints\//, ''), 2 + i)));
    draw(charts.interval, { ...common, lines, describe: lines.length ? (both ? 'The constant is in the band.' : bounds.length ? 'A bound from above, of a constraint.' : 'Only a bound from below: no constraint of this run certifies one.') : '' });
    drawNorms();
    draw(charts.distance, { ...common, lines: [lineOf(`${ERROR}estimate`, 'estimate', 0), lineOf(`${ERROR}exact`, 'exact, between the same points', 1)] });
    const slopes = ofConstraints('slope', 'steepest');
    const measured = [['real', 'data'], ['fake', 'fakes'], ['interpolated', 'between']].map(([name, label], i) => {
      const edges = has(`${SLOPES}${name}/low`) && has(`${SLOPES}${name}/high`) ? { low: points(`${SLOPES}${name}/low`).y, high: points(`${SLOPES}${name}/high`).y } : {};
      return lineOf(`${SLOPES}${name}/mean`, label, i, edges);
    });
    const met = slopes.map((tag, i) => lineOf(tag, tag.replace(/^constraints\//, ''), measured.length + i));
    const says = [...(has(`${SLOPES}real/mean`) ? ['Lines are means, bands hold 90% of the examples.'] : []), ...(met.length ? ['Those of a constraint are where it takes them in training.'] : [])];
    draw(charts.slopes, { ...common, lines: [...measured, ...met], describe: says.join(' ') });
    const saturated = ofConstraints('saturated');
    const at = [...(has(WEIGHTS) ? [lineOf(WEIGHTS, 'within 1% of the largest weight', 0)] : []), ...saturated.map((tag, i) => lineOf(tag, tag.replace(/^constraints\//, ''), 1 + i))];
    draw(charts.saturation, { ...common, log: false, lines: at, describe: at.length ? 'A fraction of all weights of the critic.' : '' });
    drawOthers(common);
    showTexts(bounds, saturated, slopes);
  }

  /** A chart for each constraint and diagnostic with metrics that no other chart has. */
  function drawOthers(common) {
    const groups = new Map();
    for (const tag of Object.keys(series).filter((one) => has(one) && !drawn.has(one) && !LAYERS.test(one))) {
      const group = OTHERS.exec(tag)[1];
      groups.set(group, [...(groups.get(group) ?? []), tag]);
    }
    const parts = [...groups].slice(0, MOST_OTHERS).flatMap(([group, tags]) => {
      const [small, large] = common.log ? [tags, []] : byMagnitude(tags);
      return [[group, group, small], [`${group}: larger values`, group, large]].filter(([, , part]) => part.length);
    });
    for (const one of others.values()) one.box.hidden = true;
    for (const [title, group, tags] of parts) {
      if (!others.has(title)) {
        others.set(title, chart(title));
        grid.append(others.get(title).box);
      }
      const lines = tags.slice(0, MOST_OTHERS).map((tag, i) => lineOf(tag, tag.slice(group.length + 1), i));
      draw(others.get(title), { ...common, lines, describe: tags.length > lines.length ? `The first ${lines.length} of ${tags.length} metrics.` : '' });
    }
  }

  /** Metrics, and apart from them those beside which they would be flat lines at zero. */
  function byMagnitude(tags) {
    const size = (tag) => Math.max(...points(tag).y.map(Math.abs));
    const sorted = tags.map((tag) => [tag, size(tag)]).filter(([, largest]) => largest > 0).sort((a, b) => a[1] - b[1]);
    const at = sorted.findIndex(([, largest], i) => i > 0 && largest > APART * sorted[i - 1][1]);
    const large = at < 0 ? [] : sorted.slice(at).map(([tag]) => tag);
    return [tags.filter((tag) => !large.includes(tag)), tags.filter((tag) => large.includes(tag))];
  }

  function showTexts(bounds, saturated, slopes) {
    const said = (run.health ?? []).map((text) => {
      const at = text.indexOf(': ');
      return at > 0 ? el('li', {}, el('strong', {}, text.slice(0, at)), text.slice(at)) : el('li', {}, text);
    });
    if (run.health === null && ['failed', 'diverged'].includes(run.status)) said.push(el('li', {}, `It ${run.status} before the first look.`));
    else if (run.health === null) said.push(el('li', {}, 'Not checked yet: the first look is at the first evaluation (experiment.evaluate_every).'));
    else if (!run.health.length) said.push(el('li', { className: 'good' }, 'Nothing found at the last look.'));
    if (run.failure) said.unshift(el('li', {}, el('strong', {}, run.status), ` ${run.failure}`));
    for (const text of run.warnings ?? []) said.push(el('li', {}, el('strong', {}, 'warning'), ` ${text}`));
    health.replaceChildren(...said);
    const lacks = [];
    const want = (there, what, gin) => there || lacks.push(el('li', {}, `${what}: `, el('code', {}, gin)));
    want(has(`${INTERVAL}lower`), 'The attacked end of the Lipschitz interval', line('lipschitz_interval'));
    if (!has(`${INTERVAL}upper`) && !bounds.length) want(false, 'The certified end, from a constraint that certifies', 'experiment.constraints = [@constraints.spectral_norm()]');
    want(normSteps().length, 'Gradient norms by layer', line('gradient_norms'));
    want(has(`${ERROR}estimate`), 'The estimate beside the exact distance', line('wasserstein_error'));
    want(has(`${SLOPES}real/mean`), slopes.length ? 'Slopes at data and fakes' : 'Slopes', line('slopes'));
    want(has(WEIGHTS) || saturated.length, 'The share of weights at the limit', line('weights'));
    missing.replaceChildren(...lacks);
    lacking.hidden = !lacks.length;
  }

  return {
    destroy: () => [...Object.values(charts), ...others.values()].forEach((one) => one.destroy()),
    async refresh(current) {
      const { chosen } = await picker.refresh();
      if (chosen === null) return { text: 'No runs.' };
      const { data: details, text: first } = await ask('run', { run: chosen });
      const logged = [...new Set([...Object.keys(details.last), ...details.tags])].filter((tag) => OTHERS.test(tag));
      const isKnown = (tag) => FIRST.some((start) => tag.startsWith(start)) || tag === WEIGHTS || OF_CONSTRAINTS.test(tag);
      const tags = [...logged.filter(isKnown), ...logged.filter((tag) => !isKnown(tag))];
      const { data, text } = await ask('series', { run: chosen, tag: tags.slice(0, MOST) });
      if (!current()) return { text: '' };
      if (first + text !== seen) {
        seen = first + text;
        run = details;
        series = Object.fromEntries(tags.filter((tag) => Object.hasOwn(data.series, tag)).map((tag) => [tag, data.series[tag]]));
        show();
      }
      const more = tags.length > MOST ? `, the first ${MOST} of ${tags.length} metrics` : '';
      return { text: `${run.name}: ${run.status}, step ${run.step}${more}${data.pending ? ', still reading' : ''}`, pending: data.pending };
    },
  };
}
