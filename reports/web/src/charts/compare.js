// What changed between two results: the ops of a phase whose time moved most, slower to the right.
import {tip} from '../dom.js';
import {seconds, signedSeconds, signedShare} from '../format.js';
import {label} from '../page.js';
import {phaseNamed} from '../phases.js';

const kBars = 25;

export function compare({phase: name}) {
  const ops = (phaseNamed(name)?.ops ?? [])
    .map(op => ({...op, change: op.change_s ?? (op.after_s ?? 0) - (op.before_s ?? 0)}))
    .filter(op => Number.isFinite(op.change) && op.change !== 0)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
    .slice(0, kBars);
  if (!ops.length) return null;
  const relative = op => (op.before_s > 0 ? signedShare(op.change / op.before_s) : '');
  return {
    height: 70 + 22 * ops.length,
    option: colours => ({
      grid: {left: 12, right: 40, top: 8, bottom: 40},
      tooltip: {
        trigger: 'axis',
        axisPointer: {type: 'shadow'},
        formatter: ([{dataIndex}]) => {
          const op = ops[dataIndex];
          return tip(op.name, [
            [label('compare.before'), seconds(op.before_s)],
            [label('compare.after'), seconds(op.after_s)],
            [label('compare.change'), `${signedSeconds(op.change)} ${relative(op)}`],
          ]);
        },
      },
      xAxis: {
        type: 'value',
        name: `← ${label('compare.faster')} · ${label('compare.slower')} →`,
        nameGap: 24,
        axisLabel: {formatter: value => (value ? signedSeconds(value) : '0'), hideOverlap: true},
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: ops.map(op => op.name),
        axisTick: {show: false},
        axisLine: {show: false, onZero: false},
        axisLabel: {color: colours.colour('text'), width: 150, overflow: 'truncate', interval: 0},
      },
      series: [
        {
          type: 'bar',
          barCategoryGap: '25%',
          data: ops.map(op => ({
            value: op.change,
            itemStyle: {color: colours.colour(op.change > 0 ? 'bad' : 'good')},
            label: {
              show: true,
              position: op.change > 0 ? 'right' : 'left',
              fontSize: 11,
              color: colours.colour('muted'),
              formatter: relative(op),
            },
          })),
        },
      ],
    }),
  };
}
