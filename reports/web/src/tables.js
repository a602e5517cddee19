// Tables that sort by a column and show only the rows that hold what was typed. Rows move in one piece, detached from
// the page, and a row's text is gathered when first asked for: tables of thousands of rows must answer at once.
import {element} from './dom.js';
import {label} from './page.js';

const kFilterAbove = 8;  // rows

function cellValue(row, column, numeric) {
  const cell = row.cells[column];
  const text = cell?.dataset.value ?? cell?.textContent.trim() ?? '';
  if (!numeric) return text;
  const value = text === '' ? NaN : Number(text);
  return Number.isNaN(value) ? null : value;
}

const compareText = new Intl.Collator(undefined, {numeric: true}).compare;

// The rows in the order wanted; those without a value stay last, equal ones keep the order of the document.
function ordered(rows, column, numeric, direction) {
  if (direction === 'none') return rows;
  const sign = direction === 'ascending' ? 1 : -1;
  const empty = numeric ? null : '';
  const keyed = rows.map((row, index) => ({row, index, value: cellValue(row, column, numeric)}));
  keyed.sort((a, b) => {
    if (a.value === empty || b.value === empty) return (a.value === empty) - (b.value === empty) || a.index - b.index;
    const order = numeric ? a.value - b.value : compareText(a.value, b.value);
    return sign * order || a.index - b.index;
  });
  return keyed.map(({row}) => row);
}

function makeSortable(table, rows) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
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
      body.replaceChildren(...ordered(rows, column, numeric, direction));
    });
  });
}

function makeFilterable(frame, table, rows) {
  const texts = new Map();
  const textOf = row => {
    if (!texts.has(row)) texts.set(row, [...row.cells].map(cell => cell.textContent).join(' ').toLowerCase());
    return texts.get(row);
  };
  const count = element('output', {className: 'count'});
  count.setAttribute('aria-live', 'polite');
  const show = shown => { count.textContent = label('table.shown', {shown, total: rows.length}); };
  const filter = element('input', {type: 'search', className: 'filter', placeholder: label('table.filter')});
  filter.setAttribute('aria-label', `${label('table.filter')}: ${table.caption?.textContent ?? ''}`);
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const hit = words.every(word => textOf(row).includes(word));
      if (row.hidden === hit) row.hidden = !hit;
      shown += hit;
    }
    show(shown);
  });
  show(rows.length);
  frame.before(element('div', {className: 'table-tools'}, filter, count));
}

export function enhanceTables() {
  for (const table of document.querySelectorAll('table.data')) {
    const rows = [...table.tBodies[0]?.rows ?? []];
    if (rows.length > 1 && table.tHead) makeSortable(table, rows);
    const frame = table.closest('.table-frame') ?? table;
    if (rows.length > kFilterAbove) makeFilterable(frame, table, rows);
    // A frame that scrolls must be reachable without a mouse.
    if (frame !== table) {
      frame.tabIndex = 0;
      frame.setAttribute('role', 'region');
      frame.setAttribute('aria-label', table.caption?.textContent ?? table.dataset.name ?? '');
    }
  }
}
