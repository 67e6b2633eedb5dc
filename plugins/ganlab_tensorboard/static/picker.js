// The choice of a run, which the views of one run share.
import { ask } from './api.js';
import { el, setOptions } from './dom.js';
import { get, set } from './state.js';

export function runPicker(refresh) {
  const select = el('select', { change: () => (set('run', select.value), refresh()) });
  return {
    select,
    /** Asks for the runs; the id of the chosen one, or null if there is none. */
    async refresh() {
      const { data } = await ask('overview');
      setOptions(select, data.runs.map((run) => [run.id, `${run.short} (${run.status})`]));
      const ids = new Set(data.runs.map((run) => run.id));
      const chosen = ids.has(get('run')) ? get('run') : (data.runs[0]?.id ?? null);
      if (chosen !== null) select.value = chosen;
      return { chosen, runs: data.runs, metrics: data.metrics };
    },
  };
}
