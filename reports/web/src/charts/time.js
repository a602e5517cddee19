// Where the time of each phase goes, by op and by bound: one bar per phase, of 100 %, because a decode step and a
// prefill differ by orders of magnitude. A figure about one phase shows its ops as bars of their own.
import {tip} from '../dom.js';
import {seconds, share} from '../format.js';
import {label, valueLabel} from '../page.js';
import {boundsOf, phaseNamed, phases, sums} from '../phases.js';

const kNamedOps = 7; // segments with a colour of their own; the rest is one more
const kBars = 20;
const kBarHeight = 22;

const phaseLabel = name => valueLabel('phase', name);
const timeOf = op => op.time_s;
const timed = () => phases().filter(phase => phase.ops.some(op => op.time_s > 0));
const totalOf = ops => ops.reduce((sum, op) => sum + op.time_s, 0);
const shareAxis = {type: 'value', max: 1, axisLabel: {formatter: value => `${Math.round(value * 100)} %`}};
const kLabelWidth = 46; // pixels that a share needs
const kSame = 1e-3; // two times that print alike

const addsUp = (phase, sum) => !(phase.time_s > 0) || Math.abs(sum - phase.time_s) <= kSame * sum;

// Ops that run beside each other add up to more than their step takes: says by how much.
function sumNote(shown) {
  return shown
    .map(phase => ({phase, sum: totalOf(phase.ops)}))
    .filter(({phase, sum}) => !addsUp(phase, sum))
    .map(({phase, sum}) => {
      const less = ['overlapped', 'pipelined']
        .filter(key => phase[`${key}_s`] > 0)
        .map(key => ` − ${label(`time.${key}`)} ${seconds(phase[`${key}_s`])}`);
      return label(less.length ? 'time.adds' : 'time.differs', {
        phase: phaseLabel(phase.name),
        sum: seconds(sum),
        less: less.join(''),
        step: seconds(phase.time_s),
      });
    })
    .join(' ');
}

const sumLabel = (phase, sum) => (addsUp(phase, sum) ? seconds(sum) : label('time.sum', {sum: seconds(sum)}));

// parts: [{name, colour(palette), of(phase) -> seconds}]
function stackedShares(parts, shown = timed()) {
  const totals = shown.map(phase => totalOf(phase.ops));
  return {
    height: 70 + 48 * shown.length,
    note: sumNote(shown),
    option: (colours, width) => ({
      grid: {left: 8, right: 24, top: 8, bottom: 52},
      legend: {data: parts.map(part => part.name)},
      tooltip: {
        formatter: ({seriesName, data}) =>
          tip(seriesName, [[phaseLabel(data.phase), `${seconds(data.time)} (${share(data.value)})`]]),
      },
      xAxis: shareAxis,
      yAxis: {
        type: 'category',
        inverse: true,
        data: shown.map((phase, i) => `${phaseLabel(phase.name)}\n${sumLabel(phase, totals[i])}`),
        axisLabel: {color: colours.colour('text'), lineHeight: 16},
        axisTick: {show: false},
      },
      series: parts.map((part, index) => ({
        type: 'bar',
        stack: 'all',
        name: part.name,
        barMaxWidth: 30,
        itemStyle: {color: part.colour(colours, index), borderColor: colours.colour('surface'), borderWidth: 1},
        label: {
          show: true,
          color: colours.colour('on-fill'),
          fontSize: 11,
          formatter: ({data}) => (data.value * width > kLabelWidth ? share(data.value) : ''),
        },
        data: shown.map((phase, i) => {
          const time = part.of(phase);
          return {value: totals[i] ? time / totals[i] : 0, time, phase: phase.name};
        }),
      })),
    }),
  };
}

export function timeByBound({phase: name}) {
  const shown = timed().filter(phase => name === undefined || phase.name === name);
  const bounds = boundsOf(shown.flatMap(phase => phase.ops));
  if (!bounds.length) return null;
  return stackedShares(
    bounds.map(bound => ({
      name: valueLabel('bound', bound),
      colour: colours => colours.bound(bound),
      of: phase => totalOf(phase.ops.filter(op => op.bound === bound)),
    })),
    shown,
  );
}

function opShares() {
  // Phases take turns to name their longest op: those of the longest phase alone would take every colour.
  const lists = timed().map(phase => sums(phase.ops, op => op.name, timeOf).map(([name]) => name));
  const names = [
    ...new Set(
      Array.from({length: Math.max(...lists.map(list => list.length))}, (unused, rank) =>
        lists.map(list => list[rank]).filter(Boolean),
      ).flat(),
    ),
  ];
  const own = names.slice(0, kNamedOps);
  const parts = own.map((name, index) => ({
    name,
    colour: colours => colours.series(index),
    of: phase => totalOf(phase.ops.filter(op => op.name === name)),
  }));
  if (names.length > own.length) {
    const others = new Set(names.slice(kNamedOps));
    parts.push({
      name: label('other'),
      colour: colours => colours.series(kNamedOps),
      of: phase => totalOf(phase.ops.filter(op => others.has(op.name))),
    });
  }
  return stackedShares(parts);
}

// A bar per op, coloured by what bound it.
function opBars(phase) {
  const total = totalOf(phase.ops);
  const byName = new Map();
  for (const op of phase.ops) byName.set(op.name, [...(byName.get(op.name) ?? []), op]);
  const largest = sums(phase.ops, op => op.name, timeOf);
  const rows = largest.slice(0, kBars).map(([name]) => ({name, ops: byName.get(name)}));
  const rest = largest.slice(kBars);
  if (rest.length)
    rows.push({name: `${label('other')} (${rest.length})`, ops: rest.flatMap(([name]) => byName.get(name))});
  const bounds = boundsOf(phase.ops);
  const timeBound = (row, bound) => totalOf(row.ops.filter(op => op.bound === bound));
  return {
    height: 96 + kBarHeight * rows.length,
    note: sumNote([phase]),
    option: colours => ({
      grid: {left: 8, right: 64, top: 8, bottom: 62},
      legend: {data: bounds.map(bound => valueLabel('bound', bound))},
      tooltip: {
        trigger: 'axis',
        axisPointer: {type: 'shadow'},
        formatter: ([{dataIndex}]) => {
          const row = rows[dataIndex];
          return tip(row.name, [
            [label('time'), `${seconds(totalOf(row.ops))} (${share(totalOf(row.ops) / total)})`],
            ...boundsOf(row.ops).map(bound => [valueLabel('bound', bound), seconds(timeBound(row, bound))]),
          ]);
        },
      },
      xAxis: {
        type: 'value',
        name: label('time'),
        nameGap: 24,
        axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true},
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: rows.map(row => row.name),
        axisTick: {show: false},
        axisLabel: {color: colours.colour('text'), width: 150, overflow: 'truncate', interval: 0},
      },
      series: bounds.map(bound => ({
        type: 'bar',
        stack: 'all',
        name: valueLabel('bound', bound),
        barCategoryGap: '25%',
        itemStyle: {color: colours.bound(bound)},
        label: {
          show: true,
          position: 'right',
          color: colours.colour('muted'),
          fontSize: 11,
          formatter: ({dataIndex}) =>
            bound === boundsOf(rows[dataIndex].ops).at(-1) ? share(totalOf(rows[dataIndex].ops) / total) : '',
        },
        data: rows.map(row => timeBound(row, bound)),
      })),
    }),
  };
}

export function timeByOp({phase: name}) {
  if (name === undefined) return timed().length ? opShares() : null;
  const phase = phaseNamed(name);
  return timed().includes(phase) ? opBars(phase) : null;
}
