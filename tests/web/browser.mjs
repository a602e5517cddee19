// A headless Chromium for the tests of HTML reports. PAGES names the folder of the pages, WEB that of npm's packages,
// CHROMIUM the browser, SHOTS the folder that screenshots for people go to, if any.
import assert from 'node:assert/strict';
import {readFile, writeFile} from 'node:fs/promises';
import {createRequire} from 'node:module';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const {PAGES, WEB, CHROMIUM, SHOTS} = process.env;
const {chromium} = createRequire(path.join(WEB, 'package.json'))('playwright-core');

let browser;
export const launch = async () => {
  // One process draws the pages, as they are open one after the other.
  const args = ['--no-sandbox', '--renderer-process-limit=1', '--disable-site-isolation-trials'];
  browser = await chromium.launch({executablePath: CHROMIUM, args});
};
export const close = () => browser.close();

// Remembers every text that a canvas is asked to draw: pixels cannot be read as words.
const spy = () => {
  window.drawnTexts = [];
  const fillText = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.drawnTexts.push(String(text));
    return fillText.call(this, text, ...rest);
  };
};

// Writes the page `name`: `from` with its result as `change` leaves it.
export async function variant(name, from, change) {
  const text = await readFile(path.join(PAGES, from), 'utf8');
  const [whole, head, json] = text.match(/(<script[^>]*id="result"[^>]*>)([^]*?)<\/script>/);
  const result = JSON.parse(json);
  change(result);
  const changed = `${head}${JSON.stringify(result).replaceAll('<', '\\u003c')}</script>`;
  await writeFile(path.join(PAGES, name), text.replace(whole, () => changed));
}

// Opens a page, gives it to `look` and checks that it neither complained nor asked a network for anything. `expected`:
// what it may complain about.
export async function visit(name, options, look, fragment = '') {
  const {width = 1280, height = 900, scheme = 'light', javaScript = true, expected} = options;
  const context = await browser.newContext({
    viewport: {width, height},
    colorScheme: scheme,
    offline: true,
    javaScriptEnabled: javaScript,
  });
  try {
    const page = await context.newPage();
    const url = pathToFileURL(path.join(PAGES, name)).href;
    const own = one => one.split('#')[0] === url || /^(data|blob):/.test(one); // a worker's script is a blob
    const complaints = [];
    page.on('console', message => complaints.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', error => complaints.push(String(error.stack)));
    page.on('dialog', dialog => {
      complaints.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    page.on('request', request => {
      if (!own(request.url())) complaints.push(`request: ${request.url()}`);
    });
    if (javaScript) await page.addInitScript(spy);
    await page.goto(fragment ? `${url}#${fragment}` : url);
    const answer = await look(page);
    assert.deepEqual(
      complaints.filter(one => !expected?.test(one)),
      [],
      `${name} complains`,
    );
    return answer;
  } finally {
    await context.close();
  }
}

export const settled = page =>
  page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

// A chart is drawn when it comes near the window.
export async function chart(page, name, phase) {
  const figure = page.locator(`figure[data-chart="${name}"]${phase ? `[data-phase="${phase}"]` : ''}`).first();
  await figure.locator('.canvas').scrollIntoViewIfNeeded({timeout: 20000});
  await figure.locator('.canvas canvas').first().waitFor({timeout: 20000});
  await settled(page);
  return figure;
}

// What a screenshot of an element shows, counted in the browser: {width, height, colours: [[#rrggbb, pixels]…] with the
// most frequent first}; with `line`, also the colours of the line of pixels that has most of that colour.
export async function pixels(page, locator, line = null) {
  const image = (await locator.screenshot()).toString('base64');
  return page.evaluate(
    async ([encoded, wanted]) => {
      const bitmap = await createImageBitmap(
        new Blob([Uint8Array.from(atob(encoded), c => c.charCodeAt(0))], {type: 'image/png'}),
      );
      const {width, height} = bitmap;
      const context = new OffscreenCanvas(width, height).getContext('2d');
      context.drawImage(bitmap, 0, 0);
      const {data} = context.getImageData(0, 0, width, height);
      const words = new Uint32Array(data.buffer); // aabbggrr
      const name = word => `#${[0, 8, 16].map(by => ((word >>> by) & 255).toString(16).padStart(2, '0')).join('')}`;
      const counts = new Map();
      for (let i = 0, end = 0; i < words.length; i = end) {
        while (end < words.length && words[end] === words[i]) ++end; // most neighbours are alike
        counts.set(words[i], (counts.get(words[i]) ?? 0) + end - i);
      }
      const row = y => Array.from({length: width}, (unused, x) => name(words[y * width + x]));
      const have = y => row(y).filter(one => one === wanted).length;
      const ys = Array.from({length: wanted ? height : 0}, (unused, y) => y);
      const best = ys.map(have).reduce((most, count, y, all) => (count > all[most] ? y : most), 0);
      return {
        width,
        height,
        line: wanted && row(best),
        colours: [...counts].sort((a, b) => b[1] - a[1]).map(([value, count]) => [name(value), count]),
      };
    },
    [image, line],
  );
}

// The value of a colour of the style sheet, as #rrggbb.
export const colour = (page, name) =>
  page.evaluate(key => getComputedStyle(document.documentElement).getPropertyValue(`--${key}`).trim(), name);

// For people to look at, where SHOTS names a folder: the whole page as one picture.
export async function shoot(page, name) {
  if (!SHOTS) return;
  const size = page.viewportSize();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({width: size.width, height: Math.min(height + 100, 9000)});
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(200);
  await page.screenshot({path: path.join(SHOTS, `${name}.png`)});
  await page.setViewportSize(size);
}
