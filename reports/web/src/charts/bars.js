// Any list with names and one number worth comparing: a bar for each of its first rows.
import {tip} from '../dom.js';
import {byKey} from '../format.js';
import {label} from '../page.js';
import {at, columnLabel, finished, measures, movingAxes, tableAt, valueOf} from '../sweep.js';
import {heatmap} from './heatmap.js';

const kBars = 24;
const kBarHeight = 22;
// What a row is called, and which of its numbers is drawn: the first that it has.
const kNames = ['plan', 'algorithm', 'split', 'by', 'name'];
const kValues = ['step_s', 'time_s', 'mape'];

const textOf = value => value?.text ?? value;

// rows: [{name, value, bad, tip: [[label, value]…]}]
const option = (rows, key) => colours => ({
  grid: {left: 8, right: 70, top: 4, bottom: 40},
  tooltip: {
    trigger: 'axis',
    axisPointer: {type: 'shadow'},
    formatter: ([{dataIndex}]) => tip(rows[dataIndex].name, rows[dataIndex].tip),
  },
  xAxis: {
    type: 'value',
    name: columnLabel(key),
    nameGap: 24,
    axisLabel: {formatter: value => byKey(key, value, 3), hideOverlap: true},
  },
  yAxis: {
    type: 'category',
    inverse: true,
    data: rows.map(row => row.name),
    axisTick: {show: false},
    axisLabel: {color: colours.colour('text'), width: 190, overflow: 'truncate', interval: 0},
  },
  series: [
    {
      type: 'bar',
      barCategoryGap: '25%',
      label: {
        show: true,
        position: 'right',
        fontSize: 11,
        color: colours.colour('muted'),
        formatter: ({value}) => byKey(key, value, 3),
      },
      data: rows.map(({value, bad}) => ({value, itemStyle: {color: colours.colour(bad ? 'bad' : 'series-1')}})),
    },
  ],
});
const plan = (rows, key) => (rows.length ? {height: 50 + kBarHeight * rows.length, option: option(rows, key)} : null);

export function bars({rows: path}) {
  const list = at(path);
  const key = kValues.find(name => list.some(row => Number.isFinite(row[name])));
  const names = kNames.filter(name => list.some(row => textOf(row[name])));
  if (!key) return null;
  const rows = list.filter(row => Number.isFinite(row[key])).slice(0, kBars);
  return plan(
    rows.map(row => ({
      name: names.map(name => textOf(row[name])).join(' · '),
      value: row[key],
      bad: row.fits === false,
      tip: Object.entries(row)
        .filter(([, value]) => ['number', 'boolean', 'string'].includes(typeof value))
        .slice(0, 8)
        .map(([name, value]) => [label(name), byKey(name, value)]),
    })),
    key,
  );
}

// The table of a study: a map of two axes where it has them, else bars.
export function table(figure) {
  const found = tableAt(figure.rows);
  const moving = movingAxes(found);
  const column = measures(found)[0];
  if (!column || !moving.length) return null;
  if (moving.length > 1) return heatmap(figure);
  const rows = finished(found).filter(row => Number.isFinite(row[column.name])).slice(0, kBars);
  return plan(
    rows.map(row => ({
      name: moving.map(axis => valueOf(row, axis.column)).join(' · '),
      value: row[column.name],
      tip: Object.entries(row).map(([name, value]) => [label(name), byKey(name, value)]),
    })),
    column.name,
  );
}
