// Dark or light: the system's wish unless the reader has pressed the button. Colours are the style sheet's variables.
import {element} from './dom.js';
import {label} from './page.js';

const root = document.documentElement;
const system = matchMedia('(prefers-color-scheme: dark)');

export const isDark = () => (root.dataset.theme ?? (system.matches ? 'dark' : 'light')) === 'dark';
// An event of the document: a page may carry two scripts that draw.
export const onThemeChange = listener => document.addEventListener('llmperf-theme', listener);
const changed = () => document.dispatchEvent(new Event('llmperf-theme'));
export function toggleTheme() {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  changed();
}

export function palette() {
  const style = getComputedStyle(root);
  const colour = name => style.getPropertyValue(`--${name}`).trim();
  return {
    colour,
    font: getComputedStyle(document.body).fontFamily,
    bound: name => colour(`bound-${name.replaceAll(' ', '-')}`) || colour('series-8'),
    series: index => colour(`series-${(index % 8) + 1}`),
    ramp: [1, 2, 3, 4].map(step => colour(`ramp-${step}`)),
  };
}

export function addThemeButton() {
  const button = element('button', {type: 'button', className: 'theme'});
  const name = () => {
    button.textContent = label(isDark() ? 'theme.light' : 'theme.dark');
  };
  button.addEventListener('click', toggleTheme);
  system.addEventListener('change', changed);
  onThemeChange(name);
  name();
  document.querySelector('.page-head')?.append(button);
}

// Paper is light, and nothing is folded on it. Calls `draw` once it is, and again when the screen is back.
export function onPrint(draw) {
  let before;
  addEventListener('beforeprint', () => {
    before = root.dataset.theme;
    root.dataset.theme = 'light';
    for (const fold of document.querySelectorAll('details')) fold.open = true;
    draw(true);
  });
  addEventListener('afterprint', () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    draw(false);
  });
}
