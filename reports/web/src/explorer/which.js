// The same request on many devices: a bar each, the best first. Computed in a worker.
import {element} from '../dom.js';
import {Choice} from './controls.js';
import * as number from './number.js';
import {Panel, Rows, setText} from './panel.js';
import {say} from './say.js';

export const kMeasures = {
  tpot_s: {better: 'lower', show: value => number.seconds(value)},
  ttft_s: {better: 'lower', show: value => number.seconds(value)},
  tokens_per_second: {better: 'higher', show: value => number.rate(value)},
  request_cost_per_million_output_tokens: {better: 'lower', show: (value, row) => `${number.significant(value, 3)} ${row.currency ?? ''}`},
  joules_per_output_token: {better: 'lower', show: value => `${number.significant(value, 3)} J`},
};
const kFew = 15;

export class WhichPanel extends Panel {
  // `by`: a measure; `marked`: names of devices; `changed({by, marked})`; `take(name)`.
  constructor(hardware, {by, marked}, changed, take) {
    super('which', say('which'));
    this.titles = new Map(hardware.map(one => [one.name, one]));
    Object.assign(this, {by: kMeasures[by] ? by : 'tpot_s', marked: new Set(marked), changed, take, rows: []});
    this.only = this.marked.size > 0;
    this.choice = new Choice({
      options: () => Object.keys(kMeasures).map(value => ({value, text: say(`by.${value}`)})),
      changed: value => {
        this.by = value;
        this.told();
      },
    });
    this.choice.show(this.by);
    this.find = element('input', {type: 'search', className: 'filter', placeholder: say('which.find')});
    this.find.setAttribute('aria-label', say('which.find'));
    this.find.addEventListener('input', () => this.again());
    this.check = element('input', {
      type: 'checkbox',
      onchange: () => {
        this.only = this.check.checked;
        this.told();
      },
    });
    this.checkText = element('span');
    this.tools.append(
      element('label', {}, say('which.by'), ' ', this.choice.element),
      this.find,
      element('label', {className: 'check'}, this.check, this.checkText),
    );
    this.count = element('span', {className: 'sum'});
    this.list = element('div', {className: 'cards-list'});
    this.more = element('button', {type: 'button', className: 'plain', hidden: true});
    this.more.addEventListener('click', () => {
      this.all = !this.all;
      this.again();
    });
    this.body.append(this.count, this.list, this.more);
    setText(this.note, say('which.note'));
    this.lines = new Rows(this.list, () => this.line());
  }

  told() {
    this.changed({by: this.by, marked: [...this.marked]});
    this.again();
  }

  again() {
    this.stale = true;
    this.draw();
  }

  line() {
    const mark = element('input', {type: 'checkbox'});
    const [name, bar, value, note] = [element('span', {className: 'name'}), element('i'), element('b'), element('span', {className: 'share'})];
    const button = element('button', {type: 'button', className: 'op'}, name, element('span', {className: 'track'}, bar), value, note);
    const made = element('div', {className: 'which-row'}, mark, button);
    mark.addEventListener('change', () => {
      if (mark.checked) this.marked.add(made.dataset.hw);
      else this.marked.delete(made.dataset.hw);
      this.told();
    });
    button.addEventListener('click', () => this.take(made.dataset.hw));
    return {
      element: made,
      show: ({row, most, now}) => {
        const device = this.titles.get(row.hardware);
        made.dataset.hw = row.hardware;
        made.classList.toggle('now', now);
        button.setAttribute('aria-current', String(now));
        setText(name, device?.title ?? row.hardware);
        mark.checked = this.marked.has(row.hardware);
        mark.setAttribute('aria-label', say('which.mark', {name: device?.title ?? row.hardware}));
        const measure = row[this.by];
        const good = row.fits && measure > 0;
        made.classList.toggle('out', !good);
        bar.style.width = good ? `${(100 * measure) / most}%` : '0';
        setText(value, good ? kMeasures[this.by].show(measure, row) : row.error ? '–' : row.fits ? 'n/a' : say('fits.no'));
        setText(
          note,
          good
            ? row.extrapolated?.includes?.('nothing was measured on it') ? say('which.unmeasured') : ''
            : row.error ? '' : row.total_bytes > 0 ? say('memory.of', {need: number.capacity(row.total_bytes), have: number.capacity(row.capacity_bytes)}) : '',
        );
        button.title = row.error || row.label || '';
      },
    };
  }

  // Rows of a sweep over the devices, of which there are so many.
  showRows(rows, all) {
    this.rows = [...rows];
    this.element.classList.toggle('waiting', rows.length < all);
    this.stale = true;
    if (this.near) this.draw();
  }

  update({request}) {
    const {better} = kMeasures[this.by];
    const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const named = row => {
      const device = this.titles.get(row.hardware);
      const text = `${row.hardware} ${device?.title ?? ''} ${device?.vendor ?? ''}`.toLowerCase();
      return words.every(word => text.includes(word));
    };
    const value = row => (row.fits && row[this.by] > 0 ? row[this.by] : null);
    const rows = this.rows
      .filter(row => named(row) && (!this.only || this.marked.has(row.hardware)))
      .sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a.total_bytes / a.capacity_bytes - b.total_bytes / b.capacity_bytes;
        return better === 'lower' ? x - y : y - x;
      });
    const isNow = row => row.hardware === request.hw;
    const limit = this.all || this.only ? rows.length : kFew;
    const shown = rows.filter((row, at) => at < limit || isNow(row));
    const most = Math.max(...shown.map(row => value(row) ?? 0));
    this.lines.show(shown.map(row => ({row, most, now: isNow(row)})));
    setText(this.count, say('which.count', {fit: this.rows.filter(row => row.fits).length, all: this.rows.length}));
    this.check.checked = this.only;
    setText(this.checkText, say('which.only', {count: this.marked.size}));
    this.more.hidden = !this.all && rows.length <= limit;
    setText(this.more, this.all ? say('which.fewer') : say('which.all', {count: rows.length}));
  }
}
