// What charts have in common.
import {element} from './dom.js';

const kFontSize = 12;
const kLegendGap = 14;
const kLegendIcon = 14;

// How many rows the legend takes beyond its first: the chart grows by them.
const ruler = element('canvas').getContext('2d');
export function extraLegendRows({legend, series}, colours, width) {
  if (!legend || legend.type === 'scroll') return 0;
  ruler.font = `${kFontSize}px ${colours.font}`;
  const names = legend.data ?? [...new Set(series.map(one => one.name).filter(Boolean))];
  let [rows, used] = [0, 0];
  for (const name of names) {
    const needs = ruler.measureText(name).width + kLegendIcon + kLegendGap + 5;
    if (used && used + needs > width) {
      ++rows;
      used = 0;
    }
    used += needs;
  }
  return rows;
}

// What all charts have in common; `option` overrides it key by key.
export function styled(option, colours, extra) {
  const text = {color: colours.colour('text'), fontFamily: colours.font, fontSize: kFontSize};
  const axis = one => ({
    nameTextStyle: {color: colours.colour('muted')},
    nameLocation: 'middle',
    ...one,
    axisLabel: {color: colours.colour('muted'), ...one.axisLabel},
    axisLine: {lineStyle: {color: colours.colour('axis')}, ...one.axisLine},
    axisTick: {lineStyle: {color: colours.colour('axis')}, ...one.axisTick},
    splitLine: {lineStyle: {color: colours.colour('line')}, ...one.splitLine},
  });
  const axes = given => [given].flat().map(axis);
  return {
    animation: false,
    textStyle: text,
    ...option,
    legend: option.legend && {
      bottom: 0,
      type: 'plain',
      itemGap: kLegendGap,
      itemWidth: kLegendIcon,
      itemHeight: 10,
      textStyle: text,
      inactiveColor: colours.colour('axis'),
      ...option.legend,
    },
    tooltip: {
      confine: true,
      transitionDuration: 0,
      backgroundColor: colours.colour('surface'),
      borderColor: colours.colour('axis'),
      padding: [6, 10],
      textStyle: text,
      ...option.tooltip,
    },
    grid: Array.isArray(option.grid) ? option.grid : {...option.grid, bottom: option.grid.bottom + extra},
    xAxis: axes(option.xAxis),
    yAxis: axes(option.yAxis),
  };
}
