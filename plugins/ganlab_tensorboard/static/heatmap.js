// A heat map on a canvas: a row for each replica, a column for each step or for several.
import { el, number } from './dom.js';
import { diverging, named, onTheme } from './theme.js';

const LEFT = 44;
const BOTTOM = 22;

export function heatmap() {
  const canvas = el('canvas', { className: 'heat', tabIndex: 0, role: 'img' });
  const readout = el('div', { className: 'readout', role: 'status' });
  const title = el('figcaption', {});
  const scale = el('canvas', { width: 160, height: 12 });
  const ends = [el('span', {}), el('span', {})];
  const legend = el('div', { className: 'scale' }, ends[0], scale, ends[1]);
  const caption = el('p', { className: 'caption' });
  const box = el('figure', { className: 'chart' }, title, canvas, readout, legend, caption);
  let shown = null;
  let at = [0, 0];

  function draw(next) {
    shown = next ?? shown;
    if (!shown) return;
    const { tag, steps, deviations, count } = shown;
    title.textContent = `${tag}: each replica's value less the reduced value`;
    const empty = count === 0 || steps.length === 0;
    canvas.hidden = legend.hidden = empty;
    caption.textContent = empty ? 'This metric has no values of replicas: it is computed once for all of them, or was not logged by each.' : '';
    if (empty) return;
    const most = deviations.flat().reduce((largest, value) => (value === null ? largest : Math.max(largest, Math.abs(value))), 0);
    shown.most = most;
    paint(canvas, shown);
    paintScale(scale);
    ends[0].textContent = number(-most);
    ends[1].textContent = number(most);
    canvas.setAttribute('aria-label', `Heat map of ${count} replicas at ${steps.length} steps, largest deviation ${number(most)}. Arrow keys read values.`);
    caption.textContent = `${count} replica${count === 1 ? '' : 's'}, ${steps.length} rows. Grey: not finite. Of several rows in one column of pixels, the largest deviation is drawn.${shown.note ?? ''}`;
  }

  function say() {
    if (!shown?.steps.length) return;
    const [column, row] = at;
    const value = shown.deviations[column]?.[row];
    readout.textContent = `step ${shown.steps[column]}, replica ${row}: ${value === null || value === undefined ? 'not finite' : number(value)}`;
  }

  canvas.addEventListener('mousemove', (event) => {
    if (!shown?.steps.length) return;
    const area = canvas.getBoundingClientRect();
    const x = (event.clientX - area.left - LEFT) / (area.width - LEFT);
    const y = (event.clientY - area.top) / (area.height - BOTTOM);
    if (x < 0 || y >= 1) return;
    at = [Math.min(shown.steps.length - 1, Math.floor(x * shown.steps.length)), Math.min(shown.count - 1, Math.floor(y * shown.count))];
    say();
  });
  canvas.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!move || !shown?.steps.length) return;
    event.preventDefault();
    const keep = (value, size) => Math.max(0, Math.min(size - 1, value));
    at = [keep(at[0] + move[0], shown.steps.length), keep(at[1] + move[1], shown.count)];
    say();
  });
  const resize = new ResizeObserver(() => shown && draw());
  resize.observe(box);
  const off = onTheme(() => draw());
  return {
    box,
    draw,
    destroy() {
      resize.disconnect();
      off();
    },
  };
}

function paint(canvas, { steps, deviations, count, most }) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(200, canvas.clientWidth || 600);
  const row = Math.max(6, Math.min(40, 320 / count));
  const height = row * count + BOTTOM;
  canvas.style.height = `${height}px`;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const brush = canvas.getContext('2d');
  brush.scale(ratio, ratio);
  const columns = Math.min(steps.length, Math.floor(width - LEFT));
  const wide = (width - LEFT) / columns;
  for (let column = 0; column < columns; column += 1) {
    const from = Math.floor((column * steps.length) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * steps.length) / columns));
    for (let replica = 0; replica < count; replica += 1) {
      let value = null;
      for (let t = from; t < to; t += 1) {
        const one = deviations[t][replica];
        if (one !== null && (value === null || Math.abs(one) > Math.abs(value))) value = one;
      }
      brush.fillStyle = value === null ? '#808080' : `rgb(${diverging(most ? value / most : 0).join(',')})`;
      brush.fillRect(LEFT + column * wide, replica * row, wide + 0.5, row - (row > 12 ? 1 : 0));
    }
  }
  brush.fillStyle = named('text');
  brush.font = '12px system-ui, sans-serif';
  brush.textBaseline = 'middle';
  const stride = Math.ceil(14 / row);
  for (let replica = 0; replica < count; replica += stride) brush.fillText(String(replica), 4, (replica + 0.5) * row);
  brush.textBaseline = 'alphabetic';
  const last = steps.length - 1;
  const middle = Math.floor(last / 2);
  const marks = { left: [0, 0], center: [middle, (middle + 0.5) / steps.length], right: [last, 1] };
  for (const [align, [mark, part]] of Object.entries(marks)) {
    if (mark === 0 && align !== 'left') continue; // one or two steps have no middle
    brush.textAlign = align;
    brush.fillText(`${mark ? '' : 'step '}${steps[mark]}`, LEFT + (width - LEFT) * part, height - 6);
  }
}

function paintScale(canvas) {
  const brush = canvas.getContext('2d');
  for (let x = 0; x < canvas.width; x += 1) {
    brush.fillStyle = `rgb(${diverging((2 * x) / (canvas.width - 1) - 1).join(',')})`;
    brush.fillRect(x, 0, 1, canvas.height);
  }
}
