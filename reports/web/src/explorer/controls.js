// Controls of the form. Each is {element, show(value)}: `changed` is called with what the reader chose, and show() sets it
// from outside without calling.
import {element} from '../dom.js';
import {amount} from './state.js';
import {say} from './say.js';

let ids = 0;
export const uid = () => `x${++ids}`;

export function field(text, control, {unit = '', about = ''} = {}) {
  const id = control.id || (control.id = uid());
  return element(
    'div',
    {className: 'field', title: about.replaceAll('`', '')},
    element('label', {htmlFor: id}, text, unit ? element('span', {className: 'unit'}, unit) : ''),
    control.closest('.with') ?? control,
  );
}

// A text box beside a list of what it may hold: typing narrows the list. options() gives [{value, text, note}]; any text
// is taken where `open`.
export class Combo {
  constructor({options, changed, open = false, empty = ''}) {
    Object.assign(this, {options, changed, open, empty, value: '', active: -1});
    this.id = uid();
    this.input = element('input', {
      type: 'text',
      id: uid(),
      role: 'combobox',
      autocomplete: 'off',
      spellcheck: false,
      'aria-expanded': 'false',
      'aria-controls': this.id,
      'aria-autocomplete': 'list',
    });
    this.list = element('ul', {id: this.id, role: 'listbox', hidden: true});
    this.element = element('div', {className: 'combo with'}, this.input, this.list);
    this.input.addEventListener('focus', () => this.input.select());
    this.input.addEventListener('click', () => this.unfold());
    this.input.addEventListener('input', () => this.unfold(this.input.value));
    this.input.addEventListener('keydown', event => this.press(event));
    this.input.addEventListener('blur', () => this.leave());
    // Before the box loses its focus.
    this.list.addEventListener('pointerdown', event => {
      event.preventDefault();
      const at = event.target.closest('li')?.dataset.at;
      if (at !== undefined) this.choose(this.shown[at]);
    });
  }

  show(value, text) {
    this.value = value;
    this.text = text ?? this.options().find(one => one.value === value)?.text ?? String(value ?? '');
    if (document.activeElement !== this.input || this.list.hidden) this.input.value = this.text;
    this.input.placeholder = this.empty ? say(this.empty) : '';
  }

  unfold(typed = '') {
    const words = typed.toLowerCase().split(/[\s-]+/).filter(Boolean);
    const matches = this.options().filter(one => {
      const text = `${one.value} ${one.text} ${one.note ?? ''}`.toLowerCase();
      return words.every(word => text.includes(word));
    });
    const exact = matches.some(one => one.value === typed);
    this.shown = matches;
    if (this.open && typed && !exact) this.shown = [...matches, {value: typed, text: say('take.as', {text: typed})}];
    this.active = words.length ? 0 : matches.findIndex(one => one.value === this.value);
    this.list.replaceChildren(
      ...this.shown.map((one, at) =>
        element(
          'li',
          {role: 'option', id: `${this.id}-${at}`, 'data-at': at, 'aria-selected': String(one.value === this.value)},
          element('span', {}, one.text),
          one.note ? element('span', {className: 'note'}, one.note) : '',
        ),
      ),
      ...(this.shown.length ? [] : [element('li', {className: 'none'}, say('no.match'))]),
    );
    this.list.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    this.point(this.active);
  }

  point(at) {
    this.active = at;
    [...this.list.children].forEach((one, i) => one.classList.toggle('active', i === at));
    const item = this.list.children[at];
    if (item && this.shown.length) {
      this.input.setAttribute('aria-activedescendant', item.id);
      // Not scrollIntoView(): that would move the page too.
      const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
      if (top < this.list.scrollTop) this.list.scrollTop = top;
      else if (bottom > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = bottom - this.list.clientHeight;
    } else this.input.removeAttribute('aria-activedescendant');
  }

  fold() {
    this.list.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
  }

  choose(one) {
    this.fold();
    if (!one) return;
    this.value = one.value;
    this.show(one.value);
    this.changed(one.value);
  }

  leave() {
    this.fold();
    const typed = this.input.value.trim();
    if (typed === this.text) return;
    const named = this.options().find(one => one.value === typed || one.text === typed);
    if (named || this.open || (!typed && this.options().some(one => one.value === '')))
      this.choose(named ?? {value: typed});
    else this.input.value = this.text;
  }

  press(event) {
    const folded = this.list.hidden;
    const last = (this.shown?.length ?? 0) - 1;
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp':
        if (folded) this.unfold();
        else this.point(Math.max(0, Math.min(last, this.active + (event.key === 'ArrowDown' ? 1 : -1))));
        break;
      case 'Home':
      case 'End':
        if (folded) return;
        this.point(event.key === 'Home' ? 0 : last);
        break;
      case 'Enter':
        if (folded) this.leave();
        else this.choose(this.shown[this.active]);
        break;
      case 'Escape':
        if (folded) return;
        this.fold();
        this.input.value = this.text;
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

// Steps of a slider over powers of two: so many to a doubling, whole numbers that are easy to say.
export function ladder(least, most, perDoubling = 4) {
  const steps = new Set();
  for (let power = Math.floor(Math.log2(least)); 2 ** power <= most; ++power)
    for (let part = 0; part < perDoubling; ++part) {
      const value = 2 ** power * (1 + part / perDoubling);
      if (value >= least && value <= most && (least < 1 || Number.isInteger(value))) steps.add(value);
    }
  return [...steps].sort((a, b) => a - b);
}
// Of a decade: 1 1.2 1.5 2 2.5 3 4 5 6 8.
const kOfTen = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
export function decades(least, most) {
  const steps = [];
  for (let power = Math.round(Math.log10(least)); 10 ** power <= most * 1.0001; ++power)
    for (const part of kOfTen) {
      const value = Number(`${part}e${power}`);
      if (value <= most) steps.push(value);
    }
  return steps;
}

// A slider over `steps` and a box for any number. `live` is called while it is dragged.
export class Slider {
  constructor({steps, changed, kilo = 1024, otherwise, text}) {
    Object.assign(this, {steps, changed, kilo, otherwise});
    this.box = element('input', {type: 'text', inputMode: 'decimal', className: 'amount', id: uid(), autocomplete: 'off'});
    this.range = element('input', {type: 'range', min: 0, max: steps.length - 1, step: 1, id: uid()});
    this.range.setAttribute('aria-label', text);
    this.range.addEventListener('input', () => {
      const value = steps[this.range.value];
      this.write(value);
      changed(value);
    });
    const take = () => {
      const typed = this.box.value.trim();
      if (typed === this.text) return;
      const value = amount(typed, kilo);
      this.text = typed;
      changed(Number.isFinite(value) ? value : typed || undefined);
    };
    this.box.addEventListener('change', take);
    this.box.addEventListener('keydown', event => {
      if (event.key === 'Enter') take();
    });
    this.element = element('div', {className: 'slider with'}, this.range, this.box);
  }

  write(value) {
    this.text = String(value);
    this.box.value = this.text;
    this.range.setAttribute('aria-valuetext', this.text);
    this.range.style.setProperty('--at', `${(100 * this.range.value) / (this.steps.length - 1)}%`);
  }

  show(given) {
    const value = given ?? this.otherwise;
    const number = amount(value, this.kilo);
    if (Number.isFinite(number)) {
      const near = this.steps.findIndex(step => step >= number);
      this.range.value = near < 0 ? this.steps.length - 1 : near;
    }
    if (document.activeElement !== this.box || String(value) !== this.text) this.write(value);
  }
}

// A select whose value may also be one that it does not offer.
export class Choice {
  constructor({options, changed, otherwise = ''}) {
    this.options = options;
    this.otherwise = otherwise;
    this.element = element('select', {id: uid(), onchange: () => changed(this.element.value)});
  }

  show(value) {
    const options = this.options();
    const text = String(value ?? this.otherwise);
    if (!options.some(one => one.value === text)) options.push({value: text, text});
    const key = options.map(one => `${one.value}=${one.text}`).join();
    if (key !== this.key) {
      this.key = key;
      this.element.replaceChildren(...options.map(one => element('option', {value: one.value}, one.text)));
    }
    this.element.value = text;
  }
}

export class TextBox {
  constructor({changed, placeholder = ''}) {
    this.element = element('input', {type: 'text', id: uid(), placeholder, autocomplete: 'off', spellcheck: false});
    this.element.addEventListener('change', () => changed(this.element.value.trim()));
  }
  show(value = '') {
    if (document.activeElement !== this.element) this.element.value = String(value);
  }
}

export class Switch {
  constructor({changed}) {
    this.element = element('input', {type: 'checkbox', id: uid(), onchange: () => changed(this.element.checked)});
  }
  show(value) {
    this.element.checked = value === true || value === 'true';
  }
}
