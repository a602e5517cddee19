// A sweep, or a table of a study, as a map of two of its axes; the other axes are summed up by a median or the best
// value, which the reader chooses and the chart says.
import {select, tip} from '../dom.js';
import {byKey, extent} from '../format.js';
import {label, valueLabel} from '../page.js';
import {columnLabel, finished, measures, movingAxes, tableAt, valueOf} from '../sweep.js';

const kLogAbove = 30; // ratio of largest to smallest from which colours go by the logarithm
const kLabelledCells = 150;
const kRowHeight = 30;
const kLowRow = 18; // still room for a name
const kHighRows = 24; // above which rows are low
const kNamedRows = 200; // all of them have names
const kNamedColumns = 40;
const kLetter = 7; // about as wide
const kSlanted = 70; // as high as names that do not fit beside each other

const heightOf = rows => (rows > kHighRows ? kLowRow : kRowHeight) * Math.min(rows, kNamedRows);

const median = sorted => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
const summaries = {
  median: sorted => median(sorted),
  best: (sorted, better) => (better === 'lower' ? sorted[0] : sorted.at(-1)),
  min: sorted => sorted[0],
  max: sorted => sorted.at(-1),
};

// The cells [x index, y index, value, points summed up] of the map.
function cellsOf(table, x, y, column, how) {
  const index = axis => new Map(axis.values.map((value, i) => [value, i]));
  const [columns, rows] = [index(x), y ? index(y) : null];
  const cells = new Map();
  for (const row of finished(table)) {
    const value = row[column.name];
    if (!Number.isFinite(value)) continue;
    const at = [columns.get(valueOf(row, x.column)), y ? rows.get(valueOf(row, y.column)) : 0];
    const key = at.join(' ');
    if (!cells.has(key)) cells.set(key, {at, values: []});
    cells.get(key).values.push(value);
  }
  return [...cells.values()].map(({at, values}) => {
    values.sort((a, b) => a - b);
    return [...at, summaries[how](values, column.better), values.length];
  });
}

function optionOf(table, {x, y, column, how}, colours, width) {
  const cells = cellsOf(table, x, y, column, how);
  const values = cells.map(cell => cell[2]);
  const [low, high] = extent(values);
  const scaled = low > 0 && high / low > kLogAbove ? Math.log10 : value => value;
  const back = scaled === Math.log10 ? value => 10 ** value : value => value;
  const [from, to] = [scaled(low), scaled(high)];
  const dark = value => to > from && (scaled(value) - from) / (to - from) > 0.55;
  const slanted = Math.max(...x.values.map(value => value.length)) * kLetter > width / x.values.length;
  const many = cells.length > kLabelledCells || width / x.values.length < 54;
  const category = (axis, extra) => ({
    type: 'category',
    data: axis?.values ?? [''],
    splitArea: {show: false},
    name: axis ? columnLabel(axis.column) : '',
    axisTick: {show: false},
    ...extra,
  });
  return {
    grid: {left: 20, right: 16, top: 12, bottom: 96 + (slanted ? kSlanted / 2 : 0)},
    tooltip: {
      formatter: ({
        data: {
          value: [i, j, , points],
          raw,
        },
      }) =>
        tip(byKey(column.name, raw), [
          [columnLabel(x.column), x.values[i]],
          ...(y ? [[columnLabel(y.column), y.values[j]]] : []),
          [label('sweep.points'), `${points} (${label(`sweep.${how}`)})`],
        ]),
    },
    xAxis: category(x, {
      nameGap: slanted ? kSlanted : 26,
      axisLabel: {
        interval: x.values.length > kNamedColumns ? 'auto' : 0,
        ...(slanted ? {rotate: 40, width: 100, overflow: 'truncate'} : {}),
      },
    }),
    yAxis: category(y, {
      inverse: true,
      nameGap: 60,
      axisLabel: {width: 130, overflow: 'truncate', interval: y?.values.length > kNamedRows ? 'auto' : 0},
    }),
    visualMap: {
      type: 'continuous',
      min: from,
      max: to > from ? to : from + 1,
      dimension: 2,
      calculable: false,
      orient: 'horizontal',
      left: 'center',
      bottom: 4,
      itemWidth: 12,
      itemHeight: Math.min(260, width / 2),
      text: [byKey(column.name, high), byKey(column.name, low)],
      textStyle: {color: colours.colour('text')},
      inRange: {color: colours.ramp},
      formatter: value => byKey(column.name, back(value)),
    },
    series: [
      {
        type: 'heatmap',
        itemStyle: {borderColor: colours.colour('surface'), borderWidth: 1},
        label: {show: !many, fontSize: 11},
        data: cells.map(([i, j, raw, points]) => ({
          value: [i, j, scaled(raw), points],
          raw,
          label: {
            formatter: byKey(column.name, raw, 3),
            color: colours.colour(dark(raw) ? 'ramp-text-high' : 'ramp-text-low'),
          },
        })),
      },
    ],
  };
}

export function heatmap({rows, redraw}) {
  const table = tableAt(rows);
  const moving = movingAxes(table);
  const columns = measures(table);
  if (!moving.length || !columns.length) return null;
  const by = (list, key, wanted) => list.find(item => item[key] === wanted);
  const state = {x: moving[0], y: moving[1], column: columns[0], how: columns[0].better ? 'best' : 'median'};
  const choose = (key, value) => {
    state[key] = value;
    redraw();
  };
  const axisChoice = axis => [axis.column, columnLabel(axis.column)];
  const betterOf = ({better}) => (better ? ` (${valueLabel('sweep', better)})` : '');
  const controls = [];
  if (moving.length > 1) {
    const options = moving.map(axisChoice);
    const pick = (key, other) => name => {
      const before = state[key];
      const wanted = by(moving, 'column', name);
      if (state[other] === wanted) {
        // the two change places
        state[other] = before;
        controls[key === 'x' ? 1 : 0].querySelector('select').value = before.column;
      }
      choose(key, wanted);
    };
    controls.push(
      select(label('sweep.x'), options, state.x.column, pick('x', 'y')),
      select(label('sweep.y'), options, state.y.column, pick('y', 'x')),
    );
  }
  controls.push(
    select(
      label('sweep.value'),
      columns.map(column => [column.name, columnLabel(column.name) + betterOf(column)]),
      state.column.name,
      name => choose('column', by(columns, 'name', name)),
    ),
  );
  if (moving.length > 2) {
    controls.push(
      select(
        label('sweep.of'),
        Object.keys(summaries).map(name => [name, label(`sweep.${name}`)]),
        state.how,
        how => choose('how', how),
      ),
    );
  }
  return {
    height: 150 + heightOf(Math.max(...moving.slice(0, 3).map(axis => axis.values.length), 4)),
    controls,
    option: (colours, width) => optionOf(table, state, colours, width),
  };
}
