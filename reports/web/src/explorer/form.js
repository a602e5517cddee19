// The form: what a request is made of. The settings most asked for have controls of their own; every other field of the
// engine's catalogue has a plain one, folded away.
import {element} from '../dom.js';
import {Choice, Combo, decades, field, ladder, Slider, Switch, TextBox} from './controls.js';
import {capacity, significant} from './number.js';
import {nameOf} from './state.js';
import {say} from './say.js';

const kDegrees = ['1', '2', '3', '4', '6', '8', '12', '16', '24', '32', '64', '128'];
const kMostBatch = 4096;
const kMostTokens = 1 << 20;
const kOwn = ['model', 'hw', 'runtime', 'weights', 'kv', 'batch', 'prompt', 'gen', 'tp', 'pp', 'dp', 'ep', 'rate', 'slo'];
export const kRate = 1; // requests per second where none were asked for

const parameters = ({total, activated}) =>
  activated < total ? `${significant(total / 1e9, 3)}B, ${significant(activated / 1e9, 3)}B` : `${significant(total / 1e9, 3)}B`;

// The bounds of an SLO in milliseconds, each of a metric and a statistic: "ttft.p99=1s,tpot.p95=50ms".
const kBounds = [
  ['ttft', 'p99', 10, 60000],
  ['tpot', 'p95', 1, 2000],
];
export function sloOf(text) {
  const bounds = {};
  for (const part of String(text ?? '').split(',')) {
    const [, name, digits, unit] = /^\s*([a-z0-9]+\.[a-z0-9]+)\s*=\s*([\d.]+)\s*(ms|s)\s*$/.exec(part) ?? [];
    if (name) bounds[name] = Number(digits) * (unit === 's' ? 1000 : 1);
  }
  return bounds;
}
const sloText = bounds =>
  Object.entries(bounds)
    .filter(([, ms]) => ms > 0)
    .map(([name, ms]) => `${name}=${ms}ms`)
    .join(',');

export class Form {
  // `catalog`: lists of models, hardware, runtimes, fields. `change(key, value)`: a setting that the reader made.
  constructor(catalog, change) {
    this.change = change;
    this.catalog = catalog;
    this.element = element('form', {className: 'rail', id: 'setup'});
    this.element.addEventListener('submit', event => event.preventDefault());
    this.build();
  }

  // Again in another language.
  build() {
    this.controls = new Map();
    const {change} = this;
    const offered = key => this.catalog.fields.find(one => one.key === key)?.values ?? [];
    const put = (key, control, text = say(key), more = {}) => {
      this.controls.set(key, control);
      return field(text, control.input ?? control.box ?? control.element, {about: this.about(key), ...more});
    };
    const combo = (key, options, given = {}) =>
      put(key, new Combo({options, changed: value => change(key, value || undefined), open: true, ...given}));
    const slider = (key, steps, otherwise, unit, kilo) =>
      put(
        key,
        new Slider({steps, otherwise, kilo, text: say(key), changed: value => change(key, value)}),
        say(key),
        {unit: say(`unit.${unit}`)},
      );
    const words = key => () => [
      {value: '', text: this.own(key)},
      ...offered(key).map(value => ({value, text: value})),
    ];
    const degree = key =>
      put(
        key,
        new Choice({
          options: () => kDegrees.map(value => ({value, text: value})),
          changed: value => change(key, value === '1' ? undefined : value),
          otherwise: '1',
        }),
      );
    const group = (name, ...inside) =>
      element('fieldset', {className: `group ${name}`}, element('legend', {}, say(`group.${name}`)), ...inside);

    this.element.replaceChildren(
      element(
        'fieldset',
        {className: 'group first'},
        element('legend', {className: 'unseen'}, say('setup')),
        combo('model', () =>
          this.catalog.models.map(({name, parameters: size}) => ({value: name, text: name, note: parameters(size)})),
        ),
        combo('hw', () =>
          this.catalog.hardware.map(one => ({value: one.name, text: one.title, note: capacity(one.memory_bytes)})),
        ),
        combo('runtime', () => [
          {value: '', text: this.own('runtime')},
          {value: 'none', text: say('runtime.none')},
          ...this.runtimes().map(value => ({value, text: value})),
        ]),
        element(
          'div',
          {className: 'two'},
          combo('weights', words('weights')),
          combo('kv', words('kv')),
        ),
      ),
      group(
        'Workload',
        slider('batch', ladder(1, kMostBatch), 1, 'requests', 1000),
        slider('prompt', ladder(16, kMostTokens), 512, 'tokens'),
        slider('gen', ladder(1, 131072), 128, 'tokens'),
      ),
      group('Plan', element('div', {className: 'four'}, ...['tp', 'pp', 'dp', 'ep'].map(degree))),
      group(
        'Traffic',
        slider('rate', decades(0.1, 1000), kRate, 'rate', 1000),
        element('div', {className: 'two'}, ...this.bounds()),
      ),
      this.rest(),
    );
  }

  // What it is when it is not asked for, as the last answer had it.
  own(key) {
    const value = this.resolved?.[key];
    return value ? say('own.is', {value}) : say('own');
  }

  runtimes() {
    return [...new Set(this.catalog.runtimes.map(one => one.name))].sort();
  }

  about(key) {
    return this.catalog.fields.find(one => one.key === key)?.about ?? '';
  }

  bounds() {
    const boxes = kBounds.map(([metric, statistic]) => {
      const name = `${metric}.${statistic}`;
      const box = new TextBox({
        placeholder: '–',
        changed: text => {
          const bounds = {...this.slo};
          const value = Number(text);
          if (text && value > 0) bounds[name] = value;
          else delete bounds[name];
          this.change('slo', sloText(bounds) || undefined);
        },
      });
      return {name, metric, box};
    });
    this.controls.set('slo', {
      show: value => {
        this.slo = sloOf(value);
        for (const {name, box} of boxes) box.show(this.slo[name] ?? '');
      },
    });
    return boxes.map(({metric, box}) =>
      field(say(`slo.${metric}`), box.element, {unit: '≤ ms', about: this.about('slo')}),
    );
  }

  // Every field that an estimate or a simulation takes and that has no control above.
  rest() {
    const groups = new Map();
    const shown = ({workloads, key}) =>
      (workloads.includes('text') || workloads.includes('serving')) && !kOwn.includes(key) && !['input', 'output'].includes(key);
    for (const one of this.catalog.fields.filter(shown)) {
      if (!groups.has(one.group)) groups.set(one.group, []);
      groups.get(one.group).push(one);
    }
    this.counter = element('span', {className: 'set'});
    this.folded = [...groups.values()].flat();
    return element(
      'details',
      {className: 'more'},
      element('summary', {}, say('more'), ' ', this.counter),
      ...[...groups].map(([name, fields]) =>
        element(
          'fieldset',
          {className: 'group'},
          element('legend', {}, say(`group.${name}`)),
          ...fields.map(one => this.plain(one)),
        ),
      ),
    );
  }

  plain({key, type, about, values = [], form, default: otherwise = ''}) {
    const changed = value => this.change(key, value === '' || value === false ? undefined : value);
    let control;
    if (type === 'switch') control = new Switch({changed});
    else if (values.length)
      control = new Combo({
        open: true,
        changed,
        empty: 'unset',
        options: () => [{value: '', text: ''}, ...values.map(value => ({value, text: value}))],
      });
    else control = new TextBox({changed, placeholder: otherwise || form || ''});
    this.controls.set(key, control);
    const made = field(say(key), control.input ?? control.element, {about});
    if (type === 'switch') made.classList.add('switch');
    return made;
  }

  // `inputs`: of the answer, with what was chosen where nothing was asked for.
  show(request, names, inputs) {
    if (inputs) {
      const {weights, kv, runtime} = inputs;
      const text = value => (typeof value === 'object' ? value?.name : value);
      this.resolved = {weights: text(weights), kv: text(kv), runtime: text(runtime) ?? 'none'};
    }
    for (const [key, control] of this.controls) {
      const value = request[key];
      if (control instanceof Combo) {
        if (typeof value === 'object') control.show(value, nameOf(value, names, key));
        else control.show(value === undefined ? '' : String(value));
      } else control.show(value);
    }
    const set = this.folded.filter(({key}) => request[key] !== undefined).length;
    this.counter.textContent = set ? say('more.set', {count: set}) : '';
  }
}
