// What an estimate says at once: the headline, memory, what bounds the time, the ops.
import {element} from '../dom.js';
import {boundsOf} from '../bounds.js';
import * as number from './number.js';
import {Panel, Rows, setText} from './panel.js';
import {say, sayValue} from './say.js';

const {seconds, capacity, share, rate, significant} = number;

// ---- The headline.

const kCards = [
  {name: 'ttft', path: 'ttft_s'},
  {name: 'tpot', path: 'tpot_s'},
  {name: 'speed', path: 'tokens_per_second_per_request'},
  {name: 'throughput', path: 'decode_tokens_per_second'},
  {name: 'cost', path: 'request_cost_per_million_output_tokens'},
  {name: 'energy', path: 'joules_per_output_token'},
];

// "±5.5 %" as the program prints it: the mean error.
const band = (time, error) => (error && time > 0 ? `±${significant(100 * error.mean_error, 2)} %` : '');
const bandTip = error =>
  error && error.low_s !== undefined
    ? say('band.tip', {p90: share(error.p90_error), low: seconds(error.low_s), high: seconds(error.high_s)})
    : '';

const costOf = document => document.request_cost_per_million_output_tokens ?? document.cost_per_million_input_tokens;

// What a card says: {value, unit, band, note, tip}.
const kSaid = {
  ttft: ({ttft_s: time, error_band: error, prefill_tokens_per_second: tokens}) => ({
    value: seconds(time),
    band: band(time, error?.prefill),
    tip: bandTip(error?.prefill),
    note: tokens > 0 ? say('ttft.note', {rate: rate(tokens)}) : '',
  }),
  tpot: ({tpot_s: time, error_band: error, tpot_first_s: first, tpot_last_s: last}) => ({
    value: seconds(time),
    band: band(time, error?.decode),
    tip: bandTip(error?.decode),
    note: say('tpot.note', {first: seconds(first), last: seconds(last)}),
  }),
  speed: ({tpot_s: time, total_s: total}) => ({
    value: significant(1 / time),
    unit: say('unit.tokens_s'),
    note: say('speed.note', {total: seconds(total)}),
  }),
  throughput: ({decode_tokens_per_second: decode, tokens_per_second: all}) => ({
    value: significant(decode),
    unit: say('unit.tokens_s'),
    note: say('throughput.note', {rate: rate(all)}),
  }),
  cost: document => ({
    value: `${significant(costOf(document), 3)}`,
    unit: say('cost.per', {currency: document.currency}),
    note: say('cost.note', {
      hour: significant(document.cost_per_hour),
      currency: document.currency,
      basis: sayValue('basis', document.price_basis),
      input: significant(document.cost_per_million_input_tokens ?? NaN, 3),
      output: significant(document.cost_per_million_output_tokens ?? NaN, 3),
    }),
    tip: [document.price_source, document.price_date].filter(Boolean).join(', '),
  }),
  energy: ({joules_per_output_token: joules, average_power_w: power}) => ({
    value: significant(joules, 3),
    unit: say('energy.unit'),
    note: say('energy.note', {power: significant(power)}),
  }),
};
const kHas = {
  ttft: document => document.ttft_s > 0,
  tpot: document => document.tpot_s > 0,
  speed: document => document.tpot_s > 0,
  throughput: document => document.decode_tokens_per_second > 0,
  cost: document => costOf(document) > 0 && document.cost_per_hour > 0,
  energy: document => document.joules_per_output_token > 0,
};

function card({name, path}, explain) {
  const label = element('span', {className: 'label'});
  const value = element('span', {className: 'value'});
  const unit = element('span', {className: 'unit'});
  const range = element('span', {className: 'band'});
  const note = element('span', {className: 'below'});
  const button = element(
    'button',
    {type: 'button', className: 'figure', 'data-number': path},
    label,
    element('span', {className: 'line'}, value, unit, range),
    note,
  );
  button.addEventListener('click', () => explain(path));
  return {
    element: button,
    show(document) {
      setText(label, say(name));
      const has = document.fits && kHas[name](document);
      button.disabled = !has;
      const said = has ? kSaid[name](document) : {value: '–', note: name === 'cost' && document.fits ? say('cost.none') : ''};
      setText(value, said.value);
      setText(unit, said.unit ?? '');
      setText(range, said.band ?? '');
      setText(note, said.note ?? '');
      if (button.title !== (said.tip ?? '')) button.title = said.tip ?? '';
    },
  };
}

export class Headline {
  constructor(explain) {
    this.title = element('h1', {});
    this.label = element('p', {className: 'label'});
    this.fit = element('span', {className: 'badge fit'});
    this.beyond = element('span', {className: 'badge beyond', tabIndex: 0, role: 'note'});
    this.said = element('div', {className: 'said'});
    this.cards = kCards.map(one => card(one, explain));
    this.element = element(
      'section',
      {className: 'headline', id: 'headline'},
      element(
        'div',
        {className: 'top'},
        element('div', {}, this.title, this.label),
        element('div', {className: 'badges'}, this.fit, this.beyond),
      ),
      this.said,
      element('div', {className: 'figures'}, ...this.cards.map(one => one.element)),
    );
  }

  // `errors`: [{message, hint}], of what does not fit or was refused.
  show({document, errors, title, status}) {
    setText(this.title, title);
    this.element.classList.toggle('refused', status !== 0 && status !== 3);
    const key = JSON.stringify(errors);
    if (key !== this.key) {
      this.key = key;
      this.said.hidden = !errors.length;
      this.said.replaceChildren(
        ...errors.map(({message, hint}) =>
          element('p', {}, ...coded(message), ...(hint ? [element('span', {className: 'hint'}, ...coded(hint))] : [])),
        ),
      );
    }
    this.fit.hidden = this.beyond.hidden = !document || status > 3;
    if (!document) return;
    setText(this.label, document.label ?? '');
    setText(this.fit, say(document.fits ? 'fits.yes' : 'fits.no'));
    this.fit.dataset.tone = document.fits ? 'good' : 'bad';
    this.beyond.hidden = !document.extrapolated;
    setText(this.beyond, say('extrapolated'));
    this.beyond.title = say('extrapolated.why', {what: (document.extrapolations ?? []).join('; ')});
    this.beyond.setAttribute('aria-label', this.beyond.title);
    this.cards.forEach(one => one.show(document));
  }
}

// What stands between backquotes is code; a name of a field is a flag.
export function coded(text) {
  return String(text ?? '')
    .split('`')
    .map((part, at) => (at % 2 ? element('code', {}, part) : part));
}

// ---- Memory: a bar of its parts against the capacity.

const kParts = ['weight', 'kv_cache', 'state', 'draft_weight', 'draft_cache', 'activation', 'workspace', 'reserve'];

function partsOf(memory) {
  const total = memory?.total_bytes;
  if (!(total > 0)) return null;
  const parts = kParts.map(name => ({name, bytes: memory[`${name}_bytes`] ?? 0})).filter(part => part.bytes > 0);
  const known = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (total - known > total * 1e-6) parts.push({name: 'other', bytes: total - known});
  return {parts, total, capacity: memory.capacity_bytes};
}

class MemoryBar {
  constructor() {
    this.name = element('span', {className: 'name'});
    this.sum = element('span', {className: 'sum'});
    this.bar = element('div', {className: 'bar'});
    this.mark = element('i', {className: 'mark'});
    this.legend = element('ul', {className: 'legend'});
    this.element = element(
      'div',
      {className: 'memory-bar'},
      element('div', {className: 'row'}, this.name, this.sum),
      element('div', {className: 'frame'}, this.bar, this.mark),
      this.legend,
    );
    this.parts = new Rows(this.bar, () => {
      const made = element('i');
      return {
        element: made,
        show: ({at, bytes, name, of}) => {
          made.style.width = `${(100 * bytes) / of}%`;
          made.style.background = `var(--series-${(at % 8) + 1})`;
          made.title = `${say(`memory.${name}`)} ${capacity(bytes)}`;
        },
      };
    });
    this.names = new Rows(this.legend, () => {
      const [key, text, size] = [element('i'), element('span'), element('b')];
      return {
        element: element('li', {}, key, text, size),
        show: ({at, bytes, name}) => {
          key.style.background = `var(--series-${(at % 8) + 1})`;
          setText(text, say(`memory.${name}`));
          setText(size, capacity(bytes));
        },
      };
    });
  }

  show({name, memory}) {
    const found = partsOf(memory);
    this.element.hidden = !found;
    if (!found) return;
    const {parts, total, capacity: size} = found;
    const of = Math.max(total, size ?? 0) * 1.0;
    const items = parts.map(part => ({...part, at: kParts.indexOf(part.name) < 0 ? 7 : kParts.indexOf(part.name), of}));
    setText(this.name, name);
    const over = size < total;
    setText(
      this.sum,
      `${say('memory.of', {need: capacity(total), have: capacity(size)})} · ${over ? say('memory.over.by', {over: capacity(total - size)}) : say('memory.left', {left: capacity(size - total)})}`,
    );
    this.element.classList.toggle('over', over);
    this.mark.style.left = `${(100 * size) / of}%`;
    this.parts.show(items);
    this.names.show(items);
  }
}

export class MemoryPanel extends Panel {
  constructor(explain) {
    super('memory', say('memory'));
    this.bars = [new MemoryBar(), new MemoryBar()];
    this.facts = ['largest_batch', 'longest_context_tokens'].map(path => {
      const [name, value] = [element('span'), element('b')];
      const made = element('button', {type: 'button', className: 'fact', 'data-number': path}, name, value);
      made.addEventListener('click', () => explain(path));
      return {made, name, value};
    });
    this.body.append(
      ...this.bars.map(bar => bar.element),
      element('div', {className: 'facts'}, ...this.facts.map(one => one.made)),
    );
  }

  update({document}) {
    this.bars[0].show({name: say('memory.device'), memory: document.memory});
    this.bars[1].show({name: say('memory.host'), memory: document.host_memory});
    const [batch, context] = this.facts;
    setText(batch.name, say('memory.batch'));
    setText(batch.value, number.count(document.largest_batch ?? NaN));
    setText(context.name, say('memory.context'));
    setText(context.value, number.count(document.longest_context_tokens ?? NaN));
  }
}

// ---- What bounds the time: a bar a phase.

const totalOf = ops => ops.reduce((sum, op) => sum + op.time_s, 0);
export const timed = document => (document?.phases ?? []).filter(phase => phase.ops?.some(op => op.time_s > 0));
export const phaseName = name => sayValue('phase', name);
const boundColour = bound => `var(--bound-${String(bound).replaceAll(' ', '-')})`;

// As the program says it: shares of the ops' time less what runs beside others.
export const boundShares = phase => {
  const whole = (phase.ops_time_s ?? totalOf(phase.ops)) - (phase.overlapped_s ?? 0);
  return boundsOf(phase.ops).map(bound => ({
    bound,
    share: totalOf(phase.ops.filter(op => op.bound === bound)) / whole,
  }));
};

export class BoundsPanel extends Panel {
  constructor() {
    super('bounds', say('bounds'));
    this.list = element('div', {className: 'stacks'});
    this.body.append(this.list);
    this.rows = new Rows(this.list, () => {
      const [name, time, bar, legend] = [
        element('span', {className: 'name'}),
        element('span', {className: 'sum'}),
        element('div', {className: 'bar'}),
        element('ul', {className: 'legend'}),
      ];
      const parts = new Rows(bar, () => {
        const made = element('i');
        return {
          element: made,
          show: ({bound, share: part}) => {
            made.style.width = `${100 * part}%`;
            made.style.background = boundColour(bound);
          },
        };
      });
      const names = new Rows(legend, () => {
        const [key, text, size] = [element('i'), element('span'), element('b')];
        return {
          element: element('li', {}, key, text, size),
          show: ({bound, share: part}) => {
            key.style.background = boundColour(bound);
            setText(text, sayValue('bound', bound));
            setText(size, share(part));
          },
        };
      });
      return {
        element: element('div', {className: 'stack'}, element('div', {className: 'row'}, name, time), bar, legend),
        show: phase => {
          const shares = boundShares(phase).filter(one => one.share >= 0.0005);
          setText(name, phaseName(phase.name));
          const roof = phase.roof_s > 0 ? ` · ${say('bounds.roof', {share: share(phase.roof_s / phase.time_s)})}` : '';
          setText(time, `${seconds(phase.time_s)}${roof}`);
          parts.show(shares);
          names.show(shares);
        },
      };
    });
  }

  update({document}) {
    this.rows.show(timed(document));
  }
}

// ---- Time by op: a button a bar.

const kShown = 12;

// Ops of one name are those of several kinds of layers.
function rowsOf(phase) {
  const byName = new Map();
  for (const op of phase.ops) {
    if (!byName.has(op.name)) byName.set(op.name, {name: op.name, time: 0, bound: op.bound, most: 0});
    const row = byName.get(op.name);
    row.time += op.time_s;
    if (op.time_s > row.most) [row.most, row.bound] = [op.time_s, op.bound];
  }
  return [...byName.values()].sort((a, b) => b.time - a.time);
}

class OpList {
  constructor(explain) {
    [this.name, this.time] = [element('h3'), element('span', {className: 'sum'})];
    this.list = element('div', {className: 'op-list'});
    this.more = element('button', {type: 'button', className: 'plain', hidden: true});
    this.more.addEventListener('click', () => {
      this.all = true;
      this.show(this.phase);
    });
    this.element = element('div', {className: 'ops-of'}, element('div', {className: 'row'}, this.name, this.time), this.list, this.more);
    this.rows = new Rows(this.list, () => {
      const [text, bar, value, part] = [element('span', {className: 'name'}), element('i'), element('b'), element('span', {className: 'share'})];
      const made = element('button', {type: 'button', className: 'op'}, text, element('span', {className: 'track'}, bar), value, part);
      made.addEventListener('click', () => explain(made.dataset.path));
      return {
        element: made,
        show: ({name, time, bound, of, most, phase}) => {
          setText(text, name);
          setText(value, seconds(time, 3));
          setText(part, share(time / of));
          bar.style.width = `${(100 * time) / most}%`;
          bar.style.background = boundColour(bound);
          made.dataset.path = `phases.${phase}.ops.${name}.time_s`;
          const title = `${name}: ${seconds(time)}, ${share(time / of)}, ${say('bounds.mostly', {bound: sayValue('bound', bound)})}`;
          if (made.title !== title) {
            made.title = title;
            made.setAttribute('aria-label', title);
          }
        },
      };
    });
  }

  show(phase) {
    this.phase = phase;
    const rows = rowsOf(phase);
    const of = rows.reduce((sum, row) => sum + row.time, 0);
    const shown = this.all ? rows : rows.slice(0, kShown);
    setText(this.name, phaseName(phase.name));
    setText(
      this.time,
      `${seconds(phase.time_s)}, ${phase.steps > 1 ? say('ops.steps', {steps: number.count(phase.steps)}) : say('ops.one')}`,
    );
    this.rows.show(shown.map(row => ({...row, of, most: rows[0].time, phase: phase.name})));
    this.more.hidden = shown.length === rows.length;
    setText(this.more, say('ops.rest', {count: rows.length - shown.length}));
  }
}

export class OpsPanel extends Panel {
  constructor(explain) {
    super('ops', say('ops'));
    this.lists = element('div', {className: 'op-lists'});
    this.body.append(this.lists);
    setText(this.note, say('ops.note'));
    this.rows = new Rows(this.lists, () => new OpList(explain));
  }
  update({document}) {
    this.rows.show(timed(document));
  }
}
