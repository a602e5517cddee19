// Setups side by side: the present one and those that were pinned, what differs, and by how much.
import {element} from '../dom.js';
import * as number from './number.js';
import {Panel, setText} from './panel.js';
import {nameOf} from './state.js';
import {say} from './say.js';

const kRows = [
  {key: 'ttft_s', show: number.seconds, better: 'lower'},
  {key: 'tpot_s', show: number.seconds, better: 'lower'},
  {key: 'decode_tokens_per_second', show: number.rate, better: 'higher'},
  {key: 'tokens_per_second', show: number.rate, better: 'higher'},
  {key: 'total_s', show: number.seconds, better: 'lower'},
  {key: 'memory', of: document => document.memory?.total_bytes, show: number.capacity, better: 'lower'},
  {key: 'largest_batch', show: number.count, better: 'higher'},
  {key: 'request_cost_per_million_output_tokens', show: value => number.significant(value, 3), better: 'lower'},
  {key: 'joules_per_output_token', show: value => number.significant(value, 3), better: 'lower'},
];

export const titleOf = (request, names, device) =>
  say('on', {model: nameOf(request.model, names, 'model'), hardware: device(request.hw, names)});

// What of its request a column has other than the others.
export function settings(columns) {
  const keys = [...new Set(columns.flatMap(({request}) => Object.keys(request)))].filter(
    key => !['model', 'hw'].includes(key) && new Set(columns.map(({request}) => String(request[key] ?? ''))).size > 1,
  );
  return columns.map(({request}) =>
    keys.filter(key => request[key] !== undefined).map(key => `${say(key)} ${request[key]}`),
  );
}

export class PinsPanel extends Panel {
  // `act(what, index)`: 'load' or 'remove'.
  constructor(act) {
    super('compare', say('compare'));
    this.act = act;
    this.table = element('table', {className: 'data plain pins'});
    this.frame = element('div', {className: 'table-frame bare', tabIndex: 0, role: 'region'}, this.table);
    this.frame.setAttribute('aria-label', say('compare'));
    this.body.append(this.frame);
    setText(this.note, say('compare.note'));
  }

  // columns: [{request, document, title}], the present one first.
  update({columns}) {
    this.frame.hidden = columns.length < 2;
    if (columns.length < 2) return;
    const told = settings(columns);
    const [now] = columns;
    this.table.replaceChildren(
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          element('td'),
          ...columns.map(({title}, at) =>
            element(
              'th',
              {scope: 'col'},
              element('span', {className: 'title'}, title),
              element('span', {className: 'settings'}, told[at].join(', ')),
              at === 0
                ? element('span', {className: 'badge'}, say('compare.now'))
                : element('span', {className: 'acts'}, this.button('load', at - 1, title), this.button('remove', at - 1, title)),
            ),
          ),
        ),
      ),
      element('tbody', {}, ...kRows.map(row => this.row(row, columns, now)).filter(Boolean)),
    );
  }

  button(what, at, title) {
    const made = element('button', {type: 'button', className: 'plain', onclick: () => this.act(what, at)}, say(`compare.${what}`));
    made.setAttribute('aria-label', `${say(`compare.${what}`)}: ${title}`);
    return made;
  }

  row({key, of = document => document?.[key], show, better}, columns, now) {
    const values = columns.map(({document}) => (document ? of(document) : null));
    if (!values.some(value => value > 0)) return null;
    const base = now.document ? of(now.document) : null;
    return element(
      'tr',
      {'data-key': key},
      element('th', {scope: 'row'}, say(`row.${key}`)),
      ...values.map((value, at) => {
        const difference = at && value > 0 ? number.change(value, base) : '';
        const gain = better === 'lower' ? value < base : value > base;
        return element(
          'td',
          {className: 'number'},
          value > 0 ? show(value) : at === 0 || columns[at].document ? say(columns[at].document?.fits === false ? 'fits.no' : 'unset') : '–',
          difference
            ? element('span', {className: `change ${difference === '=' ? '' : gain ? 'good' : 'bad'}`}, ` ${difference}`)
            : '',
        );
      }),
    );
  }
}
