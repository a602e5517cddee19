// What runs when: lanes of bars over time, one window of time below the other. The steps of an estimate are
// laid out from their ops (../steps.js), the schedule of a mapping is in the document.
import {tip} from '../dom.js';
import {seconds, share} from '../format.js';
import {label, result, valueLabel} from '../page.js';
import {boundsOf, phaseNamed} from '../phases.js';
import {kMostBars, laidOut} from '../steps.js';

const kLane = 30; // pixels
const kAround = 62; // the title of a window and its axis
const kTextWidth = 6.5; // pixels of a letter

// lanes: names; bars: [{lane, from, to, name, group, tip}]; groups: [[name, colour(palette)]];
// windows: [{title, from, to}]
function lanesChart({lanes, bars, groups, windows, note}) {
  const height = kAround + kLane * lanes.length;
  const rectangle = window => (params, api) => {
    const bar = bars[api.value(3)];
    const [left, y] = api.coord([Math.max(api.value(1), 0), api.value(0)]);
    const right = api.coord([Math.min(api.value(2), windows[window].to - windows[window].from), api.value(0)])[0];
    const width = Math.max(right - left, 0.5);
    const room = bar.name.length * kTextWidth < width;
    return {
      type: 'rect',
      shape: {x: left, y: y - kLane * 0.4, width, height: kLane * 0.8},
      style: {...api.style(), lineWidth: width > 4 ? 1 : 0},
      textContent: room ? {style: {text: bar.name, fontSize: 11, fill: api.visual('borderColor')}} : undefined,
      textConfig: {position: 'inside'},
    };
  };
  return {
    height: height * windows.length + (groups.length > 1 ? 26 : 0),
    note,
    option: colours => ({
      grid: windows.map((unused, i) => ({
        left: 84,
        right: 20,
        top: 24 + height * i,
        height: kLane * lanes.length,
        containLabel: false,
      })),
      legend: groups.length > 1 ? {data: groups.map(([name]) => name)} : undefined,
      tooltip: {formatter: ({data}) => tip(bars[data[3]].name, bars[data[3]].tip)},
      xAxis: windows.map(({from, to, title}, i) => ({
        type: 'value',
        gridIndex: i,
        min: 0,
        max: to - from,
        name: title,
        nameLocation: 'start',
        nameGap: 0,
        nameTextStyle: {align: 'left', verticalAlign: 'bottom', padding: [0, 0, kLane * lanes.length + 4, 0]},
        axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true, showMaxLabel: false},
        splitLine: {show: false},
      })),
      yAxis: windows.map((unused, i) => ({
        type: 'category',
        gridIndex: i,
        inverse: true,
        data: lanes,
        axisTick: {show: false},
        axisLabel: {color: colours.colour('text'), width: 76, overflow: 'truncate'},
      })),
      series: windows.flatMap(({from, to}, i) =>
        groups.map(([name, colour]) => ({
          type: 'custom',
          name,
          xAxisIndex: i,
          yAxisIndex: i,
          clip: true,
          renderItem: rectangle(i),
          encode: {x: [1, 2], y: 0},
          itemStyle: {color: colour(colours), borderColor: colours.colour('surface'), borderWidth: 1},
          data: bars.flatMap((bar, at) =>
            bar.group !== name || bar.to <= from || bar.from >= to
              ? []
              : [[bar.lane, bar.from - from, bar.to - from, at]],
          ),
        })),
      ),
    }),
  };
}

const kPlaces = ['host', 'link', 'device', 'network'];

export function timeline({phase: name}) {
  const phase = phaseNamed(name);
  const {spans, end, layers} = laidOut(phase);
  if (spans.length < 2 || spans.length > kMostBars) return null;
  const placeOf = op => (op.kind === 'overhead' ? 'host' : op.place ?? 'device');
  const places = kPlaces.filter(place => spans.some(({op}) => placeOf(op) === place));
  const bounds = boundsOf(spans.map(({op}) => op));
  const windows = [{title: `${label('timeline.step')} ${seconds(end)}`, from: 0, to: end}];
  const middle = Math.floor(layers / 2);
  const layer = spans.filter(span => span.layer === middle);
  if (layers > 1 && layer.length)
    windows.push({
      title: label('timeline.layer', {number: middle + 1, total: layers}),
      from: layer[0].from,
      to: layer.at(-1).to,
    });
  const notes = [];
  if (phase.micro_batches > 1) notes.push(label('timeline.batches', {count: phase.micro_batches}));
  if (spans.some(({op}) => op.kind === 'overhead')) notes.push(label('timeline.overhead'));
  return lanesChart({
    lanes: places.map(place => label(`timeline.${place}`)),
    groups: bounds.map(bound => [valueLabel('bound', bound), colours => colours.bound(bound)]),
    windows,
    note: notes.join(' '),
    bars: spans.map(({op, from, to}) => ({
      lane: places.indexOf(placeOf(op)),
      from,
      to,
      name: op.name,
      group: valueLabel('bound', op.bound),
      tip: [
        [label('time'), `${seconds(to - from)} (${share((to - from) / end)})`],
        [label('shape'), op.shape || '–'],
        [label('bound'), valueLabel('bound', op.bound)],
        [label('timeline.times'), String(op.times)],
      ],
    })),
  });
}

export function schedule() {
  const {lanes, windows} = result.schedule;
  if (!lanes?.length || !windows?.length) return null;
  const titles = windows.length > 1 ? ['schedule.first', 'schedule.last'] : ['timeline.step'];
  return lanesChart({
    lanes: lanes.map(lane => lane.name),
    groups: lanes.map((lane, i) => [lane.name, colours => colours.series(i)]),
    windows: windows.map(({begin_s: from, end_s: to}, i) => ({
      title: windows.length > 1 ? label(titles[i > 0 ? 1 : 0], {time: seconds(to - from)}) : seconds(to - from),
      from,
      to,
    })),
    bars: lanes.flatMap(({name, bars}, lane) =>
      bars.map(({step, begin_s: from, end_s: to}) => ({
        lane,
        from,
        to,
        name: String(step),
        group: name,
        tip: [[label('schedule.step', {step}), `${name} ${seconds(to - from)}`]],
      })),
    ),
  });
}
