// The roofline of a phase, and the throughput against the speed of a request over the batches.
import {rooflineOf} from '../charts/roofline.js';
import {element, tip} from '../dom.js';
import {timed, phaseName} from './answer.js';
import * as number from './number.js';
import {Panel, Plot, setText} from './panel.js';
import {say} from './say.js';

export class RooflinePanel extends Panel {
  constructor() {
    super('roofline', say('roofline'));
    this.plot = new Plot(say('roofline'), 380);
    this.body.append(this.plot.element);
    this.tools.append((this.tabs = element('div', {className: 'tabs', role: 'group'})));
    this.tabs.setAttribute('aria-label', say('roofline'));
    this.phase = 'decode';
  }

  update({document}) {
    const phases = timed(document);
    const chosen = phases.find(one => one.name === this.phase) ?? phases.at(-1);
    const key = phases.map(one => one.name).join();
    if (key !== this.key) {
      this.key = key;
      this.tabs.replaceChildren(
        ...phases.map(({name}) =>
          element(
            'button',
            {
              type: 'button',
              'data-phase': name,
              onclick: () => {
                this.phase = name;
                this.stale = true;
                this.draw();
              },
            },
            phaseName(name),
          ),
        ),
      );
    }
    for (const tab of this.tabs.children) tab.setAttribute('aria-pressed', String(tab.dataset.phase === chosen?.name));
    const plan = chosen && rooflineOf(chosen.ops, document.roofs ?? {});
    this.body.hidden = !plan;
    if (!plan) return;
    setText(this.note, plan.note);
    this.plot.height = plan.height;
    this.plot.show(plan.option);
  }
}

// ---- The curve.

// Batches up to the largest that fits: powers of two and what is half way, and the present one.
export function batchesFor(largest, now) {
  const steps = new Set([now]);
  const most = Math.max(now, Math.min(largest || now, 8192));
  for (let step = 1; step <= most; step *= 2) {
    steps.add(step);
    if (step >= 2 && step * 1.5 <= most) steps.add(step * 1.5);
  }
  if (largest <= 8192) steps.add(most);
  return [...steps].filter(step => step <= most).sort((a, b) => a - b);
}

const pointOf = row => [1 / row.tpot_s, row.batch / row.tpot_s];

export class CurvePanel extends Panel {
  // `take(batch)`: the reader chose another.
  constructor(take) {
    super('curve', say('curve'));
    this.plot = new Plot(say('curve'), 470, ({data}) => data?.batch && take(data.batch));
    this.body.append(this.plot.element);
    setText(this.note, say('curve.note'));
    this.curves = [];
  }

  // curves: [{name, rows, now, batch}], the present one first.
  showCurves(curves) {
    this.curves = curves;
    this.stale = true;
    if (this.near) this.draw();
  }

  update({document, request}) {
    const curves = this.curves
      .map(curve => ({...curve, rows: curve.rows.filter(row => row.fits && row.tpot_s > 0)}))
      .filter(curve => curve.rows.length);
    const batch = document?.inputs?.batch ?? request.batch ?? 1;
    const now = document?.fits && document.tpot_s > 0 ? {batch, tpot_s: document.tpot_s, ttft_s: document.ttft_s} : null;
    this.body.hidden = !curves.length && !now;
    if (this.body.hidden) return;
    this.plot.show((colours, width) => ({
      grid: {left: 18, right: 28, top: 14, bottom: curves.length > 1 ? 68 : 42},
      legend: curves.length > 1 ? {data: curves.map(curve => curve.name)} : undefined,
      tooltip: {
        formatter: ({data, seriesName}) =>
          data.row
            ? tip(`${seriesName}: ${say('batch')} ${number.count(data.row.batch)}`, [
                [say('row.tpot_s'), number.seconds(data.row.tpot_s)],
                ...(data.row.ttft_s > 0 ? [[say('row.ttft_s'), number.seconds(data.row.ttft_s)]] : []),
                [say('speed'), number.rate(1 / data.row.tpot_s)],
                [say('throughput'), number.rate(data.row.batch / data.row.tpot_s)],
              ])
            : '',
      },
      xAxis: {
        type: 'value',
        name: say('curve.x'),
        nameGap: 28,
        axisLabel: {formatter: value => number.significant(value, 3), hideOverlap: true},
      },
      yAxis: {
        type: 'value',
        name: width > 360 ? say('curve.y') : '',
        nameGap: 52,
        axisLabel: {formatter: value => number.significant(value, 3)},
      },
      series: [
        ...curves.map((curve, at) => ({
          type: 'line',
          name: curve.name,
          symbol: 'circle',
          symbolSize: 8,
          color: colours.series(at),
          lineStyle: {width: 2},
          triggerLineEvent: false,
          labelLayout: {hideOverlap: true},
          data: curve.rows.map(row => ({
            value: pointOf(row),
            row,
            batch: row.batch,
            label: {
              show: at === 0,
              position: 'right',
              formatter: String(row.batch),
              color: colours.colour('muted'),
              fontSize: 11,
              textBorderColor: colours.colour('surface'),
              textBorderWidth: 2,
            },
          })),
        })),
        ...(now
          ? [
              {
                type: 'scatter',
                name: say('curve.now'),
                symbolSize: 16,
                z: 5,
                itemStyle: {
                  color: colours.colour('surface'),
                  borderColor: colours.series(0),
                  borderWidth: 4,
                },
                data: [{value: pointOf(now), row: now}],
              },
            ]
          : []),
      ],
    }));
  }
}
