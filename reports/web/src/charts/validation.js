// Predicted against measured: on the line a prediction is exact, between the dashed lines nine rows of ten stand.
import {select, tip} from '../dom.js';
import {extent, seconds, share, signedShare} from '../format.js';
import {label, result} from '../page.js';

const kGroupings = ['runtime', 'hardware', 'model', 'phase', 'weights', 'tp'];
const kGroups = 8;

// The next of 1, 2, 5 times a power of ten below (or above) a value.
function rounded(value, up) {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 5, 10].map(step => step * power);
  return up ? steps.find(step => step >= value) : steps.filter(step => step <= value).at(-1);
}

function linesOf([low, high], colours) {
  const band = result.summary?.p90_ape;
  const line = (factor, name, style) => ({
    type: 'line',
    name,
    symbol: 'none',
    silent: true,
    z: 1,
    tooltip: {show: false},
    lineStyle: {width: 1.5, ...style},
    itemStyle: {color: style.color},
    data: [
      [low, low * factor],
      [high, high * factor],
    ],
  });
  const name = label('validation.band', {share: share(band)});
  const dashed = {type: 'dashed', color: colours.colour('muted')};
  return [
    line(1, label('validation.exact'), {color: colours.colour('text')}),
    ...(band > 0 && band < 1 ? [line(1 + band, name, dashed), line(1 - band, name, dashed)] : []),
  ];
}

function tooltipOf(row) {
  const facts = [...kGroupings, 'batch', 'new_tokens', 'context'].filter(
    key => row[key] !== undefined && row[key] !== '',
  );
  return tip(`${row.model ?? ''} ${row.phase ?? ''}`, [
    ...facts.map(key => [label(key), String(row[key])]),
    [label('validation.measured'), seconds(row.measured_s)],
    [label('validation.predicted'), seconds(row.predicted_s)],
    [label('validation.error'), signedShare(row.predicted_s / row.measured_s - 1)],
  ]);
}

export function validation({redraw}) {
  const rows = (result.rows ?? []).filter(row => row.measured_s > 0 && row.predicted_s > 0 && row.scored !== false);
  if (!rows.length) return null;
  const valuesOf = key => [...new Set(rows.map(row => String(row[key] ?? '–')))];
  const groupings = kGroupings.filter(key => valuesOf(key).length > 1 && valuesOf(key).length <= kGroups);
  const times = rows.flatMap(row => [row.measured_s, row.predicted_s]);
  const [low, high] = extent(times);
  const range = [rounded(low, false), rounded(high, true)];
  const state = {by: groupings[0]};
  const axis = (name, gap) => ({
    type: 'log',
    name,
    nameGap: gap,
    min: range[0],
    max: range[1],
    axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true},
  });
  const controls =
    groupings.length > 1
      ? [
          select(
            label('sweep.colour'),
            groupings.map(key => [key, label(key)]),
            state.by,
            by => {
              state.by = by;
              redraw();
            },
          ),
        ]
      : undefined;
  return {
    height: 460,
    controls,
    option: colours => {
      const groups = state.by ? valuesOf(state.by) : [label('validation.measured')];
      const lines = linesOf(range, colours);
      return {
        grid: {left: 20, right: 24, top: 16, bottom: 74},
        legend: {data: [...groups, ...new Set(lines.map(line => line.name))]},
        tooltip: {formatter: ({data}) => tooltipOf(rows[data.row])},
        xAxis: axis(label('validation.measured'), 28),
        yAxis: axis(label('validation.predicted'), 52),
        series: [
          ...lines,
          ...groups.map((group, index) => ({
            type: 'scatter',
            name: group,
            symbolSize: rows.length > 2000 ? 3 : 6,
            itemStyle: {color: colours.series(index), opacity: 0.6},
            data: rows.flatMap((row, index) =>
              !state.by || String(row[state.by] ?? '–') === group
                ? [{value: [row.measured_s, row.predicted_s], row: index}]
                : [],
            ),
          })),
        ],
      };
    },
  };
}
