// What the page carries: the result, and the labels of its language.
import {words} from './words.js';

const read = id => JSON.parse(document.getElementById(id)?.textContent || '{}');

export const result = read('result');
const {lang = 'en', labels = {}} = read('labels');
let chinese = lang.startsWith('zh');
// Of a page that changes it.
export const setLanguage = language => {
  chinese = language === 'zh';
};

const own = (object, key) => (Object.prototype.hasOwnProperty.call(object, key) ? object[key] : undefined);

// The label of a key in the page's language; the key itself, made readable, when nobody has named it.
export function label(key, values = {}) {
  const text =
    own(labels, key) ?? own(words, key)?.[chinese ? 1 : 0] ?? key.slice(key.indexOf('.') + 1).replaceAll('_', ' ');
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// Names that results use as values: 'matrix' as a bound, 'prefill' as a phase.
export const valueLabel = (kind, value) => (own(words, `${kind}.${value}`) ? label(`${kind}.${value}`) : String(value));
