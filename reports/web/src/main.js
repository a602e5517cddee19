// The script of a report: everything it shows is in the page without it too, as text and tables.
import {bars, table} from './charts/bars.js';
import {compare} from './charts/compare.js';
import {contextCurve} from './charts/context.js';
import {schedule, timeline} from './charts/lanes.js';
import {memory} from './charts/memory.js';
import {capacityFront, pareto} from './charts/pareto.js';
import {roofline} from './charts/roofline.js';
import {heatmap} from './charts/heatmap.js';
import {causes, percentiles, servingTimeline} from './charts/serving.js';
import {timeByBound, timeByOp} from './charts/time.js';
import {validation} from './charts/validation.js';
import {drawCharts} from './draw.js';
import {addExplorer} from './explore.js';
import {enhanceTables} from './tables.js';
import {addThemeButton} from './theme.js';

addThemeButton();
addExplorer();
enhanceTables();
drawCharts({
  roofline: roofline,
  timeline: timeline,
  schedule: schedule,
  bars: bars,
  table: table,
  'time-by-op': timeByOp,
  'time-by-bound': timeByBound,
  memory: memory,
  context: contextCurve,
  'sweep-heatmap': heatmap,
  'sweep-pareto': pareto,
  validation: validation,
  compare: compare,
  'serving-timeline': servingTimeline,
  percentiles: percentiles,
  causes: causes,
  'capacity-front': capacityFront,
});
performance.mark('report-ready');
