// The explorer in a report, which carries it asleep: at the press of a button it takes the page's place, at the report's
// request.
import {element} from './dom.js';
import {result} from './page.js';

const textOf = id => document.getElementById(id).textContent;

export function addExplorer() {
  const button = document.getElementById('explore');
  if (!button) return;
  button.parentElement.hidden = false;
  const report = [...document.body.children].filter(one => /^(header|main|footer)$/i.test(one.tagName));
  const root = element('div', {id: 'explorer', hidden: true});
  let started = false;
  const show = exploring => {
    root.hidden = !exploring;
    report.forEach(one => (one.hidden = exploring));
    document.getElementById('explorer-style').media = exploring ? 'all' : 'not all';
    scrollTo(0, 0);
  };
  button.addEventListener('click', async () => {
    if (!started) {
      started = true;
      // A policy that allows scripts in the page allows these.
      for (const id of ['engine-script', 'explorer-script']) document.head.append(element('script', {text: textOf(id)}));
      document.body.prepend(root);
      show(true);
      await self.llmperfMountExplorer(root, {request: result.request, lang: document.documentElement.lang.slice(0, 2), back: () => show(false)}, false);
    } else show(true);
  });
}
