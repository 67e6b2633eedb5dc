// Each replica's deviation from the reduced value over time, and the spread of the replicas.
import { ask } from './api.js';
import { chart } from './chart.js';
import { el, finite, labelled, number, setOptions } from './dom.js';
import { heatmap } from './heatmap.js';
import { runPicker } from './picker.js';
import { get, set } from './state.js';
import { ink } from './theme.js';

export function replicasView(root, refresh) {
  const picker = runPicker(refresh);
  const metric = el('select', { change: () => (set('rtag', metric.value), refresh()) });
  const map = heatmap();
  const spread = chart('Spread: the largest replica less the smallest');
  root.append(el('div', { className: 'controls' }, labelled('Run', picker.select), labelled('Metric', metric)), map.box, spread.box);
  let seen = '';

  return {
    destroy() {
      map.destroy();
      spread.destroy();
    },
    async refresh(current) {
      const { chosen } = await picker.refresh();
      if (chosen === null) return { text: 'No runs.' };
      const { data: run } = await ask('run', { run: chosen });
      const tags = run.tags.filter((tag) => !tag.startsWith('evaluation/'));
      const tag = tags.includes(get('rtag')) ? get('rtag') : tags.includes('critic/loss') ? 'critic/loss' : tags[0];
      if (!tag) return { text: `${run.name} has logged no metric yet.` };
      const { data, text } = await ask('series', { run: chosen, tag });
      if (!current()) return { text: '' };
      setOptions(metric, tags, tag);
      if (text + chosen + tag !== seen) {
        seen = text + chosen + tag;
        show(tag, data.series[tag]);
      }
      return { text: status(run, data), pending: data.pending };
    },
  };

  function show(tag, found) {
    const rows = (found?.replicas ?? []).map((row) => row.map(finite));
    const reduced = (found?.values ?? []).map(finite);
    const count = rows[0]?.length ?? 0;
    const deviations = rows.map((row, t) => row.map((value) => (value === null || reduced[t] === null ? null : value - reduced[t])));
    const thinned = found?.stride > 1 ? ` Every ${found.stride}th of ${found.rows} rows is drawn, and the last.` : '';
    map.draw({ tag, steps: found?.steps ?? [], deviations, count, note: thinned });
    const y = rows.map((row) => {
      const known = row.filter((value) => value !== null);
      return known.length === row.length && known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
    });
    const known = y.filter((value) => value !== null);
    const mean = known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
    spread.draw({
      lines: count > 1 ? [{ ...ink(0), label: 'spread', x: found.steps, y }] : [],
      xTitle: 'step',
      log: false,
      describe: known.length ? `Mean spread ${number(mean)}, largest ${number(Math.max(...known))}.${thinned}` : '',
      empty: 'No spread: this metric has no values of two or more replicas.',
    });
  }
}

function status(run, data) {
  const damaged = data.damaged ? `, ${data.damaged} damaged lines left out` : '';
  return `${run.name}: ${run.status}, step ${run.step}${damaged}${data.pending ? ', still reading' : ''}`;
}
