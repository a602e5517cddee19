// A section of the page. update() is called when something that it shows may have changed, and only while it is in sight or
// near it; what is not in sight is drawn when it comes there.
import {element} from '../dom.js';
import {palette} from '../theme.js';
import {SvgPlot} from './svg_plot.js';

const kNear = '300px';

// Writing what stands there already would cost a layout.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Children of `parent` for `items`, made once and changed in place: `make()` gives {element, show(item)}.
export class Rows {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.rows = [];
  }
  show(items) {
    while (this.rows.length < items.length) {
      const row = this.make();
      this.rows.push(row);
      this.parent.append(row.element);
    }
    this.rows.forEach((row, at) => {
      row.element.hidden = at >= items.length;
      if (at < items.length) row.show(items[at], at);
    });
  }
}

export class Panel {
  constructor(name, title, ...inside) {
    this.name = name;
    this.note = element('p', {className: 'note'});
    this.tools = element('div', {className: 'tools'});
    this.body = element('div', {className: 'body'}, ...inside);
    this.heading = element('h2', {id: `h-${name}`}, title);
    this.element = element(
      'section',
      {className: `panel ${name}`, id: `panel-${name}`},
      element('header', {}, this.heading, this.tools),
      this.body,
      this.note,
    );
    this.element.setAttribute('aria-labelledby', `h-${name}`);
    this.near = false;
    this.stale = false;
  }

  refresh(model) {
    this.model = model;
    this.stale = true;
    if (this.near) this.draw();
  }

  draw() {
    if (!this.stale || !this.model) return;
    this.stale = false;
    this.update(this.model);
  }
}

export function watch(panels) {
  const of = new Map(panels.map(panel => [panel.element, panel]));
  const near = new IntersectionObserver(
    entries => {
      for (const {target, isIntersecting} of entries) {
        of.get(target).near = isIntersecting;
        if (isIntersecting) of.get(target).draw();
      }
    },
    {rootMargin: kNear},
  );
  panels.forEach(panel => near.observe(panel.element));
  return () => near.disconnect();
}

// A chart that is drawn again and again: `option(colours, width)` may be another each time.
export class Plot {
  constructor(label, height, pressed) {
    this.height = height;
    this.element = element('div', {className: 'canvas', role: 'img'});
    this.element.setAttribute('aria-label', label);
    this.chart = new SvgPlot(this.element, pressed);
    new ResizeObserver(() => requestAnimationFrame(() => this.fit())).observe(this.element);
  }

  fit() {
    const width = this.element.clientWidth;
    if (width && this.option && width !== this.width) this.show(this.option);
  }

  show(option) {
    this.option = option;
    const width = this.printing ?? this.element.clientWidth;
    if (!width) return;
    const colours = palette();
    const made = option(colours, width);
    this.width = width;
    this.element.style.height = `${this.height}px`;
    this.chart.show(made, colours, width, this.height);
  }

  // In the width of a sheet of paper, and back.
  print(width) {
    this.printing = width;
    if (this.option) this.show(this.option);
  }
}
