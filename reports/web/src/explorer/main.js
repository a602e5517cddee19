// Starts the explorer: in a page of its own at once, in a report when its button is pressed.
import {element} from '../dom.js';
import {App} from './app.js';
import {say, setLabels, setLanguage} from './say.js';

const textOf = id => document.getElementById(id)?.textContent ?? '';
const json = id => JSON.parse(textOf(id) || '{}');

export async function mount(root, given, address) {
  setLabels(json('explorer-labels'));
  setLanguage(given.lang ?? 'en');
  const status = element('p', {className: 'starting', role: 'status'}, say('loading'));
  root.replaceChildren(status);
  const fail = why => {
    status.className = 'starting failed';
    status.textContent = say('failed.start', {why});
  };
  if (typeof WebAssembly === 'undefined') return fail(say('failed.browser'));
  try {
    const engine = await self.llmperfExplorerEngine.open(textOf('engine-packed'), textOf('engine-script'));
    const app = new App(root, engine, json('engine-catalog'), given, address);
    performance.mark('explorer-ready');
    return app;
  } catch (error) {
    console.error(error);
    return fail(error.message);
  }
}

// A page of its own says where it opens.
if (document.getElementById('state')) mount(document.getElementById('explorer'), json('state'), true);
else self.llmperfMountExplorer = mount;
