// Traffic on a serving engine: percentiles, what of an SLO is met, and the curves behind them. Simulated in a worker.
import {element, tip} from '../dom.js';
import {coded} from './answer.js';
import * as number from './number.js';
import {Panel, Plot, Rows, setText} from './panel.js';
import {say} from './say.js';

const {seconds, share, significant} = number;
const kMetrics = ['ttft_s', 'tpot_s', 'itl_s', 'e2e_s'];
const kStatistics = ['mean', 'p50', 'p90', 'p95', 'p99'];
const kCurves = ['ttft_s', 'tpot_s', 'e2e_s'];
const metricName = key => say(`serving.${key}`);

class Facts {
  constructor() {
    this.element = element('dl', {className: 'figures small'});
    this.rows = new Rows(this.element, () => {
      const [name, value, unit, below] = [element('dt'), element('span', {className: 'value'}), element('span', {className: 'unit'}), element('dd', {className: 'below'})];
      return {
        element: element('div', {className: 'figure'}, name, element('dd', {className: 'line'}, value, unit), below),
        show: one => {
          setText(name, one.name);
          setText(value, one.value);
          setText(unit, one.unit ?? '');
          setText(below, one.note ?? '');
        },
      };
    });
  }
}

export class ServingPanel extends Panel {
  constructor() {
    super('serving', say('serving'));
    this.facts = new Facts();
    this.verdict = element('ul', {className: 'verdict'});
    this.said = element('div', {className: 'said'});
    this.table = element('table', {className: 'data plain'});
    this.plot = new Plot(say('serving.share'), 300);
    this.busy = element('span', {className: 'busy'}, say('serving.busy'));
    this.busy.hidden = true;
    this.tools.append(this.busy);
    this.inner = element(
      'div',
      {className: 'halves'},
      element('div', {}, element('div', {className: 'table-frame bare', tabIndex: 0}, this.table)),
      this.plot.element,
    );
    this.body.append(this.said, this.facts.element, this.verdict, this.inner);
  }

  wait(waiting) {
    this.busy.hidden = !waiting;
    this.element.classList.toggle('waiting', waiting);
  }

  // {document, errors}
  showAnswer(answer) {
    this.answer = answer;
    this.model ??= {};
    this.wait(false);
    this.stale = true;
    if (this.near) this.draw();
  }

  update() {
    if (!this.answer) return;
    const {document, errors} = this.answer;
    this.said.hidden = !errors.length;
    this.said.replaceChildren(
      ...errors.map(({message, hint}) =>
        element('p', {}, ...coded(message), ...(hint ? [element('span', {className: 'hint'}, ...coded(hint))] : [])),
      ),
    );
    const has = document?.ttft_s?.mean > 0;
    this.inner.hidden = this.facts.element.hidden = this.verdict.hidden = !has;
    setText(this.note, '');
    if (!has) return;
    const {traffic} = document.inputs;
    setText(
      this.note,
      say('serving.note', {
        requests: number.count(document.requests),
        rate: significant(traffic.requests_per_second ?? document.requests_per_second),
        input: number.count(traffic.mean_input_tokens),
        output: number.count(traffic.mean_output_tokens),
      }),
    );
    this.showFacts(document);
    this.showVerdict(document);
    this.showTable(document);
    this.showCurves(document);
  }

  showFacts(document) {
    const bounded = document.slo?.length > 0;
    this.facts.rows.show([
      ...['ttft_s', 'tpot_s'].map(key => ({
        name: `${metricName(key)} p99`,
        value: seconds(document[key].p99),
        note: `${say('serving.mean')} ${seconds(document[key].mean)}`,
      })),
      {
        name: say('serving.throughput'),
        value: significant(document.output_tokens_per_second),
        unit: say('unit.tokens_s'),
        note: `${significant(document.requests_per_second)} ${say('unit.rate')}`,
      },
      ...(bounded
        ? [
            {
              name: say('serving.goodput'),
              value: significant(document.goodput_per_second),
              unit: say('unit.rate'),
              note: say('serving.good', {share: share(document.good_share)}),
            },
          ]
        : []),
      {
        name: say('serving.batch'),
        value: significant(document.mean_batch),
        note: say('serving.waiting.note', {waiting: significant(document.mean_waiting)}),
      },
      ...(document.cost_per_million_output_tokens > 0
        ? [
            {
              name: say('serving.cost'),
              value: significant(document.cost_per_million_output_tokens, 3),
              note: say('cost.per', {currency: document.currency}),
            },
          ]
        : []),
    ]);
  }

  showVerdict(document) {
    const lines = (document.slo ?? []).map(({name, value_s: value, met}) => ({
      met,
      text: say('slo.is', {name, value: seconds(value)}),
    }));
    this.verdict.replaceChildren(
      ...(document.stable
        ? []
        : [element('li', {className: 'bad'}, say('serving.unstable', {rate: significant(document.queue_growth_per_second)}))]),
      ...lines.map(({met, text}) =>
        element(
          'li',
          {className: met ? 'good' : 'bad'},
          element('b', {}, say(met ? 'serving.met' : 'serving.missed')),
          ` ${text}`,
        ),
      ),
    );
  }

  showTable(document) {
    this.table.replaceChildren(
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('th', {scope: 'col'}, say('serving.metric')),
          ...kStatistics.map(name =>
            element('th', {scope: 'col', className: 'number'}, name === 'mean' ? say('serving.mean') : name),
          ),
        ),
      ),
      element(
        'tbody',
        {},
        ...kMetrics
          .filter(key => document[key])
          .map(key =>
            element(
              'tr',
              {'data-metric': key},
              element('th', {scope: 'row'}, metricName(key)),
              ...kStatistics.map(name => element('td', {className: 'number'}, seconds(document[key][name]))),
            ),
          ),
      ),
    );
  }

  showCurves({percentiles: points = []}) {
    const shown = kCurves.filter(key => points.some(point => point[key] > 0));
    this.plot.element.hidden = points.length < 2;
    if (points.length < 2) return;
    this.plot.show(colours => ({
      grid: {left: 12, right: 20, top: 12, bottom: 62},
      legend: {data: shown.map(metricName)},
      tooltip: {
        trigger: 'axis',
        formatter: ([{data}]) =>
          tip(
            say('serving.within', {share: share(points[data.at].share)}),
            shown.map(key => [metricName(key), seconds(points[data.at][key])]),
          ),
      },
      xAxis: {
        type: 'value',
        min: 0,
        max: 1,
        name: say('serving.share'),
        nameGap: 26,
        axisLabel: {formatter: value => `${Math.round(value * 100)} %`},
        splitLine: {show: false},
      },
      yAxis: {type: 'log', axisLabel: {formatter: value => seconds(value, 3), hideOverlap: true}},
      series: shown.map((key, index) => ({
        type: 'line',
        name: metricName(key),
        symbol: 'none',
        color: colours.series(index),
        data: points.flatMap((point, at) => (point[key] > 0 ? [{value: [point.share, point[key]], at}] : [])),
      })),
    }));
  }
}
