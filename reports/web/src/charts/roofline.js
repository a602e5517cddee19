// The roofline of a phase: what the device can do at an arithmetic intensity, and where each op stands. Both axes are
// logarithmic; a memory level is a slope, a compute rate a ceiling, and the area of a dot the time of its op.
import {tip} from '../dom.js';
import {bandwidth, bytes, flops, flopsRate, number, seconds, share} from '../format.js';
import {label, result, valueLabel} from '../page.js';
import {boundsOf, phaseNamed} from '../phases.js';
import {inSight, ranges, slopeEnds} from '../roofs.js';

const kLargest = 44; // pixels across
const kSmallest = 5;
const kNarrow = 500; // pixels: below, names would cover the dots
const kNameWidth = 150;
const kSame = 0.02;
const kNamed = 6; // the largest dots carry their names
const kHeight = 460;
const kEdges = {top: 16, bottom: 66}; // pixels around the area of the dots
const kLine = 14; // pixels that the label of a roof takes
const kCached = 1.02; // above a roof by more than a rounding

// Roofs of results that carry none: the device's figures.
function roofsOfFigures() {
  const figures = result.inputs?.hardware?.figures ?? {};
  const figure = key => figures[key]?.value;
  const memory = figure('memory_bandwidth_bytes_per_s');
  const compute = [
    ['matrix', figure('matrix_flops_per_s')],
    ['vector', figure('vector_flops_per_s')],
  ];
  return {
    memory: memory ? [{name: valueLabel('bound', 'memory'), bytes_per_s: memory}] : [],
    compute: compute.filter(([, rate]) => rate).map(([unit, rate]) => ({dtype: '', unit, flops_per_s: rate})),
  };
}

// One line for all types that run at the same rate, give or take what its width hides; those that no op of the phase
// uses are drawn thin.
function ceilings(compute, ops) {
  const types = new Set(ops.map(op => op.matrix_dtype));
  const lines = [];
  for (const {dtype, unit, flops_per_s: rate} of compute) {
    if (!(rate > 0)) continue;
    let line = lines.find(one => Math.abs(one.rate / rate - 1) < kSame);
    if (!line) lines.push((line = {rate, names: [], used: false}));
    line.names.push(`${dtype} ${valueLabel('unit', unit)}`.trim());
    line.used ||= unit === 'vector' || types.has(dtype) || !dtype;
  }
  return lines;
}

// The ceilings that have room for their label: those that are used first, then the others, from the top.
function labelled(tops, {y: [bottom, top]}) {
  const decade = (kHeight - kEdges.top - kEdges.bottom) / Math.log10(top / bottom);
  const taken = [];
  for (const line of [...tops].sort((a, b) => b.used - a.used || b.rate - a.rate)) {
    if (line.used || taken.every(other => decade * Math.abs(Math.log10(other.rate / line.rate)) >= kLine))
      taken.push(line);
  }
  return new Set(taken);
}

// Roofs are mark lines, because their labels turn with the line.
function roofLines(slopes, tops, area, colours) {
  const {x, steepest} = area;
  const named = labelled(tops, area);
  const line = (from, to, text, strong, position) => [
    {
      coord: from,
      name: text,
      lineStyle: {width: strong ? 2 : 1, opacity: strong ? 1 : 0.55},
      label: {formatter: text, position, opacity: strong ? 1 : 0.7},
    },
    {coord: to},
  ];
  return {
    symbol: 'none',
    silent: true,
    animation: false,
    lineStyle: {type: 'solid', color: colours.colour('roof')},
    label: {
      color: colours.colour('text'),
      fontSize: 11,
      distance: 4,
      textBorderColor: colours.colour('surface'),
      textBorderWidth: 2,
    },
    data: [
      ...slopes.map(slope =>
        line(
          ...slopeEnds(slope, area),
          `${slope.name} ${bandwidth(slope.bytes_per_s)}`,
          slopes.length === 1 || slope === slopes[0],
          'insideMiddleTop',
        ),
      ),
      ...tops.map(top =>
        line(
          [Math.max(x[0], top.rate / steepest), top.rate],
          [x[1], top.rate],
          named.has(top) ? `${top.names.join(', ')} ${flopsRate(top.rate)}` : '',
          top.used,
          'insideEndTop',
        ),
      ),
    ],
  };
}

function tooltipOf({op, intensity, rate}, total) {
  const rows = [
    [label('shape'), op.shape || '–'],
    [label('count'), op.count],
    [label('flops'), flops(op.flops)],
    [label('bytes'), bytes(op.bytes)],
    [label('intensity'), `${number(intensity)} FLOP/B`],
    [label('performance'), flopsRate(rate)],
    [label('time'), `${seconds(op.time_s)} (${share(op.time_s / total)})`],
    [label('bound'), valueLabel('bound', op.bound)],
  ];
  if (op.roof_s > 0) rows.push([label('roof.time'), `${seconds(op.roof_s)} (${share(op.roof_s / op.time_s)})`]);
  return tip(
    op.name,
    rows.map(([name, value]) => [name, String(value)]),
  );
}

const timeOf = ops => ops.reduce((sum, op) => sum + op.time_s, 0);
const onDevice = op => (op.place ?? 'device') === 'device'; // the roofs are the device's
const hasWork = op => op.flops > 0 && op.bytes > 0 && op.time_s > 0;

// What a dot means, and which ops have none.
function noteOf(ops, all, dots, steepest) {
  const total = seconds(timeOf(ops));
  const left = (key, gone) =>
    gone.length ? [label(key, {count: gone.length, time: seconds(timeOf(gone)), total})] : [];
  const shown = new Set(dots);
  return [
    label('roofline.area'),
    ...(dots.some(({rate, intensity}) => rate > intensity * steepest * kCached) ? [label('roofline.cached')] : []),
    ...left(
      'roofline.without',
      ops.filter(op => onDevice(op) && !hasWork(op)),
    ),
    ...left(
      'roofline.elsewhere',
      ops.filter(op => !onDevice(op)),
    ),
    ...left(
      'roofline.below',
      all.filter(dot => !shown.has(dot)).map(dot => dot.op),
    ),
  ].join(' ');
}

export const roofline = ({phase: name}) =>
  rooflineOf(phaseNamed(name)?.ops ?? [], result.roofs ?? roofsOfFigures());

export function rooflineOf(ops, given) {
  const slopes = (given.memory ?? [])
    .filter(slope => slope.bytes_per_s > 0)
    .sort((a, b) => a.bytes_per_s - b.bytes_per_s);
  const tops = ceilings(given.compute ?? [], ops);
  const all = ops
    .filter(op => onDevice(op) && hasWork(op))
    .map(op => ({op, intensity: op.flops / op.bytes, rate: op.flops / op.time_s}))
    .sort((a, b) => b.op.time_s - a.op.time_s); // small dots are drawn last, on top of large ones
  if (!all.length || !slopes.length || !tops.length) return null;

  const longest = all[0].op.time_s;
  const total = timeOf(ops);
  const dots = inSight(all, timeOf(all.map(dot => dot.op)));
  const area = ranges(dots, slopes, tops);
  const axis = (text, [min, max], unit, gap) => ({
    type: 'log',
    name: text,
    nameGap: gap,
    min,
    max,
    axisLabel: {formatter: value => unit(value, 3), hideOverlap: true},
    minorTick: {show: false},
  });

  return {
    height: kHeight,
    note: noteOf(ops, all, dots, area.steepest),
    option: (colours, width) => ({
      grid: {left: 12, right: 24, ...kEdges},
      legend: {},
      tooltip: {formatter: ({data}) => tooltipOf(dots[data.dot], total)},
      xAxis: axis(label('intensity.axis'), area.x, number, 28),
      yAxis: axis(label('performance.axis'), area.y, value => number(value), 48),
      series: [
        {type: 'scatter', data: [], tooltip: {show: false}, markLine: roofLines(slopes, tops, area, colours)},
        ...boundsOf(dots.map(dot => dot.op)).map(bound => ({
          type: 'scatter',
          name: valueLabel('bound', bound),
          itemStyle: {
            color: colours.bound(bound),
            opacity: 0.8,
            borderColor: colours.colour('surface'),
            borderWidth: 1,
          },
          label: {
            show: false,
            position: 'bottom',
            width: kNameWidth,
            overflow: 'truncate',
            opacity: 1,
            color: colours.colour('text'),
            fontSize: 11,
            textBorderColor: colours.colour('surface'),
            textBorderWidth: 2,
            formatter: ({data}) => dots[data.dot].op.name,
          },
          labelLayout: {hideOverlap: true},
          symbolSize: (value, {data}) => Math.max(kSmallest, kLargest * Math.sqrt(dots[data.dot].op.time_s / longest)),
          data: dots.flatMap(({op, intensity, rate}, dot) =>
            op.bound !== bound ? [] : [{value: [intensity, rate], dot, label: {show: width > kNarrow && dot < kNamed}}],
          ),
        })),
      ],
    }),
  };
}
