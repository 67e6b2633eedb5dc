// Line charts with bands, by uPlot: own legend and readout, keyboard, theme.
import uPlot from './vendor/uPlot.js';
import { el, number, ticks } from './dom.js';
import { named, onTheme } from './theme.js';

const WHOLE = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
const HEIGHT = 280;

/**
 * A chart in a box. `draw` replaces what it shows:
 * {lines: [{label, colour, dash, x, y, low?, high?, faint?}], xTitle, yTitle, log, ticks?, describe}
 */
export function chart(title) {
  const plotBox = el('div', { className: 'plot', tabIndex: 0, role: 'img', 'aria-label': title });
  const readout = el('div', { className: 'readout', role: 'status', 'aria-live': 'off' });
  const legend = el('ul', { className: 'legend' });
  const caption = el('p', { className: 'caption' });
  const box = el('figure', { className: 'chart' }, el('figcaption', {}, title), plotBox, readout, legend, caption);
  let plot = null;
  let shown = null;

  plotBox.addEventListener('keydown', (event) => {
    if (!plot || !['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key)) return;
    event.preventDefault();
    const x = plot.data[0];
    const at = plot.cursor.idx ?? 0;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: x.length - 1 }[event.key];
    const index = Math.max(0, Math.min(x.length - 1, to));
    plot.setCursor({ left: plot.valToPos(x[index], 'x'), top: 1 });
  });

  function draw(next) {
    shown = next ?? shown;
    if (!shown) return;
    plot?.destroy();
    plot = null;
    plotBox.replaceChildren();
    legend.replaceChildren(
      ...shown.lines
        .filter((line) => !line.faint && line.label)
        .map((line) => {
          const key = el('span', { className: 'key' });
          key.style.borderTopColor = line.colour;
          key.style.borderTopStyle = line.dash?.length ? 'dashed' : 'solid';
          return el('li', {}, key, line.label);
        }),
    );
    caption.textContent = shown.describe ?? '';
    readout.textContent = '';
    const lines = shown.lines.filter((line) => line.x.length);
    if (!lines.length) {
      plotBox.replaceChildren(el('p', { className: 'empty' }, shown.empty ?? 'Nothing to draw yet.'));
      return;
    }
    plot = build(lines, shown, plotBox, readout);
  }

  const resize = new ResizeObserver(() => {
    const width = plotBox.clientWidth;
    if (plot && width && Math.abs(plot.width - width) > 1) plot.setSize({ width, height: HEIGHT });
  });
  resize.observe(plotBox);
  const off = onTheme(() => draw());
  return {
    box,
    draw,
    destroy() {
      resize.disconnect();
      off();
      plot?.destroy();
    },
  };
}

function build(lines, shown, plotBox, readout) {
  const positive = (values) => (shown.log ? values.map((v) => (v !== null && v > 0 ? v : null)) : values);
  const tables = lines.map((line) =>
    line.low ? [line.x, positive(line.y), positive(line.low), positive(line.high)] : [line.x, positive(line.y)],
  );
  const data = uPlot.join(tables);
  const series = [{}];
  const bands = [];
  const owners = [];
  for (const line of lines) {
    owners.push([series.length, line]);
    series.push({
      label: line.label ?? '',
      stroke: line.colour,
      alpha: line.faint ? 0.35 : 1,
      width: line.faint ? 1 : 2,
      dash: line.dash,
      spanGaps: false,
      points: { show: line.x.length < 30, size: 5, fill: line.colour },
    });
    if (line.low) {
      const edge = { stroke: 'transparent', width: 0, points: { show: false } };
      series.push({ ...edge }, { ...edge });
      bands.push({ series: [series.length - 1, series.length - 2], fill: `${line.colour}33` });
    }
  }
  const axis = { stroke: named('text'), grid: { stroke: named('grid'), width: 1 }, ticks: { stroke: named('grid') } };
  const short = (u, values) => ticks(values);
  const incrs = data[0].every(Number.isInteger) ? WHOLE : undefined; // there is no step 1.5
  const options = {
    width: plotBox.clientWidth || 360,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    scales: { x: { time: false, ...(shown.xRange ? { range: shown.xRange } : {}) }, y: { distr: shown.log ? 3 : 1 } },
    axes: [
      { ...axis, size: 32, gap: 4, label: shown.xTitle, labelSize: 20, labelGap: 0, ...(shown.ticks ? { splits: () => shown.ticks.map((_, i) => i), values: () => shown.ticks } : { incrs, values: short }) },
      { ...axis, ...(shown.log ? decades(axis) : {}), size: 64, values: short, label: shown.yTitle, labelSize: shown.yTitle ? 22 : 0 },
    ],
    series,
    bands,
    hooks: {
      setCursor: [
        (u) => {
          const at = u.cursor.idx;
          if (at === null || at === undefined) {
            readout.textContent = '';
            return;
          }
          const x = shown.ticks ? shown.ticks[u.data[0][at]] : number(u.data[0][at], 6);
          const values = owners
            .filter(([, line]) => !line.faint)
            .map(([index, line]) => [line.label, u.data[index][at]])
            .filter(([, value]) => value !== null && value !== undefined)
            .map(([label, value]) => `${label}: ${number(value, 6)}`);
          readout.textContent = `${shown.xTitle} ${x} — ${values.join('; ')}`;
        },
      ],
    },
  };
  return new uPlot(options, data, plotBox);
}

/** Grid lines of a log scale at powers of ten alone. */
function decades({ grid, ticks }) {
  const filter = (u, splits) => splits.map((value) => (Math.abs(Math.log10(value) % 1) < 1e-6 ? value : null));
  return { grid: { ...grid, filter }, ticks: { ...ticks, filter } };
}

/** TensorBoard's smoothing: an exponential moving average without the bias of its start; values that are null stay. */
export function smooth(values, weight) {
  if (!(weight > 0)) return values;
  let last = 0;
  let count = 0;
  return values.map((value) => {
    if (value === null) return null;
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
}
