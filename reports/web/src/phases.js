// Reading the phases of a result.
import {result} from './page.js';

export {boundsOf} from './bounds.js';

// The ops of a program are one phase.
const kPhases = result.phases ?? [{...result, name: 'program'}];
export const phases = () => kPhases.filter(phase => phase.ops?.length);
// The phase a figure is about; the first where it names none.
export const phaseNamed = name => (name === undefined ? phases()[0] : phases().find(phase => phase.name === name));

// Sums of `value` by `key`, largest first.
export function sums(items, key, value) {
  const total = new Map();
  for (const item of items) total.set(key(item), (total.get(key(item)) ?? 0) + value(item));
  return [...total].sort((a, b) => b[1] - a[1]);
}
