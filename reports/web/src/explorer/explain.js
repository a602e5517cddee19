// Where a number comes from: its formula with the values put in, and the same of its parts.
import {element} from '../dom.js';
import {coded} from './answer.js';
import * as number from './number.js';
import {say} from './say.js';

const kShow = {s: number.seconds, B: number.bytes, FLOP: number.flops};

function valueText(value, unit) {
  const readable = kShow[unit]?.(value);
  return readable && Math.abs(value) > 0 ? `${number.exact(value, unit)} (${readable})` : number.exact(value, unit);
}

function variables(list, parts) {
  const inner = new Map(parts.map(part => [part.path, part]));
  return element(
    'table',
    {className: 'data plain variables'},
    element(
      'tbody',
      {},
      ...list.map(({name, value, meaning}) =>
        element(
          'tr',
          {},
          element('th', {scope: 'row'}, element('code', {}, name)),
          element('td', {className: 'number'}, number.exact(value, '')),
          element('td', {}, meaning ?? '', inner.has(name) ? ' ↓' : ''),
        ),
      ),
    ),
  );
}

function shown(explanation, level) {
  const {path, unit, value, formula, substituted, variables: list = [], notes = [], parts = []} = explanation;
  const lines = element(
    'dl',
    {className: 'lines'},
    ...[
      ['explain.value', valueText(value, unit)],
      ['explain.formula', formula],
      ['explain.values', substituted],
    ]
      .filter(([, text]) => text)
      .map(([key, text]) => element('div', {}, element('dt', {}, say(key)), element('dd', {}, element('code', {}, text)))),
  );
  const inside = [
    lines,
    ...(list.length ? [variables(list, parts)] : []),
    ...(notes.length ? [element('ul', {className: 'notes'}, ...notes.map(note => element('li', {}, ...coded(note))))] : []),
    ...parts.map(part => shown(part, level + 1)),
  ];
  if (!level) return element('div', {className: 'explanation'}, ...inside);
  const title = element('summary', {}, element('code', {}, path), element('b', {}, kShow[unit]?.(value) ?? number.exact(value, unit)));
  return element('details', {open: level < 2, className: 'part'}, title, ...inside);
}

export class Explainer {
  constructor(ask) {
    this.ask = ask;
    this.title = element('h2', {});
    this.body = element('div', {className: 'body'});
    this.close = element('button', {type: 'button', className: 'plain', onclick: () => this.element.close()});
    this.command = element('pre', {className: 'command'});
    this.element = element('dialog', {className: 'explain'}, element('header', {}, this.title, this.close), this.body, this.command);
    // A press beside it closes it.
    this.element.addEventListener('click', event => {
      if (event.target === this.element) this.element.close();
    });
  }

  show(path) {
    const {document, errors, command} = this.ask(path);
    this.close.textContent = say('close');
    this.title.textContent = path;
    this.element.setAttribute('aria-label', `${say('explain')}: ${path}`);
    this.body.replaceChildren(
      ...(document ? [shown(document, 0)] : errors.map(({message}) => element('p', {className: 'said'}, ...coded(message)))),
    );
    this.command.textContent = command;
    this.element.showModal();
    this.body.scrollTop = 0;
  }
}
