// Traffic on an engine: how the run went, what share of the requests is within which time, and what time passes with.
import {tip} from '../dom.js';
import {number, seconds, share} from '../format.js';
import {label, result} from '../page.js';

const kBand = 104; // pixels of one of the timelines
const kGap = 26;

// Timelines below each other over one axis of time.
export function servingTimeline() {
  const moments = result.timeline ?? [];
  if (moments.length < 2) return null;
  const bands = [
    {keys: ['running', 'waiting'], text: value => number(value, 3)},
    {keys: ['kv_share'], text: share, max: 1},
    {keys: ['output_tokens_per_second'], text: value => number(value, 3)},
  ];
  const top = i => 18 + i * (kBand + kGap);
  const names = bands.flatMap(({keys}) => keys);
  return {
    height: top(bands.length) + 36,
    option: colours => ({
      grid: bands.map((unused, i) => ({left: 64, right: 20, top: top(i), height: kBand, containLabel: false})),
      legend: {data: names.map(key => label(`serving.${key}`))},
      axisPointer: {link: [{xAxisIndex: 'all'}]},
      tooltip: {
        trigger: 'axis',
        formatter: ([{dataIndex}]) =>
          tip(
            seconds(moments[dataIndex].begin_s),
            bands.flatMap(({keys, text}) =>
              keys.map(key => [label(`serving.${key}`), text(moments[dataIndex][key])]),
            ),
          ),
      },
      xAxis: bands.map((unused, i) => ({
        type: 'value',
        gridIndex: i,
        min: Math.min(0, moments[0].begin_s),
        max: moments.at(-1).begin_s,
        name: i + 1 === bands.length ? label('serving.time') : '',
        nameGap: 24,
        axisLabel: {show: i + 1 === bands.length, formatter: value => seconds(value, 3), hideOverlap: true},
        splitLine: {show: false},
      })),
      yAxis: bands.map(({text, max}, i) => ({
        type: 'value',
        gridIndex: i,
        min: 0,
        max,
        splitNumber: 3,
        axisLabel: {formatter: value => (max ? `${Math.round(value * 100)} %` : text(value)), hideOverlap: true},
      })),
      series: bands.flatMap(({keys}, i) =>
        keys.map(key => ({
          type: 'line',
          name: label(`serving.${key}`),
          xAxisIndex: i,
          yAxisIndex: i,
          symbol: 'none',
          step: 'end',
          lineStyle: {width: 1.5},
          color: colours.series(names.indexOf(key)),
          areaStyle: {opacity: 0.1},
          data: moments.map(moment => [moment.begin_s, moment[key]]),
        })),
      ),
    }),
  };
}

const kTimes = ['ttft_s', 'tpot_s', 'e2e_s'];

// Curves of percentiles: the share of the requests below, their time on a logarithmic axis.
export function percentiles() {
  const points = result.percentiles ?? [];
  const shown = kTimes.filter(key => points.some(point => point[key] > 0));
  if (points.length < 2 || !shown.length) return null;
  return {
    height: 320,
    option: colours => ({
      grid: {left: 16, right: 24, top: 12, bottom: 62},
      legend: {data: shown.map(key => label(`serving.${key}`))},
      tooltip: {
        trigger: 'axis',
        formatter: ([{data}]) => {
          const point = points[data.at];
          return tip(
            label('serving.within', {share: share(point.share)}),
            shown.map(key => [label(`serving.${key}`), seconds(point[key])]),
          );
        },
      },
      xAxis: {
        type: 'value',
        min: 0,
        max: 1,
        name: label('serving.share'),
        nameGap: 26,
        axisLabel: {formatter: value => `${Math.round(value * 100)} %`},
        splitLine: {show: false},
      },
      yAxis: {type: 'log', axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true}},
      series: shown.map((key, index) => ({
        type: 'line',
        name: label(`serving.${key}`),
        symbol: 'none',
        color: colours.series(index),
        data: points.flatMap((point, at) => (point[key] > 0 ? [{value: [point.share, point[key]], at}] : [])),
      })),
    }),
  };
}

const kCauses = {
  ttft: ['queue', 'kv', 'budget', 'prefill', 'interference'],
  itl: ['decode', 'prefill', 'stall'],
};

// A bar of 100 % for the time to a first token, and one for that between tokens.
export function causes() {
  const bars = Object.keys(kCauses).filter(of => Object.values(result.causes?.[of] ?? {}).some(value => value > 0));
  if (!bars.length) return null;
  const parts = bars.flatMap(of => kCauses[of].map(cause => ({of, cause})));
  const nameOf = ({of, cause}) => label(`serving.${of}.${cause}`);
  return {
    height: 78 + 48 * bars.length,
    option: (colours, width) => ({
      grid: {left: 8, right: 24, top: 8, bottom: 52},
      legend: {data: parts.map(nameOf)},
      tooltip: {formatter: ({seriesName, value}) => tip(seriesName, [[label('share'), share(value)]])},
      xAxis: {type: 'value', max: 1, axisLabel: {formatter: value => `${Math.round(value * 100)} %`}},
      yAxis: {
        type: 'category',
        inverse: true,
        data: bars.map(of => label(`serving.${of}`)),
        axisTick: {show: false},
        axisLabel: {color: colours.colour('text')},
      },
      series: parts.map((part, index) => ({
        type: 'bar',
        stack: 'all',
        name: nameOf(part),
        barMaxWidth: 30,
        itemStyle: {color: colours.series(index), borderColor: colours.colour('surface'), borderWidth: 1},
        label: {
          show: true,
          color: colours.colour('on-fill'),
          fontSize: 11,
          formatter: ({value}) => (value * width > 46 ? share(value) : ''),
        },
        data: bars.map(of => (of === part.of ? result.causes[of][part.cause] : null)),
      })),
    }),
  };
}
