// Elements with text that is never read as markup: names come from files that anybody may have written.
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// A labelled select; calls `changed` with the chosen value. options: [value, text].
export function select(text, options, chosen, changed) {
  const box = element(
    'select',
    {onchange: () => changed(box.value)},
    ...options.map(([value, name]) => element('option', {value, selected: value === chosen}, name)),
  );
  return element('label', {}, text, box);
}

// What a chart shows where the pointer is: a title and [label, value] lines.
export const tip = (title, rows) =>
  element(
    'div',
    {className: 'tip'},
    element('strong', {}, title),
    element(
      'dl',
      {},
      ...rows.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
    ),
  );
