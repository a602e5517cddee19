// The page: keeps the request, asks the engine once a frame, and tells every part what came of it.
import {element} from '../dom.js';
import {isDark, onThemeChange, toggleTheme} from '../theme.js';
import {BoundsPanel, coded, Headline, MemoryPanel, OpsPanel} from './answer.js';
import {Explainer} from './explain.js';
import {isGone, readFile} from './files.js';
import {Form, kRate} from './form.js';
import * as number from './number.js';
import {watch} from './panel.js';
import {PinsPanel, settings, titleOf} from './pins.js';
import {batchesFor, CurvePanel, RooflinePanel} from './plots.js';
import {ServingPanel} from './serving.js';
import {commandOf, fromFragment, kStart, nameOf, requestFor, toFragment, unfolded} from './state.js';
import {WhichPanel} from './which.js';
import {language, say, setLanguage} from './say.js';

const kQuiet = {side: 120, serve: 250, address: 300, said: 700}; // ms after the last change
const kMostPins = 6;
const kPaper = 680; // pixels
const kDevices = 16; // of one call
const kRequests = 500; // of a simulation, where the reader has not said it
const kSweepColumns = ['hardware', 'batch', 'fits', 'ttft_s', 'tpot_s', 'tokens_per_second', 'label', 'extrapolated', 'currency', 'request_cost_per_million_output_tokens', 'joules_per_output_token', 'total_bytes', 'capacity_bytes', 'error'];

// Calls `act` when it was not asked for again for a while.
function later(wait, act) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
}

const errorsOf = error => (error?.errors ?? []).map(({message, hint}) => ({message, hint}));

export class App {
  // `catalog`: what there is to choose from; `given`: {request, names, lang} that the page was made with; `address`: whether the state lives in the URL.
  constructor(root, engine, catalog, given, address = true) {
    Object.assign(this, {root, engine, catalog, address});
    this.given = {...given, request: unfolded(given.request ?? {})};
    this.side = engine.worker();
    this.server = engine.worker();
    this.byName = new Map(this.catalog.hardware.map(one => [one.name, one]));
    this.writeAddress = later(kQuiet.address, () => this.store());
    this.speak = later(kQuiet.said, () => this.announce());
    this.askSide = later(kQuiet.side, () => this.besides());
    this.askServe = later(kQuiet.serve, () => this.simulate());
    this.restore();
    this.build();
    this.compute();
    onThemeChange(() => this.redraw());
    addEventListener('hashchange', () => {
      if (this.address && location.hash.slice(1) !== this.written) {
        this.restore();
        this.build();
        this.compute();
      }
    });
    addEventListener('beforeprint', () => this.print(kPaper));
    addEventListener('afterprint', () => this.print(undefined));
    this.takeDrops();
  }

  // ---- The state.

  restore() {
    const found = this.address ? fromFragment(location.hash) : null;
    const {request = this.given.request, extra = {}} = found ?? {};
    this.request = Object.keys(request).length ? {...request} : {...kStart, ...this.given.request};
    this.names = found ? Object.fromEntries((extra.names ?? []).map(one => one.split('='))) : {...this.given.names};
    this.pins = (extra.pin ?? []).map(text => fromFragment(text)?.request).filter(Boolean).slice(0, kMostPins);
    this.which = {by: extra.by?.[0], marked: (extra.cards?.[0] ?? '').split(',').filter(Boolean)};
    const chosen = extra.lang?.[0] ?? this.given.lang ?? (navigator.language?.startsWith('zh') ? 'zh' : 'en');
    setLanguage(chosen);
  }

  fragment() {
    return toFragment(this.request, {
      by: this.which.by === 'tpot_s' ? '' : this.which.by,
      cards: this.which.marked.join(','),
      pin: this.pins.map(pin => toFragment(pin)),
      names: Object.entries(this.names).map(([key, name]) => `${key}=${name}`),
      lang: language() === (this.given.lang ?? 'en') ? '' : language(),
    });
  }

  store() {
    if (!this.address) return;
    this.written = this.fragment();
    history.replaceState(null, '', `#${this.written}`);
  }

  change(key, value) {
    if (value === undefined) delete this.request[key];
    else this.request[key] = value;
    if (typeof value !== 'object') delete this.names[key];
    this.later();
  }

  // One answer a frame, however often a slider moves within it.
  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.compute();
    });
  }

  // ---- The page.

  build() {
    document.documentElement.lang = language() === 'zh' ? 'zh-CN' : 'en';
    document.title = say('title');
    const explain = path => this.explainer.show(path);
    this.explainer = new Explainer(path => this.explain(path));
    this.form = new Form(this.catalog, (key, value) => this.change(key, value));
    this.headline = new Headline(explain);
    this.parts = {
      memory: new MemoryPanel(explain),
      bounds: new BoundsPanel(),
      ops: new OpsPanel(explain),
      curve: new CurvePanel(batch => this.change('batch', batch)),
      roofline: new RooflinePanel(),
      serving: new ServingPanel(),
      which: new WhichPanel(
        this.catalog.hardware,
        this.which,
        chosen => {
          this.which = chosen;
          this.writeAddress();
        },
        name => this.change('hw', name),
      ),
      pins: new PinsPanel((what, at) => this.pinned(what, at)),
    };
    this.panels = Object.values(this.parts);
    this.live = element('div', {className: 'unseen', role: 'status'});
    this.live.setAttribute('aria-live', 'polite');
    this.toast = element('div', {className: 'toast', role: 'status', hidden: true});
    this.mini = element('a', {className: 'mini', href: '#headline', onclick: event => this.toTop(event)});
    this.mini.setAttribute('aria-hidden', 'true');
    this.mini.tabIndex = -1;
    this.commandText = element('code');
    const {memory, bounds, ops, curve, roofline, serving, which, pins} = this.parts;
    this.root.replaceChildren(
      this.head(),
      element(
        'div',
        {className: 'explorer'},
        this.headline.element,
        element('aside', {}, this.form.element, this.opener()),
        element(
          'main',
          {},
          element('div', {className: 'pair'}, memory.element, bounds.element),
          ops.element,
          element('div', {className: 'pair'}, curve.element, roofline.element),
          serving.element,
          which.element,
          pins.element,
        ),
      ),
      element(
        'footer',
        {},
        element('div', {className: 'command-line'}, this.commandText),
        (this.made = element('p')),
      ),
      this.mini,
      this.live,
      this.toast,
      this.explainer.element,
      element('div', {className: 'drop'}, say('open.drop')),
    );
    serving.tools.append(
      element('button', {type: 'button', className: 'plain', onclick: () => this.copy(this.serveCommand())}, say('copy.command')),
    );
    this.unwatch?.();
    this.headOut?.disconnect();
    this.headOut = new IntersectionObserver(([{isIntersecting}]) => this.mini.classList.toggle('shown', !isIntersecting));
    this.headOut.observe(this.headline.element);
    this.panels.forEach(panel => {
      const draw = panel.draw.bind(panel);
      panel.draw = () => {
        draw();
        if (panel.wanted) this.supply(panel);
      };
    });
    this.unwatch = watch(this.panels);
    this.asked = {};
  }

  head() {
    const button = (key, act, className = '') =>
      element('button', {type: 'button', className, 'data-act': key, onclick: act}, say(key));
    this.theme = button('theme.dark', toggleTheme, 'theme');
    this.nameTheme();
    return element(
      'header',
      {className: 'page-head'},
      element('div', {className: 'brand'}, element('strong', {}, say('title')), element('span', {}, say('subtitle'))),
      element(
        'div',
        {className: 'acts'},
        button('pin', () => this.pin(), 'strong'),
        button('copy.command', () => this.copy(this.command())),
        button('copy.link', () => this.copyLink()),
        button('reset', () => this.reset()),
        button('language', () => this.translate(), 'language'),
        this.theme,
        ...(this.given.back ? [button('back', this.given.back)] : []),
      ),
    );
  }

  opener() {
    const input = element('input', {type: 'file', className: 'unseen', id: 'open-file'});
    input.setAttribute('aria-label', say('open'));
    input.addEventListener('change', () => {
      [...input.files].forEach(file => this.open(file));
      input.value = '';
    });
    return element('div', {className: 'opener'}, input, element('label', {htmlFor: 'open-file', className: 'button'}, say('open')), ' ', say('open.about'));
  }

  nameTheme() {
    this.theme.textContent = say(isDark() ? 'theme.light' : 'theme.dark');
  }

  redraw() {
    this.nameTheme();
    for (const panel of this.panels) {
      panel.stale = true;
      if (panel.near) panel.draw();
    }
  }

  translate() {
    setLanguage(language() === 'zh' ? 'en' : 'zh');
    this.build();
    this.compute();
    this.root.querySelector('.language').focus();
  }

  reset() {
    this.request = {...kStart, ...this.given.request};
    this.names = {...this.given.names};
    this.later();
  }

  toTop(event) {
    event.preventDefault();
    this.headline.element.scrollIntoView({block: 'start'});
  }

  // ---- Answers.

  deviceName(value, names) {
    return this.byName.get(value)?.title ?? nameOf(value, names, 'hw');
  }
  title(request = this.request, names = this.names) {
    const devices = ['tp', 'pp', 'dp'].reduce((product, key) => product * (Number(request[key]) || 1), 1);
    return titleOf(request, names, value => (devices > 1 ? `${devices} × ` : '') + this.deviceName(value, names));
  }

  ask(request) {
    return this.engine.call('estimate', requestFor('text', request, this.catalog.fields));
  }

  compute() {
    const began = performance.now();
    let {status, document, error} = this.ask(this.request);
    const errors = errorsOf(error);
    if (document && !document.memory) [status, document] = [2, null];
    if (document && document.inputs?.prompt_tokens === undefined) {
      [status, document] = [2, null];
      errors.push({message: say('not.text')});
    }
    if (isGone(this.request.model) && status === 2)
      errors.unshift({message: say('gone.file', {file: nameOf(this.request.model)})});
    this.errors = errors;
    this.document = document;
    this.took = performance.now() - began;
    this.headline.show({document, errors, status, title: this.title()});
    this.form.show(this.request, this.names, document?.inputs);
    if (document) {
      const model = {document, request: this.request};
      for (const name of ['memory', 'bounds', 'ops', 'curve', 'roofline', 'which']) this.parts[name].refresh(model);
      this.made.textContent = say('made', {version: document.tool?.version ?? ''});
      for (const name of ['bounds', 'ops', 'roofline', 'curve'])
        this.parts[name].element.classList.toggle('nothing', !document.fits);
    }
    this.showMini();
    this.commandText.textContent = this.command();
    this.refreshPins();
    this.askSide();
    this.askServe();
    this.writeAddress();
    this.speak();
  }

  showMini() {
    const {document} = this;
    this.mini.textContent = !document
      ? say('no.answer')
      : document.fits
        ? [document.ttft_s > 0 && number.seconds(document.ttft_s), document.tpot_s > 0 && number.seconds(document.tpot_s), document.decode_tokens_per_second > 0 && number.rate(document.decode_tokens_per_second)].filter(Boolean).join(' · ')
        : `${say('fits.no')} · ${say('memory.of', {need: number.capacity(document.memory.total_bytes), have: number.capacity(document.memory.capacity_bytes)})}`;
    this.mini.dataset.tone = document?.fits ? 'good' : 'bad';
  }

  announce() {
    const {document} = this;
    const what = this.title();
    if (!document) {
      this.live.textContent = `${say('no.answer')}: ${this.errors.map(one => one.message).join('; ')}`;
      return;
    }
    const memory = say('memory.of', {need: number.capacity(document.memory.total_bytes), have: number.capacity(document.memory.capacity_bytes)});
    this.live.textContent = document.fits
      ? say('said.fits', {
          what,
          ttft: number.seconds(document.ttft_s),
          tpot: number.seconds(document.tpot_s),
          rate: number.rate(document.decode_tokens_per_second),
          memory,
        })
      : say('said.not', {what, memory});
  }

  explain(path) {
    const asked = requestFor('text', this.request, this.catalog.fields);
    const {document, error} = this.engine.call('explain', {...asked, number: path});
    const command = commandOf('explain', this.request, this.fieldsOf('text'), this.names).replace(/^llmperf explain/, `llmperf explain ${path}`);
    return {document, errors: errorsOf(error), command};
  }

  // ---- What takes longer: in a worker, and only for what is in sight.

  besides() {
    const base = requestFor('text', this.request, this.catalog.fields);
    const {batch, ...others} = base;
    const {hw, ...wherever} = base;
    this.want('curve', JSON.stringify([others, this.pins]), async () => {
      const curves = [];
      const every = [this.request, ...this.pins];
      const told = settings(every.map(({batch: unused, ...request}) => ({request})));
      for (const [at, request] of every.entries()) {
        const rows = await this.curveOf(request, at);
        if (!rows) return;
        curves.push({name: at ? [this.title(request, {}), ...told[at]].join(', ') : say('curve.now'), rows});
      }
      this.parts.curve.showCurves(distinct(curves));
    });
    this.want('which', JSON.stringify(wherever), async key => {
      const names = this.catalog.hardware.map(one => one.name);
      const rows = [];
      // Part by part: the rows show as they come, and what nobody waits for any more ends soon.
      for (let at = 0; at < names.length; at += kDevices) {
        const hw = names.slice(at, at + kDevices);
        const answer = await this.side.call('which', 'sweep', {...wherever, hw, columns: kSweepColumns.join(',')});
        if (!answer || this.asked.which !== key) return;
        rows.push(...(answer.document?.rows ?? []));
        this.parts.which.showRows(rows, names.length);
      }
    });
  }

  async curveOf(request, at) {
    const asked = requestFor('text', request, this.catalog.fields);
    const largest = at ? this.pinDocuments?.[at - 1]?.largest_batch : this.document?.largest_batch;
    if (!(largest > 0)) return [];
    const answer = await this.side.call(`curve ${at}`, 'sweep', {
      ...asked,
      batch: batchesFor(largest, 1),
      columns: kSweepColumns.join(','),
    });
    return answer && (answer.document?.rows ?? []);
  }

  // What is simulated: as long prompts and answers as are estimated. A number of users may stand in place of a rate.
  traffic() {
    const asked = {rate: kRate, requests: kRequests, prompt: 512, gen: 128, ...this.request};
    if (this.request.concurrency !== undefined && this.request.rate === undefined) delete asked.rate;
    return requestFor('serving', asked, this.catalog.fields);
  }

  simulate() {
    const asked = this.traffic();
    this.want('serving', JSON.stringify(asked), async () => {
      this.parts.serving.wait(true);
      const answer = await this.server.call('serve', 'serve', asked);
      if (answer) this.parts.serving.showAnswer({document: answer.document, errors: answer.status === 4 ? [] : errorsOf(answer.error)});
    });
  }

  // Computed once for a key, when the panel is near.
  want(name, key, run) {
    const panel = this.parts[name];
    if (this.asked[name] === key) return;
    panel.wanted = {key, run};
    if (panel.near) this.supply(panel);
  }
  supply(panel) {
    const {key, run} = panel.wanted;
    const name = Object.keys(this.parts).find(one => this.parts[one] === panel);
    panel.wanted = null;
    this.asked[name] = key;
    run(key);
  }

  // ---- Pins.

  pin() {
    const text = toFragment(this.request);
    if (this.pins.some(pin => toFragment(pin) === text)) return;
    this.pins = [...this.pins, {...this.request}].slice(-kMostPins);
    this.say(say('pinned'));
    this.later();
  }

  pinned(what, at) {
    if (what === 'load') this.request = {...this.pins[at]};
    else this.pins = this.pins.filter((unused, index) => index !== at);
    this.later();
  }

  // Pins are computed again only when they change.
  refreshPins() {
    const key = this.pins.map(pin => toFragment(pin)).join('\n');
    if (key !== this.pinKey) {
      this.pinKey = key;
      this.pinDocuments = this.pins.map(pin => this.ask(pin).document);
    }
    this.parts.pins.refresh({
      columns: [this.request, ...this.pins].map((request, at) => ({
        request,
        title: this.title(request, at ? {} : this.names),
        document: at ? this.pinDocuments[at - 1] : this.document,
      })),
    });
  }

  // ---- In and out.

  fieldsOf(workload) {
    return this.catalog.fields.filter(one => one.workloads.includes(workload));
  }
  command() {
    return commandOf('estimate', this.request, this.fieldsOf('text'), this.names);
  }
  serveCommand() {
    return commandOf('serve', this.traffic(), this.fieldsOf('serving'), this.names);
  }

  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(say('copied'));
    } catch {
      const box = element('textarea', {value: text, className: 'unseen'});
      document.body.append(box);
      box.select();
      const done = document.execCommand('copy');
      box.remove();
      this.say(done ? say('copied') : say('copy.by.hand', {text}));
    }
  }

  copyLink() {
    this.store();
    this.copy(this.address ? location.href : `#${this.fragment()}`);
  }

  say(text) {
    this.toast.textContent = text;
    this.toast.hidden = false;
    clearTimeout(this.toasting);
    this.toasting = setTimeout(() => (this.toast.hidden = true), 2500);
  }

  async open(file) {
    try {
      const found = await readFile(file, one => this.engine.write(one));
      if (!found) return this.say(say('opened.unknown', {file: file.name}));
      if (found.request) {
        this.request = {...kStart, ...unfolded(found.request)};
        this.names = {};
        this.later();
        return this.say(say('opened.request', {file: file.name}));
      }
      this.change(found.key, found.value);
      this.names[found.key] = file.name;
      return this.say(say(`opened.${found.key}`, {file: file.name}));
    } catch (error) {
      return this.say(say('opened.bad', {file: file.name, why: error.message}));
    }
  }

  takeDrops() {
    const {classList} = document.documentElement;
    let inside = 0;
    const leave = () => {
      inside = 0;
      classList.remove('dropping');
    };
    document.addEventListener('dragenter', () => {
      ++inside;
      classList.add('dropping');
    });
    document.addEventListener('dragleave', () => {
      if (--inside <= 0) leave();
    });
    document.addEventListener('dragover', event => event.preventDefault());
    document.addEventListener('drop', event => {
      event.preventDefault();
      leave();
      [...event.dataTransfer.files].forEach(file => this.open(file));
    });
  }

  print(width) {
    const root = document.documentElement;
    if (width) {
      this.themeBefore = root.dataset.theme;
      root.dataset.theme = 'light';
    } else if (this.themeBefore) root.dataset.theme = this.themeBefore;
    else delete root.dataset.theme;
    for (const panel of this.panels) {
      panel.stale = true;
      panel.plot?.print(width);
      panel.draw();
    }
  }
}

// Curves of one name would be one series.
function distinct(curves) {
  const seen = new Map();
  return curves.map(curve => {
    const times = (seen.get(curve.name) ?? 0) + 1;
    seen.set(curve.name, times);
    return times > 1 ? {...curve, name: `${curve.name} (${times})`} : curve;
  });
}

export {coded};
