// What stands in memory against what there is: one bar per memory, its parts stacked, the capacity marked.
import {tip} from '../dom.js';
import {capacity, kGiB, share} from '../format.js';
import {label, result, valueLabel} from '../page.js';

const kParts = ['weight', 'gradient', 'optimizer', 'kv_cache', 'activation', 'workspace', 'reserve'];

// The parts of one memory; what the known ones leave of the total is "other". Nothing without a total.
function partsOf(name, memory) {
  const total = memory?.total_bytes;
  const size = memory?.capacity_bytes;
  if (!(total > 0)) return null;
  const parts = new Map();
  let known = 0;
  for (const part of kParts) {
    const value = memory[`${part}_bytes`];
    if (!(value > 0) || known + value > total * 1.000001) continue;
    parts.set(part, value);
    known += value;
  }
  if (total - known > total * 1e-6) parts.set('other', total - known);
  if (size > total) parts.set('free', size - total);
  return {name: label(`memory.${name}`), parts, total, size};
}

export function memory() {
  const rows = [partsOf('device', result.memory), partsOf('host', result.host_memory)].filter(Boolean);
  if (!rows.length) return null;
  const names = [...kParts, 'other', 'free'].filter(part => rows.some(row => row.parts.has(part)));
  const fill = (part, index, colours) => (part === 'free' ? 'transparent' : colours.series(index));
  const end = (Math.max(...rows.map(row => Math.max(row.size ?? 0, row.total))) * 1.04) / kGiB;
  // The capacity: a stroke across the bar, its text on the side that has room.
  const mark = ({size, total}, row, colours) => {
    const colour = colours.colour(total > size ? 'bad' : 'text');
    const values = {capacity: capacity(size), over: capacity(total - size)};
    const text = total > size ? label('memory.over', values) : `${label('memory.capacity')} ${capacity(size)}`;
    const at = size / kGiB / end;
    const [position, align] = at > 0.6 ? [[2, -16], 'right'] : at < 0.2 ? [[0, -16], 'left'] : ['top', 'center'];
    return {
      value: [size / kGiB, row],
      row,
      bytes: total,
      symbol: 'rect',
      symbolSize: [2, 46],
      itemStyle: {color: colour},
      label: {
        show: true,
        formatter: text,
        color: colour,
        fontSize: 11,
        position,
        align,
      },
    };
  };
  return {
    height: 130 + 56 * rows.length,
    option: (colours, width) => ({
      grid: {left: 8, right: 16, top: 30, bottom: 68},
      legend: {data: names.map(part => valueLabel('memory', part))},
      tooltip: {
        formatter: ({seriesName, data}) =>
          tip(`${rows[data.row].name}: ${seriesName}`, [
            [label('bytes'), capacity(data.bytes)],
            ...(rows[data.row].size
              ? [
                  [
                    label('memory.capacity'),
                    `${capacity(rows[data.row].size)} (${share(data.bytes / rows[data.row].size)})`,
                  ],
                ]
              : []),
          ]),
      },
      xAxis: {
        type: 'value',
        name: 'GiB',
        nameGap: 26,
        max: end,
        axisLabel: {showMaxLabel: false},
        splitLine: {showMaxLine: false},
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: rows.map(row => row.name),
        axisTick: {show: false},
        axisLabel: {color: colours.colour('text')},
      },
      series: [
        ...names.map((part, index) => ({
          type: 'bar',
          stack: 'all',
          name: valueLabel('memory', part),
          barMaxWidth: 36,
          itemStyle: {
            color: fill(part, index, colours),
            borderColor: colours.colour(part === 'free' ? 'axis' : 'surface'),
            borderType: part === 'free' ? 'dashed' : 'solid',
            borderWidth: 1,
          },
          label: {
            show: true,
            fontSize: 11,
            color: colours.colour(part === 'free' ? 'muted' : 'on-fill'),
            formatter: ({data}) => ((data.value * width) / end > 70 ? capacity(data.bytes, 3) : ''),
          },
          data: rows.map(({parts}, row) => ({value: (parts.get(part) ?? 0) / kGiB, bytes: parts.get(part) ?? 0, row})),
        })),
        {
          type: 'scatter',
          name: label('memory.capacity'),
          z: 5,
          data: rows.flatMap((row, index) => (row.size ? [mark(row, index, colours)] : [])),
        },
      ],
    }),
  };
}
