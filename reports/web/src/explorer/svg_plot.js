// Lines and dots over two axes, as SVG. The options are those of ECharts, as far as the plots of the explorer and the
// reports' roofline use them: the library itself would be a third of the page, and slower than one frame.
import {element} from '../dom.js';

const kFont = 11;
const kGlyph = 6.2; // pixels of a letter, about
const kLine = 15;
const kTicks = 6;
const kReach = 14; // pixels from a dot within which a pointer means it

function svg(tag, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const text = (at, attributes, words) =>
  svg('text', {x: at[0].toFixed(1), y: at[1].toFixed(1), 'font-size': kFont, ...attributes}, words);

// Steps of 1, 2 or 5 times a power of ten that cover the values in about kTicks parts.
function steps(low, high) {
  const raw = (high - low) / kTicks || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({length: last - first + 1}, (_, i) => (first + i) * step);
}
function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.ceil((last - first) / (kTicks + 2)) || 1;
  const ticks = [];
  for (let power = first; power <= last; power += every) ticks.push(10 ** power);
  return ticks;
}

// An axis from the first pixel to the last, by what it is asked for and the values there are.
function scale(axis, values, label) {
  const log = axis.type === 'log';
  const given = values.filter(log ? value => value > 0 : Number.isFinite);
  let low = axis.min ?? (log ? 10 ** Math.floor(Math.log10(Math.min(...given))) : Math.min(0, ...given));
  let high = axis.max ?? (log ? 10 ** Math.ceil(Math.log10(Math.max(...given))) : Math.max(...given, low));
  const ticks = log ? decades(low, high) : steps(low, high);
  if (!log) {
    low = axis.min ?? ticks[0];
    high = axis.max ?? ticks.at(-1);
  }
  const of = log ? Math.log10 : value => value;
  const span = of(high) - of(low) || 1;
  return {
    ticks: ticks.filter(tick => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)),
    place: (first, last) => value => first + ((of(value) - of(low)) / span) * (last - first),
    label: value => label(value),
  };
}

const coordinates = one => one.value ?? one;

export class SvgPlot {
  // `pressed({data})`: a dot was.
  constructor(host, pressed) {
    this.host = host;
    this.tip = element('div', {className: 'plot-tip', hidden: true});
    host.addEventListener('pointermove', event => this.point(event));
    host.addEventListener('pointerdown', event => this.point(event));
    host.addEventListener('pointerleave', () => (this.tip.hidden = true));
    if (pressed) host.addEventListener('click', () => this.pointed && pressed(this.pointed));
  }

  show(option, colours, width, height) {
    const {series, legend, tooltip} = option;
    const [muted, line, surface, ink] = ['muted', 'line', 'surface', 'text'].map(name => colours.colour(name));
    const points = series.flatMap(one => (one.data ?? []).map(coordinates));
    const formatter = axis => axis.axisLabel?.formatter ?? String;
    const across = scale(option.xAxis, points.map(point => point[0]), formatter(option.xAxis));
    const up = scale(option.yAxis, points.map(point => point[1]), formatter(option.yAxis));
    const wide = Math.max(...up.ticks.map(tick => up.label(tick).length), 1) * kGlyph;
    const names = legend ? (legend.data ?? [...new Set(series.map(one => one.name).filter(Boolean))]) : [];
    const rows = this.legendRows(names, width);
    const area = {
      left: 8 + wide + (option.yAxis.name ? kLine : 0),
      right: width - Math.max(option.grid?.right ?? 0, 16),
      top: option.grid?.top ?? 12,
      bottom: height - (kLine + 6) - (option.xAxis.name ? kLine : 0) - rows.length * (kLine + 4),
    };
    const x = across.place(area.left, area.right);
    const y = up.place(area.bottom, area.top);
    this.dots = [];
    this.byColumn = tooltip?.trigger === 'axis'; // the pointer means what is above and below it
    this.formatter = this.byColumn ? pointed => tooltip.formatter([pointed]) : tooltip?.formatter;

    const marks = svg('g', {'font-family': colours.font});
    for (const tick of up.ticks) {
      marks.append(
        svg('line', {x1: area.left, x2: area.right, y1: y(tick), y2: y(tick), stroke: line}),
        text([area.left - 5, y(tick) + 4], {fill: muted, 'text-anchor': 'end'}, up.label(tick)),
      );
    }
    let free = -Infinity;
    for (const tick of across.ticks) {
      marks.append(svg('line', {x1: x(tick), x2: x(tick), y1: area.top, y2: area.bottom, stroke: line}));
      const half = (across.label(tick).length * kGlyph) / 2;
      if (x(tick) - half < free) continue;
      free = x(tick) + half + 6;
      marks.append(text([x(tick), area.bottom + kLine], {fill: muted, 'text-anchor': 'middle'}, across.label(tick)));
    }
    const middle = [(area.left + area.right) / 2, (area.top + area.bottom) / 2];
    if (option.xAxis.name)
      marks.append(text([middle[0], area.bottom + 2 * kLine], {fill: muted, 'text-anchor': 'middle'}, option.xAxis.name));
    if (option.yAxis.name) {
      const turned = {fill: muted, 'text-anchor': 'middle', transform: `rotate(-90 11 ${middle[1].toFixed(1)})`};
      marks.append(text([11, middle[1]], turned, option.yAxis.name));
    }
    this.labels = [];
    for (const one of series) this.draw(one, marks, {x, y, area, colours, surface, ink});
    for (const {node} of this.labels) marks.append(node);
    rows.forEach((row, at) => {
      let left = Math.max(0, (width - row.width) / 2);
      for (const name of row.names) {
        const of = series.find(one => one.name === name);
        const down = height - (rows.length - at) * (kLine + 4) + kLine - 2;
        marks.append(
          svg('rect', {x: left, y: down - 8, width: 12, height: 9, rx: 2, fill: this.colourOf(of)}),
          text([left + 17, down], {fill: ink}, name),
        );
        left += this.legendWidth(name);
      }
    });
    this.host.replaceChildren(
      svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true'}, marks),
      this.tip,
    );
    if (!this.tip.hidden && this.last) this.point(this.last);
  }

  colourOf = one => (one?.itemStyle?.borderWidth > 2 ? one.itemStyle.borderColor : (one?.color ?? one?.itemStyle?.color));
  legendWidth = name => [...name].reduce((sum, letter) => sum + (letter > '\u2e80' ? 12 : kGlyph), 34);
  legendRows(names, width) {
    const rows = [];
    for (const name of names) {
      const wide = this.legendWidth(name);
      if (!rows.length || rows.at(-1).width + wide > width) rows.push({names: [], width: 0});
      rows.at(-1).names.push(name);
      rows.at(-1).width += wide;
    }
    return rows;
  }

  draw(one, marks, {x, y, area, colours, surface, ink}) {
    for (const [from, to] of one.markLine?.data ?? []) this.drawRoof(one.markLine, from, to, marks, {x, y});
    const data = (one.data ?? []).filter(point => coordinates(point).every(Number.isFinite));
    if (one.type === 'line' && data.length > 1) {
      marks.append(
        svg('polyline', {
          points: data.map(point => `${x(coordinates(point)[0]).toFixed(1)},${y(coordinates(point)[1]).toFixed(1)}`).join(' '),
          fill: 'none',
          stroke: one.color,
          'stroke-width': one.lineStyle?.width ?? 2,
          'stroke-dasharray': one.lineStyle?.type === 'dashed' ? '5 4' : undefined,
        }),
      );
    }
    if (one.symbol === 'none' || one.showSymbol === false) {
      if (one.type === 'line')
        for (const point of data) this.dots.push({at: [x(coordinates(point)[0]), y(coordinates(point)[1])], r: 2, data: point, one});
      return;
    }
    for (const point of data) {
      const value = coordinates(point);
      const size = typeof one.symbolSize === 'function' ? one.symbolSize(value, {data: point}) : (one.symbolSize ?? 8);
      const at = [x(value[0]), y(value[1])];
      const r = size / 2;
      marks.append(
        svg('circle', {
          cx: at[0].toFixed(1),
          cy: at[1].toFixed(1),
          r: r.toFixed(1),
          fill: one.itemStyle?.color ?? one.color,
          'fill-opacity': one.itemStyle?.opacity,
          stroke: one.itemStyle?.borderColor,
          'stroke-width': one.itemStyle?.borderWidth,
        }),
      );
      this.dots.push({at, r, data: point, one});
      const label = {...one.label, ...point.label};
      if (!label.show) continue;
      let words = typeof label.formatter === 'function' ? label.formatter({data: point}) : label.formatter;
      const most = label.width ? Math.floor(label.width / kGlyph) : Infinity;
      if (words.length > most) words = `${words.slice(0, most - 1)}…`;
      const right = label.position === 'right';
      this.addLabel(words, right ? [at[0] + r + 4, at[1] + 4] : [at[0], at[1] + r + kFont], right ? 'start' : 'middle', area, {
        fill: label.color ?? ink,
        stroke: surface ?? colours.colour('surface'),
      });
    }
  }

  // Where there is room for it: those that are drawn first are kept.
  addLabel(words, at, anchor, area, {fill, stroke}) {
    const wide = words.length * kGlyph;
    const left = Math.max(0, anchor === 'start' ? at[0] : at[0] - wide / 2);
    const box = [left, at[1] - kFont, left + wide, at[1] + 2];
    if (box[2] > area.right + 16 || box[3] > area.bottom + 2) return;
    if (this.labels.some(({box: other}) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) return;
    const halo = {fill, stroke, 'stroke-width': 3, 'paint-order': 'stroke', 'text-anchor': anchor};
    this.labels.push({box, node: text(at, halo, words)});
  }

  // A line with its name along it.
  drawRoof(style, from, to, marks, {x, y}) {
    const [a, b] = [from.coord, to.coord].map(([p, q]) => [x(p), y(q)]);
    marks.append(
      svg('line', {
        x1: a[0], y1: a[1], x2: b[0], y2: b[1],
        stroke: style.lineStyle.color,
        'stroke-width': from.lineStyle.width,
        opacity: from.lineStyle.opacity,
      }),
    );
    const words = from.label.formatter;
    if (!words) return;
    const turn = (Math.atan2(b[1] - a[1], b[0] - a[0]) * 180) / Math.PI;
    const end = from.label.position === 'insideEndTop';
    const at = end ? [b[0] - 4, b[1] - 4] : [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    const {color, textBorderColor} = style.label;
    marks.append(
      text(at, {
        fill: color,
        opacity: from.label.opacity,
        stroke: textBorderColor,
        'stroke-width': 3,
        'paint-order': 'stroke',
        'text-anchor': end ? 'end' : 'middle',
        dy: end ? 0 : -5,
        transform: `rotate(${turn.toFixed(1)} ${at[0].toFixed(1)} ${at[1].toFixed(1)})`,
      }, words),
    );
  }

  // What the pointer means: the dot that it is on, else the nearest within reach; of dots on each other the smallest.
  point(event) {
    this.last = event;
    const box = this.host.getBoundingClientRect();
    const at = [event.clientX - box.left, event.clientY - box.top];
    const away = dot => Math.hypot(dot.at[0] - at[0], this.byColumn ? 0 : dot.at[1] - at[1]);
    const near = (this.dots ?? [])
      .filter(dot => away(dot) <= Math.max(dot.r, kReach))
      .sort((a, b) => (away(b) <= b.r) - (away(a) <= a.r) || a.r - b.r || away(a) - away(b))[0];
    this.pointed = near && {data: near.data, seriesName: near.one.name, value: coordinates(near.data)};
    const made = near && this.formatter?.(this.pointed);
    this.tip.hidden = !made;
    this.host.style.cursor = near ? 'pointer' : '';
    if (!made) return;
    this.tip.replaceChildren(made);
    const left = Math.min(near.at[0] + 12, box.width - this.tip.offsetWidth);
    const top = near.at[1] + 12 + this.tip.offsetHeight > box.height ? near.at[1] - 12 - this.tip.offsetHeight : near.at[1] + 12;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${Math.max(0, top)}px`;
  }
}
