// Tables that sort by a column and show only the rows that hold what was typed.
import {element} from './dom.js';
import {label} from './page.js';
import {sorted} from './sort.js';

const kFilterAbove = 8; // rows
const kChunk = 200; // rows laid out at once (scripted.css names it too): a browser needs a second for thousands
const kAhead = 800; // pixels left to scroll when the next chunk comes

// The rows of a table, all of which stay known while only the first of those wanted are in the page.
class Rows {
  constructor(table, frame) {
    this.body = table.tBodies[0];
    this.all = [...this.body.rows];
    this.order = this.all;
    this.texts = new Map();
    this.words = [];
    this.show();
    frame.addEventListener(
      'scroll',
      () => {
        if (frame.scrollTop + frame.clientHeight > frame.scrollHeight - kAhead) this.more(kChunk);
      },
      {passive: true},
    );
    addEventListener('beforeprint', () => this.more(this.all.length));
  }

  // A row's words are gathered when first asked for.
  textOf(row) {
    if (!this.texts.has(row))
      this.texts.set(
        row,
        [...row.cells]
          .map(cell => cell.textContent)
          .join(' ')
          .toLowerCase(),
      );
    return this.texts.get(row);
  }

  show() {
    const {words} = this;
    this.wanted = words.length
      ? this.order.filter(row => words.every(word => this.textOf(row).includes(word)))
      : this.order;
    this.body.replaceChildren(...this.wanted.slice(0, kChunk));
  }

  more(count) {
    const have = this.body.rows.length;
    this.body.append(...this.wanted.slice(have, have + count));
  }

  sort(column, numeric, direction) {
    this.order = direction === 'none' ? this.all : sorted(this.all, column, numeric, direction);
    this.show();
  }

  filter(text) {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.show();
  }
}

const titleOf = table => table.caption?.textContent ?? table.ariaLabel ?? table.dataset.name ?? '';

function makeSortable(table, rows) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const numeric = head.dataset.type === 'number';
    // First the largest number, or the first letter; then the other way round; then as it was.
    const turns = numeric ? ['descending', 'ascending', 'none'] : ['ascending', 'descending', 'none'];
    const button = element('button', {type: 'button', className: 'sort'});
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute('aria-sort', 'none');
    button.addEventListener('click', () => {
      const direction = turns[(turns.indexOf(head.getAttribute('aria-sort')) + 1) % turns.length];
      heads.forEach(other => other.setAttribute('aria-sort', 'none'));
      head.setAttribute('aria-sort', direction);
      rows.sort(column, numeric, direction);
    });
  });
}

function makeFilterable(table, frame, rows) {
  const count = element('output', {className: 'count'});
  count.setAttribute('aria-live', 'polite');
  const show = () => {
    count.textContent = label('table.shown', {shown: rows.wanted.length, total: rows.all.length});
  };
  const filter = element('input', {type: 'search', className: 'filter', placeholder: label('table.filter')});
  filter.setAttribute('aria-label', `${label('table.filter')}: ${titleOf(table)}`);
  filter.addEventListener('input', () => {
    rows.filter(filter.value);
    show();
  });
  show();
  frame.before(element('div', {className: 'table-tools'}, filter, count));
}

// A frame that scrolls must be reachable without a mouse, and say what it holds.
function nameFrame(frame, table) {
  frame.tabIndex = 0;
  frame.setAttribute('role', 'region');
  frame.setAttribute('aria-label', titleOf(table));
}

export function enhanceTables() {
  for (const table of document.querySelectorAll('table.data')) {
    const frame = table.closest('.table-frame') ?? table;
    if (frame !== table) nameFrame(frame, table);
    if (!table.tHead || !(table.tBodies[0]?.rows.length > 1)) continue;
    const rows = new Rows(table, frame);
    makeSortable(table, rows);
    if (rows.all.length > kFilterAbove) makeFilterable(table, frame, rows);
  }
  document.documentElement.dataset.live = '';
}
