// Predicted against measured: on the line a prediction is exact, between the dashed lines nine rows of ten stand.
import {select, tip} from '../dom.js';
import {seconds, share, signedShare} from '../format.js';
import {label, result} from '../page.js';

const kGroupings = ['runtime', 'hardware', 'model', 'phase', 'weights', 'tp'];
const kGroups = 8;

const power = (value, round) => 10 ** round(Math.log10(value));

function linesOf([low, high], colours) {
  const band = result.summary?.p90_ape;
  const line = (factor, name, style) => ({type: 'line', name, symbol: 'none', silent: true, z: 1, tooltip: {show: false},
    lineStyle: {width: 1.5, ...style}, itemStyle: {color: style.color},
    data: [[low, low * factor], [high, high * factor]]});
  const name = label('validation.band', {share: share(band)});
  const dashed = {type: 'dashed', color: colours.colour('muted')};
  return [line(1, label('validation.exact'), {color: colours.colour('text')}),
    ...(band > 0 && band < 1 ? [line(1 + band, name, dashed), line(1 - band, name, dashed)] : [])];
}

export function validation({redraw}) {
  const rows = (result.rows ?? []).filter(row => row.measured_s > 0 && row.predicted_s > 0 && row.scored !== false);
  if (!rows.length) return null;
  const valuesOf = key => [...new Set(rows.map(row => String(row[key] ?? '–')))];
  const groupings = kGroupings.filter(key => valuesOf(key).length > 1 && valuesOf(key).length <= kGroups);
  const times = rows.flatMap(row => [row.measured_s, row.predicted_s]);
  const low = times.reduce((a, b) => Math.min(a, b));
  const high = times.reduce((a, b) => Math.max(a, b));
  const range = [power(low, Math.floor), power(high, Math.ceil)];
  const state = {by: groupings[0]};
  const axis = (name, gap) => ({type: 'log', name, nameGap: gap, min: range[0], max: range[1],
    axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true}});
  const controls = groupings.length > 1 ? [select(label('sweep.colour'), groupings.map(key => [key, label(key)]), state.by, by => {
    state.by = by;
    redraw();
  })] : undefined;
  return {
    height: 460,
    controls,
    option: colours => {
      const groups = state.by ? valuesOf(state.by) : [label('validation.measured')];
      const lines = linesOf(range, colours);
      return {
        grid: {left: 20, right: 24, top: 16, bottom: 84},
        legend: {data: [...groups, ...new Set(lines.map(line => line.name))]},
        tooltip: {formatter: ({data}) => data.row && tip(`${data.row.model ?? ''} ${data.row.phase ?? ''}`, [
          ...kGroupings.filter(key => data.row[key] !== undefined && data.row[key] !== '').map(key => [label(key), String(data.row[key])]),
          ['batch', String(data.row.batch ?? '–')],
          [label('validation.measured'), seconds(data.row.measured_s)],
          [label('validation.predicted'), seconds(data.row.predicted_s)],
          [label('validation.error'), signedShare(data.row.predicted_s / data.row.measured_s - 1)]])},
        xAxis: axis(label('validation.measured'), 28),
        yAxis: axis(label('validation.predicted'), 52),
        series: [
          ...lines,
          ...groups.map((group, index) => ({
            type: 'scatter', name: group, symbolSize: rows.length > 2000 ? 3 : 6,
            itemStyle: {color: colours.series(index), opacity: 0.6},
            data: rows.filter(row => !state.by || String(row[state.by] ?? '–') === group)
              .map(row => ({value: [row.measured_s, row.predicted_s], row})),
          })),
        ],
      };
    },
  };
}
