// Grids of samples of several runs, at one step.
import { ask, picture } from './api.js';
import { el, labelled } from './dom.js';
import { get, set } from './state.js';

const FIRST = 6;
const MOST = 24;

export function samplesView(root, refresh) {
  const slider = el('input', { type: 'range', min: 0, max: 0, step: 1, value: 0, input: slide });
  const said = el('output', {});
  const picks = el('div', { className: 'picks', role: 'group', 'aria-label': 'Runs' });
  const chosenBox = el('details', {}, el('summary', {}, 'Runs'), picks);
  const grids = el('div', { className: 'samples' });
  const empty = el('p', { className: 'empty' });
  const stepControl = labelled('Step', slider);
  stepControl.classList.add('wide');
  root.append(el('div', { className: 'controls' }, stepControl, said), chosenBox, empty, grids);
  let steps = [];
  let details = [];
  let seen = '';

  function chosen(runs) {
    const ids = get('sruns') ? get('sruns').split('.') : null;
    if (ids) return runs.filter((run) => ids.includes(run.id)).slice(0, MOST);
    const first = runs.filter((run) => run.seed === runs[0]?.seed);
    return (first.length > 1 ? first : runs).slice(0, FIRST);
  }

  function slide() {
    set('step', steps[Number(slider.value)] ?? '');
    show();
  }

  function at() {
    const wanted = get('step') === '' ? Infinity : Number(get('step'));
    const before = steps.filter((step) => step <= wanted);
    return before.length ? before.at(-1) : steps[0];
  }

  function show() {
    const step = at();
    said.textContent = step === undefined ? '' : `step ${step}`;
    slider.max = Math.max(0, steps.length - 1);
    slider.value = Math.max(0, steps.indexOf(step));
    slider.setAttribute('aria-valuetext', `step ${step ?? 'none'}`);
    empty.textContent = details.length && !steps.length ? 'These runs have no pictures of samples yet: they are drawn at each evaluation. Log them with experiment.evaluate_every = 500.' : '';
    const old = new Map([...grids.children].map((figure) => [figure.dataset.run, figure]));
    grids.replaceChildren(...details.map((run) => figureOf(run, step, old.get(run.id))));
  }

  return {
    async refresh(current) {
      const { data } = await ask('overview');
      const mine = chosen(data.runs);
      const answers = await Promise.all(mine.map((run) => ask('run', { run: run.id })));
      if (!current()) return { text: '' };
      const now = JSON.stringify([data.runs.map((run) => run.id), mine.map((run) => run.id), answers.map((a) => a.data.samples)]);
      if (now !== seen) {
        seen = now;
        details = answers.map((answer) => answer.data);
        steps = [...new Set(details.flatMap((run) => run.samples))].sort((a, b) => a - b);
        fill(data.runs, new Set(mine.map((run) => run.id)));
        show();
      }
      return { text: `${mine.length} of ${data.runs.length} runs` };
    },
  };

  function fill(runs, ids) {
    chosenBox.firstChild.textContent = `Runs (${ids.size} of ${runs.length}, ${MOST} at most)`;
    const focus = document.activeElement?.dataset?.id;
    picks.replaceChildren(
      ...runs.map((run) => {
        const box = el('input', { type: 'checkbox', checked: ids.has(run.id), 'data-id': run.id, change: pick });
        return el('label', { title: run.name }, box, ` ${run.short}`);
      }),
    );
    if (focus) picks.querySelector(`[data-id="${CSS.escape(focus)}"]`)?.focus();
  }

  function pick() {
    const ids = [...picks.querySelectorAll('input:checked')].map((box) => box.dataset.id);
    set('sruns', ids.slice(0, MOST).join('.') || '-');
    refresh();
  }
}

/** Small grids of pixels are drawn as squares, plots are not. */
function sharpen(event) {
  event.target.classList.toggle('pixels', event.target.naturalWidth < event.target.clientWidth);
}

function figureOf(run, step, old) {
  const mine = run.samples.filter((one) => one <= step).at(-1);
  if (old && old.dataset.step === String(mine)) return old;
  const image =
    mine === undefined
      ? el('p', { className: 'empty' }, 'No samples at or before this step.')
      : el('img', { src: picture(run.id, mine), alt: `Samples of ${run.name} at step ${mine}`, loading: 'lazy', load: sharpen });
  const caption = el('figcaption', {}, run.name, el('small', {}, mine === undefined ? run.status : `step ${mine}, ${run.status}`));
  return el('figure', { 'data-run': run.id, 'data-step': String(mine) }, caption, image);
}
