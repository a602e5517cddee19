// Words in the reader's language.
import {setLanguage as setChartLanguage} from '../page.js';
import {words as shared} from '../words.js';
import {words as own} from './words.js';

let chinese = false;
let labels = {};
export const setLanguage = language => {
  chinese = language === 'zh';
  setChartLanguage(language);
};
export const language = () => (chinese ? 'zh' : 'en');
// What keys of a request are called elsewhere: {key: [English, Chinese]}.
export const setLabels = given => {
  labels = given;
};

const has = (table, key) => Object.prototype.hasOwnProperty.call(table, key);
const find = key => [own, shared, labels].find(table => has(table, key))?.[key];

export function say(key, values = {}) {
  const text = find(key)?.[chinese ? 1 : 0] || find(key)?.[0] || key.slice(key.indexOf('.') + 1).replaceAll('_', ' ');
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
export const sayValue = (kind, value) => (find(`${kind}.${value}`) ? say(`${kind}.${value}`) : String(value));
