// Reading a table of points: the rows of a sweep with the axes that were asked for, or a section of a study, whose
// first columns are what was varied.
import {label, result} from './page.js';

const isMeasure = name =>
  /_s$|_bytes$|per_second|parameters|per_token|_tokens$|_that_fit$|_ape$|mape|utilisation|^mfu$/.test(name);

// What a path of the document holds.
export const at = path => path.split('.').reduce((from, key) => from?.[key], result);

// `path` names the rows of a sweep, or a section: rows of cells that its columns name.
export function tableAt(path) {
  const found = at(path);
  if (Array.isArray(found)) return {rows: result.rows ?? [], columns: result.columns ?? [], axes: result.axes ?? []};
  const names = found?.columns ?? [];
  const rows = (found?.rows ?? []).map(row => Object.fromEntries(names.map((name, i) => [name, row[i] ?? undefined])));
  const isText = name => rows.some(row => typeof row[name] === 'string' || typeof row[name] === 'boolean');
  const first = names.findIndex(name => !isText(name) && isMeasure(name));
  return {
    rows,
    columns: names.slice(Math.max(first, 0)).filter(name => !isText(name)).map(name => ({
      name,
      better: /_s$/.test(name) ? 'lower' : /per_second/.test(name) ? 'higher' : null,
    })),
    axes: names.slice(0, Math.max(first, 0)).map(column => ({column, values: []})),
  };
}

export const finished = ({rows}) => rows.filter(row => !row.error && row.fits !== false);

// Columns of numbers that no axis sets and that tell points apart: times and rates first, then what else has a better
// end.
export function measures(table) {
  const rows = finished(table);
  const set = new Set(table.axes.map(axis => axis.column));
  const distinct = ({name}) => new Set(rows.map(row => row[name]).filter(Number.isFinite)).size;
  const numeric = table.columns.filter(({name}) => !set.has(name) && name !== 'point' && distinct({name}) > 0);
  const telling = numeric.filter(column => distinct(column) > 1);
  const rank = ({name, better}) => (better ? 0 : 2) + (/_s$|per_second/.test(name) ? 0 : 1);
  return (telling.length ? telling : numeric).sort((a, b) => rank(a) - rank(b));
}

export const columnLabel = name => label(name);
export const valueOf = (row, column) => String(row[column] ?? '–');

// The values of an axis as text: as it lists them, then any that only rows have.
function valuesOf({rows}, axis) {
  const used = new Set(rows.map(row => valueOf(row, axis.column)));
  return [...new Set([...(axis.values ?? []).map(String), ...used])].filter(value => used.has(value));
}

// The axes that take more than one value, the longest first.
export const movingAxes = table =>
  table.axes
    .map(axis => ({...axis, values: valuesOf(table, axis)}))
    .filter(axis => axis.values.length > 1)
    .sort((a, b) => b.values.length - a.values.length);
