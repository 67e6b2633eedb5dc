// The tab: four views, one at a time, each of which asks the server again while the tab is visible.
// All modules are named here, although views import them, too, so that the browser asks for them at once.
import './vendor/uPlot.js';
import './chart.js';
import './heatmap.js';
import './picker.js';
import './plots.js';
import './query.js';
import './table.js';
import { after } from './api.js';
import { restrict } from './policy.js';
import { el } from './dom.js';
import { get, set } from './state.js';
import { followTheme } from './theme.js';
import { compareView } from './compare.js';
import { replicasView } from './replicas.js';
import { samplesView } from './samples.js';
import { lipschitzView } from './lipschitz.js';

const VIEWS = { compare: compareView, replicas: replicasView, samples: samplesView, lipschitz: lipschitzView };
const TITLES = { compare: 'Compare', replicas: 'Replicas', samples: 'Samples', lipschitz: 'Lipschitz' };

// Milliseconds between looks: while the server still reads, and while runs may train.
const SOON = 700;
const LATER = 5000;

/** Called by TensorBoard, in a frame of its own. */
export async function render() {
  restrict();
  followTheme();
  document.documentElement.lang = 'en';
  document.head.append(el('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }));
  after(styles(['./vendor/uPlot.css', './style.css']));
  const status = el('span', { id: 'status', role: 'status' });
  const main = el('main', { id: 'view', role: 'tabpanel', tabIndex: -1 });
  const tabs = Object.keys(VIEWS).map((name) =>
    el('button', { role: 'tab', id: `tab-${name}`, type: 'button', 'aria-controls': 'view', click: () => open(name) }, TITLES[name]),
  );
  const list = el('div', { role: 'tablist', 'aria-label': 'Views', keydown: move }, tabs);
  document.body.replaceChildren(el('header', {}, list, status), main);

  let view = null;
  let timer = 0;
  let turn = 0;

  function open(name) {
    set('view', name);
    tabs.forEach((tab) => {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute('aria-selected', String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    });
    main.setAttribute('aria-labelledby', `tab-${name}`);
    view?.destroy?.();
    main.replaceChildren();
    status.className = 'loading';
    status.textContent = 'Loading';
    view = VIEWS[name](main, refresh);
    refresh();
  }

  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    to.focus();
    to.click();
  }

  async function refresh() {
    clearTimeout(timer);
    turn += 1;
    const mine = turn;
    let pause = LATER;
    try {
      const said = await view.refresh(() => mine === turn);
      if (mine !== turn) return;
      status.className = '';
      status.textContent = said.text;
      if (said.pending) pause = SOON;
    } catch (error) {
      if (mine !== turn) return;
      status.className = 'bad';
      status.textContent = error.message;
    }
    timer = setTimeout(again, pause);
  }

  function again() {
    if (document.hidden) timer = setTimeout(again, LATER);
    else refresh();
  }

  const first = get('view', 'compare');
  open(Object.hasOwn(VIEWS, first) ? first : 'compare');
}

function styles(names) {
  return Promise.all(
    names.map((name) => {
      const link = el('link', { rel: 'stylesheet', href: new URL(name, import.meta.url).href });
      const loaded = new Promise((done) => {
        link.addEventListener('load', done);
        link.addEventListener('error', done);
      });
      document.head.append(link);
      return loaded;
    }),
  );
}
