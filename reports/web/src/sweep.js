// Reading a sweep: rows with a reason of failure, axes in the order that was asked for, columns that are numbers.
import {label, result} from './page.js';

export const axes = () => result.axes ?? [];
export const finished = () => (result.rows ?? []).filter(row => !row.error && row.fits !== false);

// Columns of numbers that no axis sets and that tell points apart: times and rates first, then what else has a better
// end.
export function measures() {
  const rows = finished();
  const set = new Set(axes().map(axis => axis.column));
  const distinct = ({name}) => new Set(rows.map(row => row[name]).filter(Number.isFinite)).size;
  const numeric = (result.columns ?? []).filter(({name}) => !set.has(name) && name !== 'point' && distinct({name}) > 0);
  const telling = numeric.filter(column => distinct(column) > 1);
  const rank = ({name, better}) => (better ? 0 : 2) + (/_s$|per_second/.test(name) ? 0 : 1);
  return (telling.length ? telling : numeric).sort((a, b) => rank(a) - rank(b));
}

export const columnLabel = name => label(name);

// The values of an axis as text: as it lists them, then any that only rows have.
export function valuesOf(axis) {
  const values = (axis.values ?? []).map(String);
  const seen = new Set(values);
  for (const row of result.rows ?? []) {
    const value = String(row[axis.column] ?? '–');
    if (!seen.has(value)) values.push(value);
    seen.add(value);
  }
  const used = new Set((result.rows ?? []).map(row => String(row[axis.column] ?? '–')));
  return values.filter(value => used.has(value));
}

// The axes that take more than one value, the longest first.
export const movingAxes = () =>
  axes()
    .map(axis => ({...axis, values: valuesOf(axis)}))
    .filter(axis => axis.values.length > 1)
    .sort((a, b) => b.values.length - a.values.length);
