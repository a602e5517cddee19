// The order of a table's rows.
function cellValue(row, column, numeric) {
  const cell = row.cells[column];
  const text = cell?.dataset.value ?? cell?.textContent.trim() ?? '';
  if (!numeric) return text;
  const value = text === '' ? NaN : Number(text);
  return Number.isNaN(value) ? null : value;
}

const compareText = new Intl.Collator(undefined, {numeric: true}).compare;

// The rows by the exact value of a column (data-value); those without one stay last, equal ones keep their order.
export function sorted(rows, column, numeric, direction) {
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
