// What a report is without its charts: tables that sort and filter, a page for keyboards, paper and small screens, and
// names that nobody can make it run.
import assert from 'node:assert/strict';
import {stat, readFile} from 'node:fs/promises';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {chart, close, colour, launch, settled, shoot, visit} from './browser.mjs';

before(launch);
after(close);

const ops = 'table[data-name="ops"]';
const column = (page, key) =>
  page.evaluate(
    ([table, wanted]) => {
      const heads = [...document.querySelector(table).tHead.rows[0].cells];
      const index = heads.findIndex(head => head.dataset.key === wanted);
      return [...document.querySelector(table).tBodies[0].rows].map(
        row => row.cells[index].dataset.value ?? row.cells[index].textContent,
      );
    },
    [ops, key],
  );
const head = (page, key) => page.locator(`${ops} th[data-key="${key}"]`).first();

test('a column of numbers sorts by their size: largest first, smallest first, as it was', () =>
  visit('estimate.html', {}, async page => {
    const original = await column(page, 'time_s');
    const numbers = original.map(Number);
    assert.ok(numbers.every(Number.isFinite) && numbers.length > 8);
    const button = head(page, 'time_s').locator('button');
    await button.click();
    assert.equal(await head(page, 'time_s').getAttribute('aria-sort'), 'descending');
    assert.deepEqual(
      (await column(page, 'time_s')).map(Number),
      [...numbers].sort((a, b) => b - a),
    );
    await button.click();
    assert.equal(await head(page, 'time_s').getAttribute('aria-sort'), 'ascending');
    assert.deepEqual(
      (await column(page, 'time_s')).map(Number),
      [...numbers].sort((a, b) => a - b),
    );
    await button.click();
    assert.equal(await head(page, 'time_s').getAttribute('aria-sort'), 'none');
    assert.deepEqual(await column(page, 'time_s'), original);
  }));

test('a column of text sorts by its letters, and only one column says that it does', () =>
  visit('estimate.html', {}, async page => {
    await head(page, 'time_s').locator('button').click();
    await head(page, 'name').locator('button').click();
    const names = await column(page, 'name');
    assert.deepEqual(names, [...names].sort(new Intl.Collator(undefined, {numeric: true}).compare));
    assert.equal(
      await page.locator(`${ops} >> nth=0 >> th[aria-sort="ascending"], th[aria-sort="descending"]`).count(),
      1,
    );
  }));

test('what is typed hides the rows without it, and the count says how many are left', () =>
  visit('estimate.html', {}, async page => {
    const table = page.locator(ops).first();
    const filter = page.locator(`.table-tools:has(+ .table-frame ${ops}) .filter`).first();
    const count = page.locator(`.table-tools:has(+ .table-frame ${ops}) .count`).first();
    const names = await column(page, 'name');
    const wanted = names.filter(name => name.includes('proj'));
    assert.ok(wanted.length > 0 && wanted.length < names.length);
    await filter.fill('PROJ');
    assert.equal(await table.locator('tbody tr:visible').count(), wanted.length);
    assert.equal(await count.textContent(), `${wanted.length} of ${names.length} rows`);
    await filter.fill('proj gemm qkv'); // words in any column, all of them
    assert.deepEqual(await table.locator('tbody tr:visible td:first-child').allTextContents(), ['qkv_proj']);
    await filter.fill('no such op');
    assert.equal(await table.locator('tbody tr:visible').count(), 0);
    await filter.fill('');
    assert.equal(await table.locator('tbody tr:visible').count(), names.length);
  }));

test('the keyboard reaches a column and sorts by it, in sight', () =>
  visit('estimate.html', {}, async page => {
    const focused = () =>
      page.evaluate(() => {
        const now = document.activeElement;
        return {
          key: now.closest('th')?.dataset.key,
          inOps: Boolean(now.closest('table[data-name="ops"]')),
          outline: getComputedStyle(now).outlineStyle,
          tag: now.tagName,
        };
      });
    let now;
    let presses = 0;
    do {
      await page.keyboard.press('Tab');
      now = await focused();
      assert.ok(++presses < 400, 'a button of the op table within 400 presses of Tab');
    } while (!now.inOps || now.key !== 'time_s');
    assert.equal(now.tag, 'BUTTON');
    assert.notEqual(now.outline, 'none');
    await page.keyboard.press('Enter');
    assert.equal(await head(page, 'time_s').getAttribute('aria-sort'), 'descending');
    await page.keyboard.press('Space');
    assert.equal(await head(page, 'time_s').getAttribute('aria-sort'), 'ascending');
  }));

test('without JavaScript every op and its time is in the page, and no empty chart is', async () => {
  const rows = await visit('estimate.html', {}, page => column(page, 'time_s'));
  await visit('estimate.html', {javaScript: false}, async page => {
    const cells = await page
      .locator(`${ops} >> nth=0 >> tbody td.number`)
      .evaluateAll(found => found.map(one => one.dataset.value));
    for (const time of rows) assert.ok(cells.includes(time), time);
    assert.equal(await page.locator('figure.chart:visible').count(), 0);
    assert.ok((await page.locator('.card-value').count()) > 2);
    assert.match(await page.locator('pre.command').textContent(), /^llmperf estimate /);
    await shoot(page, 'estimate-no-script');
  });
});

test('a page is at most 1 MB without its data, and 2.2 MB with an engine', async () => {
  for (const [name, most] of [['sweep.html', 1e6], ['estimate.html', 2.2e6]]) await isSmall(name, most);
});

async function isSmall(name, most) {
  const file = path.join(process.env.PAGES, name);
  const {size} = await stat(file);
  const data = await visit(name, {}, page =>
    page.evaluate(() => new TextEncoder().encode(document.getElementById('result').textContent).length),
  );
  assert.ok(data > 1000 && size - data <= most, `${size} bytes with ${data} of data`);
  const markup = (await readFile(file, 'utf8')).split('</head>')[1];
  assert.doesNotMatch(markup.slice(0, markup.indexOf('id="result"')), /(src|href)="(?!data:|#)/);
}

test('text can be told from its background: contrast of at least 4.5 to 1', async () => {
  const luminance = hex => {
    const [r, g, b] = [1, 3, 5]
      .map(at => parseInt(hex.slice(at, at + 2), 16) / 255)
      .map(value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  assert.equal(contrast('#000000', '#ffffff'), 21);
  await visit('estimate.html', {}, async page => {
    for (const scheme of ['light', 'dark']) {
      await page.emulateMedia({colorScheme: scheme});
      const pairs = ['text', 'muted', 'accent', 'good', 'warn', 'bad'].flatMap(name => [
        [name, 'surface'],
        [name, 'page'],
      ]);
      for (let i = 1; i <= 8; ++i) pairs.push(['on-fill', `series-${i}`]);
      for (const bound of ['matrix', 'vector', 'memory', 'network', 'launch', 'operand-feed'])
        pairs.push(['on-fill', `bound-${bound}`]);
      for (const [front, back] of pairs) {
        const ratio = contrast(await colour(page, front), await colour(page, back));
        assert.ok(ratio >= 4.5, `${scheme}: ${front} on ${back}: ${ratio.toFixed(2)}`);
      }
    }
  });
});

for (const name of ['estimate.html', 'estimate-zh.html', 'validate.html', 'sweep.html']) {
  test(`${name}: only tables scroll sideways, whether 360, 800 or 1600 pixels are there`, () =>
    visit(name, {width: 360}, async page => {
      for (const width of [360, 800, 1600]) {
        await page.setViewportSize({width, height: 900});
        await settled(page);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
        if (width !== 800) await shoot(page, `${name.replace('.html', '')}-${width}`);
      }
    }));
}

test('names that would be markup or script elsewhere are text here, in tables, charts and tips', () =>
  visit('hostile.html', {scheme: 'dark'}, async page => {
    const {ops: list, model} = await page.evaluate(() => {
      const result = JSON.parse(document.getElementById('result').textContent);
      return {ops: result.phases[0].ops.map(op => op.name), model: result.inputs.model.name};
    });
    assert.ok(model.includes('<script>') && list[0].includes('<img'));
    assert.ok((await page.locator('h1').textContent()).includes(model));
    const plain = name => name.replace(/[\u2028?]/g, ''); // tables show a separator of lines as a question mark
    assert.deepEqual((await column(page, 'name')).slice(0, list.length).map(plain), list.map(plain));
    const figure = await chart(page, 'roofline');
    const box = await figure.locator('canvas').first().boundingBox();
    for (let at = 0.15; at < 0.95; at += 0.04) {
      // over all dots of the diagonal and the ceiling
      for (const down of [0.05, 0.1, 0.2, 0.4, 0.6])
        await page.mouse.move(box.x + box.width * at, box.y + box.height * down);
    }
    const injected = await page.evaluate(() => ({
      ran: window.hit ?? null,
      elements: document.querySelectorAll('main script, main img:not([src^="data:"]), main iframe').length,
    }));
    assert.deepEqual(injected, {ran: null, elements: 0});
    await shoot(page, 'hostile-dark');
  }));

test('a long table shows its first rows, more as it is scrolled, and all of them on paper', () =>
  visit('large.html', {}, async page => {
    const table = page.locator(ops).first();
    const frame = page.locator(`.table-frame:has(${ops})`).first();
    const rows = () => table.locator('tbody tr').count();
    const first = await rows();
    assert.ok(first < 1000, `${first}`);
    assert.match(await page.locator(`.table-tools:has(+ .table-frame ${ops}) .count`).first().textContent(), /5000/);
    await frame.evaluate(one => {
      one.scrollTop = one.scrollHeight;
    });
    await page.waitForFunction(
      ([selector, had]) => document.querySelector(selector).tBodies[0].rows.length > had,
      [ops, first],
    );
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.equal(await rows(), 5000);
  }));

test('without JavaScript a long table has all its rows', () =>
  visit('large.html', {javaScript: false}, async page =>
    assert.equal(await page.locator(`${ops} >> nth=0 >> tbody tr:visible`).count(), 5000),
  ));
