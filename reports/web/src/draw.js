// Which figures are drawn, when, and how large. A builder takes {phase, redraw} and returns nothing where the result
// lacks its data, or {height, option(palette, width), controls?, note?}. Charts are made when they come near the window:
// a report of many phases must be readable before its last chart is.
import {element} from './dom.js';
import {init} from './echarts.js';
import {onPrint, onThemeChange, palette} from './theme.js';

const kNear = '400px';
const kPrintScale = 3;  // pixels of a canvas for one of the page: paper is finer than screens
const kPrintWidth = 680;

// What all charts have in common; `option` overrides it key by key.
function styled(option, colours) {
  const text = {color: colours.colour('text'), fontFamily: colours.font, fontSize: 12};
  const axis = one => ({
    axisLabel: {color: colours.colour('muted')},
    axisLine: {lineStyle: {color: colours.colour('axis')}},
    axisTick: {lineStyle: {color: colours.colour('axis')}},
    splitLine: {lineStyle: {color: colours.colour('line')}},
    nameTextStyle: {color: colours.colour('muted')},
    nameLocation: 'middle',
    ...one,
  });
  const axes = given => [given].flat().map(axis);
  return {
    animation: false,
    textStyle: text,
    ...option,
    legend: option.legend && {bottom: 0, type: 'plain', itemGap: 14, itemWidth: 14, itemHeight: 10,
      textStyle: text, inactiveColor: colours.colour('axis'), ...option.legend},
    tooltip: {confine: true, transitionDuration: 0, backgroundColor: colours.colour('surface'),
      borderColor: colours.colour('axis'), padding: [6, 10], textStyle: text, ...option.tooltip},
    xAxis: axes(option.xAxis),
    yAxis: axes(option.yAxis),
  };
}

class Chart {
  constructor(figure, plan) {
    this.canvas = figure.querySelector('.canvas');
    this.plan = plan;
    figure.hidden = false;
    this.canvas.style.height = `${plan.height}px`;
    if (plan.controls) this.canvas.before(element('div', {className: 'controls'}, ...plan.controls));
    if (plan.note) this.canvas.after(element('p', {className: 'chart-note'}, plan.note));
  }

  // `printing`: in the width of a sheet, which the window does not have yet.
  draw(printing = false) {
    const size = printing ? {width: kPrintWidth, height: this.plan.height} : {};
    const width = size.width ?? this.canvas.clientWidth;
    if (!width) return;  // hidden: the observer calls again
    this.drawing?.dispose();
    this.drawing = init(this.canvas, null, {...size, devicePixelRatio: printing ? kPrintScale : undefined});
    this.width = width;
    this.paint();
  }

  paint() {
    const colours = palette();
    this.drawing?.setOption(styled(this.plan.option(colours, this.width), colours), true);
  }

  resize() {
    const width = this.canvas.clientWidth;
    if (!this.drawing || !width || width === this.width) return;
    this.width = width;
    this.drawing.resize();
    this.paint();
  }
}

export function drawCharts(builders) {
  const charts = new Map();
  for (const figure of document.querySelectorAll('figure.chart')) {
    let chart;
    const plan = builders[figure.dataset.chart]?.({phase: figure.dataset.phase, redraw: () => chart?.paint()});
    if (plan) charts.set(figure, chart = new Chart(figure, plan));
  }

  const near = new IntersectionObserver(entries => {
    for (const {target, isIntersecting} of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      charts.get(target).draw();
      sizes.observe(charts.get(target).canvas);
    }
  }, {rootMargin: kNear});
  const sizes = new ResizeObserver(entries => requestAnimationFrame(() => {
    for (const {target} of entries) charts.get(target.closest('figure'))?.resize();
  }));
  charts.forEach((chart, figure) => near.observe(figure));

  onThemeChange(() => charts.forEach(chart => chart.paint()));
  onPrint(printing => charts.forEach(chart => chart.draw(printing)));
}
