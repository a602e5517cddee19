// Reading a sweep: rows with a reason of failure, axes in the order that was asked for, columns that are numbers.
import {label, result} from './page.js';

export const axes = () => result.axes ?? [];
export const finished = () => (result.rows ?? []).filter(row => !row.error && row.fits !== false);

// Columns that hold a number in some row and that no axis sets; those with a better end first.
export function measures() {
  const rows = finished();
  const set = new Set(axes().map(axis => axis.column));
  const numeric = (result.columns ?? []).filter(
    ({name}) => !set.has(name) && name !== 'point' && rows.some(row => Number.isFinite(row[name])),
  );
  return [...numeric.filter(column => column.better), ...numeric.filter(column => !column.better)];
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
