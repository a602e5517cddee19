// The points of a sweep on two of its measures, and the front of those that no other point beats on both. Where a front
// was asked for, it is that one, of those measures, with the points that it beats behind it.
import {select, tip} from '../dom.js';
import {byKey, extent} from '../format.js';
import {frontOf} from '../front.js';
import {label, result, valueLabel} from '../page.js';
import {columnLabel, finished, measures, movingAxes, tableAt, valueOf} from '../sweep.js';

const kColours = 8;
const kLogAbove = 30;

function axisOf(column, values, gap) {
  const [low, high] = extent(values);
  const log = low > 0 && high / low > kLogAbove;
  const better = ` (${valueLabel('sweep', column.better)})`;
  return {
    type: log ? 'log' : 'value',
    scale: true,
    name: columnLabel(column.name) + better,
    nameGap: gap,
    axisLabel: {formatter: value => byKey(column.name, value, 3), hideOverlap: true},
  };
}

function optionOf(rows, asked, {x, y, colour}, moving, colours) {
  const points = rows
    .map((row, index) => ({row, index, at: [row[x.name], row[y.name]]}))
    .filter(({at}) => at.every(Number.isFinite));
  // Of more than two measures the front is no line.
  const front = asked?.columns.length > 2 ? [] : frontOf(points, [x.better, y.better]);
  const at = ({name}) => asked.columns.findIndex(column => column.name === name);
  const beaten = (asked?.beaten ?? []).map(values => [values[at(x)], values[at(y)]]);
  const groups = colour ? colour.values.slice(0, kColours) : [null];
  const inGroup = (point, group) => group === null || valueOf(point.row, colour.column) === group;
  const plain = point => ({value: point.at, index: point.index});
  // What is on the front keeps the colour of its group.
  const onFront = point => {
    const group = groups.findIndex(one => inGroup(point, one));
    return {...plain(point), itemStyle: {color: group < 0 ? colours.colour('axis') : colours.series(group)}};
  };
  const frontName = label('sweep.front');
  const beatenName = label('sweep.beaten');
  const all = [...points.map(point => point.at), ...beaten];
  return {
    grid: {left: 20, right: 24, top: 16, bottom: 74},
    legend: {
      data: [...groups.filter(Boolean), ...(front.length ? [frontName] : []), ...(beaten.length ? [beatenName] : [])],
      type: 'scroll',
      pageTextStyle: {color: colours.colour('text')},
    },
    tooltip: {
      formatter: ({data: {index, value}}) =>
        index === undefined
          ? ''
          : tip(`${byKey(x.name, value[0])}, ${byKey(y.name, value[1])}`, [
          ...moving.map(axis => [columnLabel(axis.column), valueOf(rows[index], axis.column)]),
          [columnLabel(x.name), byKey(x.name, value[0])],
          [columnLabel(y.name), byKey(y.name, value[1])],
        ]),
    },
    xAxis: axisOf(x, all.map(one => one[0]), 28),
    yAxis: axisOf(y, all.map(one => one[1]), 62),
    series: [
      {
        type: 'scatter',
        name: beatenName,
        silent: true,
        symbolSize: 4,
        itemStyle: {color: colours.colour('axis'), opacity: 0.7},
        data: beaten,
      },
      ...groups.map((group, index) => ({
        type: 'scatter',
        name: group ?? label('sweep.points'),
        symbolSize: points.length > 2000 ? 4 : 7,
        large: points.length > 5000,
        itemStyle: {color: colours.series(index), opacity: 0.7},
        data: points.filter(point => inGroup(point, group)).map(plain),
      })),
      {
        type: 'line',
        name: frontName,
        data: front.map(onFront),
        symbol: 'circle',
        symbolSize: 9,
        z: 5,
        lineStyle: {color: colours.colour('text'), width: 2},
        itemStyle: {color: colours.colour('text'), borderColor: colours.colour('text'), borderWidth: 2},
      },
    ],
  };
}

// What serves a rate: what each costs (or what else is least) and how long a request takes, with the front of both. Of
// a fleet what a user and what a device gets.
export function capacityFront() {
  const rows = (result.candidates ?? []).filter(one => one.meets && one.at).map(one => ({...one, ...one.at}));
  const fleet = result.minimise === 'rate';
  const better = fleet ? 'higher' : 'lower';
  const least = {devices: 'devices', energy: 'power_w', rate: 'tokens_per_second_per_user'};
  const x = {name: least[result.minimise] ?? 'cost_per_hour', better};
  const y = {name: fleet ? 'tokens_per_second_per_device' : 'e2e_mean_s', better};
  if (new Set(rows.map(row => row[x.name]).filter(Number.isFinite)).size < 2) return null;
  const colour = {column: 'hardware', values: [...new Set(rows.map(row => row.hardware))]};
  const told = ['hardware', 'replicas', 'plan', 'weights', 'engine'].map(column => ({column}));
  return {
    height: 360,
    option: colours => optionOf(rows, null, {x, y, colour}, told, colours),
  };
}

export function pareto({rows: path, redraw}) {
  const asked = path === 'pareto' ? result.pareto : null;
  const table = tableAt('rows');
  const columns = asked?.columns ?? measures(table).filter(column => column.better);
  if (columns.length < 2) return null;
  const moving = movingAxes(table);
  const colourable = moving.filter(axis => axis.values.length <= kColours);
  const first = columns[0];
  // Two measures of the same kind (TTFT and TPOT) rarely pull apart: a cost against a gain shows a choice.
  const second = asked ? columns[1] : columns.find(column => column.better !== first.better) ?? columns[1];
  const [x, y] = asked || first.better === 'lower' ? [first, second] : [second, first];
  const state = {x, y, colour: colourable.at(-1)};
  const choice = (key, text) =>
    select(
      text,
      columns.map(column => [column.name, columnLabel(column.name)]),
      state[key].name,
      name => {
        state[key] = columns.find(column => column.name === name);
        redraw();
      },
    );
  const fixed = asked?.columns.length === 2;
  const controls = fixed ? [] : [choice('x', label('sweep.x')), choice('y', label('sweep.y'))];
  if (colourable.length) {
    controls.push(
      select(
        label('sweep.colour'),
        [['', label('sweep.none')], ...colourable.map(axis => [axis.column, columnLabel(axis.column)])],
        state.colour.column,
        name => {
          state.colour = colourable.find(axis => axis.column === name);
          redraw();
        },
      ),
    );
  }
  return {height: 420, controls, option: colours => optionOf(finished(table), asked, state, moving, colours)};
}
