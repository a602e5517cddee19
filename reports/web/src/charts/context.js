// Growth with the context: the KV cache on the left, the time of a decode step on the right.
import {tip} from '../dom.js';
import {capacity, kGiB, number, seconds} from '../format.js';
import {label, result} from '../page.js';

const tokens = value => (value >= 1024 && value % 1024 === 0 ? `${value / 1024}K` : String(value));

// The longest context that fits, where the result names one below the point.
const longestOf = ({context_tokens: above}) =>
  result.longest_context_tokens < above ? result.longest_context_tokens : 0;
// Weights and cache may be spread over devices, or partly stand in the host's memory.
const isShare = () => result.inputs?.plan?.devices > 1 || Boolean(result.inputs?.offload);

export function contextCurve() {
  const points = (result.context_curve ?? []).filter(point => point.context_tokens > 0);
  if (points.length < 2) return null;
  const timed = points.filter(point => point.decode_step_s > 0);
  const unfit = points.findIndex(point => point.fits === false);
  const last = points.at(-1).context_tokens;
  // All between the longest context that fits and the first point that does not is out of reach too.
  const fitting = points[Math.max(0, unfit - 1)].context_tokens;
  const reach = unfit > 0 ? Math.max(fitting, longestOf(points[unfit])) : fitting;
  const powers = Array.from({length: 32}, (unused, i) => 2 ** i).filter(
    value => value >= points[0].context_tokens && value <= last,
  );
  const kvName = label(isShare() ? 'context.kv.device' : 'context.kv');
  const latencyName = label('context.latency');
  return {
    height: 340,
    option: colours => ({
      grid: {left: 16, right: 16, top: 16, bottom: 62},
      legend: {data: timed.length ? [kvName, latencyName] : [kvName]},
      tooltip: {
        trigger: 'axis',
        formatter: ([
          {
            data: {at},
          },
        ]) => {
          const point = points[at];
          const rows = [[kvName, capacity(point.kv_cache_bytes)]];
          if (point.decode_step_s > 0) rows.push([latencyName, seconds(point.decode_step_s)]);
          if (point.fits === false) rows.push([label('context.unfit'), '✗']);
          return tip(`${point.context_tokens.toLocaleString('en')} tokens`, rows);
        },
      },
      xAxis: {
        type: 'log',
        logBase: 2,
        name: label('context.axis'),
        nameGap: 26,
        min: points[0].context_tokens,
        max: last,
        axisTick: {customValues: powers},
        axisLabel: {formatter: tokens, hideOverlap: true, customValues: powers},
        splitLine: {show: false},
      },
      yAxis: [
        {type: 'value', name: `${kvName} (GiB)`, nameGap: 40, axisLabel: {formatter: value => number(value)}},
        {
          type: 'value',
          name: label('context.latency.axis'),
          nameGap: 40,
          nameRotate: 90,
          show: timed.length > 0,
          min: 0,
          splitLine: {show: false},
          axisLabel: {formatter: value => number(value)},
        },
      ],
      series: [
        {
          type: 'line',
          name: kvName,
          symbolSize: 6,
          color: colours.series(0),
          areaStyle: {opacity: 0.12},
          data: points.map((point, at) => ({
            value: [point.context_tokens, point.kv_cache_bytes / kGiB],
            at,
            symbol: point.fits === false ? 'emptyCircle' : 'circle',
          })),
          markArea: unfit < 0 ? undefined : {
            silent: true,
            itemStyle: {color: colours.colour('bad'), opacity: 0.08},
            label: {color: colours.colour('bad'), position: 'insideTopRight'},
            data: [[{xAxis: reach, name: label('context.unfit')}, {xAxis: last}]],
          },
        },
        {
          type: 'line',
          name: latencyName,
          yAxisIndex: 1,
          symbol: 'rect',
          symbolSize: 6,
          color: colours.series(1),
          lineStyle: {type: 'dashed'},
          data: timed.map(point => ({
            value: [point.context_tokens, point.decode_step_s * 1e3],
            at: points.indexOf(point),
          })),
        },
      ],
    }),
  };
}
