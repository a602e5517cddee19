// Charts of the explorer, by the parts of ECharts that lines and dots need. A bundle of its own: a report that carries the
// explorer has these parts already, and gives them instead.
import {LineChart, ScatterChart} from 'echarts/charts';
import {GridComponent, LegendComponent, MarkLineComponent, TooltipComponent} from 'echarts/components';
import {init, use} from 'echarts/core';
import {LabelLayout} from 'echarts/features';
import {CanvasRenderer} from 'echarts/renderers';

use([
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkLineComponent,
  TooltipComponent,
  LabelLayout,
  CanvasRenderer,
]);
self.llmperfCharts = {init};
