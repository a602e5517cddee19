// Which figures are drawn, when, and how large. A builder takes {phase, rows, redraw} and returns nothing where the
// result lacks its data, or {height, option(palette, width), controls?, note?}. Charts are made when they come near the
// window: a report of many phases must be readable before its last chart is. ECharts copies what it is given, so data
// items refer to ops and rows by index.
import {element} from './dom.js';
import {init} from './echarts.js';
import {extraLegendRows, styled} from './style.js';
import {onPrint, onThemeChange, palette} from './theme.js';

const kNear = '400px';
const kLegendRow = 22;
const kPrintScale = 3; // pixels of a canvas for one of the page: paper is finer than screens
const kPrintWidth = 680;

// A figure whose part of the result is malformed stays hidden; the others are drawn.
function attempt(figure, act) {
  try {
    return act();
  } catch (error) {
    figure.hidden = true;
    console.warn(`no chart ${figure.dataset.chart} ${figure.dataset.phase ?? ''}: ${error}`);
    return null;
  }
}

class Chart {
  constructor(figure, plan) {
    this.figure = figure;
    this.canvas = figure.querySelector('.canvas');
    this.plan = plan;
    figure.hidden = false;
    this.canvas.style.height = `${plan.height}px`;
    if (plan.controls) this.canvas.before(element('div', {className: 'controls'}, ...plan.controls));
    if (plan.note) this.canvas.after(element('p', {className: 'chart-note'}, plan.note));
  }

  // `printing`: in the width of a sheet, which the window does not have yet.
  draw(printing = false) {
    const width = printing ? kPrintWidth : this.canvas.clientWidth;
    if (!width) return; // hidden: the observer calls again
    this.drawing?.dispose();
    this.drawing = init(this.canvas, null, {
      width,
      height: this.plan.height,
      devicePixelRatio: printing ? kPrintScale : undefined,
    });
    this.width = width;
    this.paint();
  }

  paint() {
    if (this.drawing) attempt(this.figure, () => this.show());
  }

  show() {
    const colours = palette();
    const option = this.plan.option(colours, this.width);
    const extra = kLegendRow * extraLegendRows(option, colours, this.width);
    this.canvas.style.height = `${this.plan.height + extra}px`;
    this.drawing.resize({width: this.width, height: this.plan.height + extra});
    this.drawing.setOption(styled(option, colours, extra), true);
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (!this.drawing || !width || width === this.width) return;
    this.width = width;
    this.paint();
  }
}

export function drawCharts(builders) {
  const charts = new Map();
  for (const figure of document.querySelectorAll('figure.chart')) {
    let chart;
    const {chart: name, phase, rows = ''} = figure.dataset;
    const plan = attempt(figure, () => builders[name]?.({phase, rows, redraw: () => chart?.paint()}));
    if (plan) charts.set(figure, (chart = new Chart(figure, plan)));
  }

  const near = new IntersectionObserver(
    entries => {
      for (const {target, isIntersecting} of entries) {
        if (!isIntersecting) continue;
        near.unobserve(target);
        charts.get(target).draw();
        sizes.observe(charts.get(target).canvas);
      }
    },
    {rootMargin: kNear},
  );
  const sizes = new ResizeObserver(entries =>
    requestAnimationFrame(() => {
      for (const {target} of entries) charts.get(target.closest('figure'))?.resize();
    }),
  );
  charts.forEach((chart, figure) => near.observe(figure));

  onThemeChange(() => charts.forEach(chart => chart.paint()));
  onPrint(printing => charts.forEach(chart => chart.draw(printing)));
}
