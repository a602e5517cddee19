// The explorer says what the program says, for any state and however it was reached, and can be used by everybody.
import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {readFile} from 'node:fs/promises';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {close, launch, settled, shoot, visit} from './browser.mjs';

before(launch);
after(close);

const {PAGES, PROGRAM} = process.env;
const ready = page =>
  page.waitForFunction(
    () => performance.getEntriesByName('explorer-ready').length || document.querySelector('.failed'),
    null,
    {timeout: 30000},
  );

// Opens the page at a state and waits until it computes.
const explore = (state, options, look) =>
  visit(
    'explorer.html',
    options,
    async page => {
      await ready(page);
      await settled(page);
      return look(page);
    },
    state,
  );

const kWhole = ['--detail', 'full'];
// Lines joined that were broken, and numbers as the page has them.
const joined = text => text.replace(/\n {6,}/g, ' ').replace(/ +/g, ' ').replace(/(\d),(?=\d{3})/g, '$1');
// What the program prints, all of it, and the exit status.
function told(words) {
  const {stdout, status} = spawnSync(PROGRAM, words[0] === 'estimate' ? [...words, ...kWhole] : words, {cwd: PAGES, encoding: 'utf8'});
  assert.ok(status === 0 || status === 3, `${words}: ${status}`);
  return {text: joined(stdout), status};
}
const shell = command =>
  execFileSync('sh', ['-c', command.replace(/^llmperf /, `'${PROGRAM}' `)], {cwd: PAGES, encoding: 'utf8'});

// The numbers of the page's headline.
const headline = page =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('.headline [data-number]')].map(one => [
        one.dataset.number,
        ['value', 'unit', 'band', 'below'].map(name => one.querySelector(`.${name}`).textContent),
      ]),
    ),
  );

// … are those that the program prints.
async function assertSame(page, {text, status}) {
  await page.locator('#panel-memory').scrollIntoViewIfNeeded(); // what is not in sight is not drawn
  await settled(page);
  const numbers = await headline(page);
  const badge = await page.locator('.badge.fit').textContent();
  assert.equal(badge, status === 0 ? 'fits' : 'does not fit');
  const need = /(?:fits in|not fit: needs) ([\d.]+ \w+) of\s([\d.]+ \w+)/.exec(text);
  assert.ok((await page.locator('.memory .sum').first().textContent()).startsWith(`${need[1]} of ${need[2]}`));
  if (status !== 0) return;
  const of = (name, at = 0) => numbers[name][at];
  const [, ttft, ttftBand = ''] = /TTFT ([\d.]+ \w+)(?: (±[\d.]+ %))?/.exec(text);
  assert.equal(of('ttft_s'), ttft);
  assert.equal(of('ttft_s', 2), ttftBand);
  const [, tpot, tpotBand = '', first, last] =
    /TPOT ([\d.]+ \w+)(?: (±[\d.]+ %))? mean, ([\d.]+ \w+) first, ([\d.]+ \w+) last/.exec(text);
  assert.equal(of('tpot_s'), tpot);
  assert.equal(of('tpot_s', 2), tpotBand);
  assert.equal(of('tpot_s', 3), `first ${first}, last ${last}`);
  const [, each, total = each] = /([\d.]+) tokens\/s a request(?: \(([\d.]+)\s+in\s+all\))?/.exec(text);
  assert.equal(of('decode_tokens_per_second'), total);
  assert.equal(of('tokens_per_second_per_request'), each);
  const [, generation, one, all = one] =
    /generation ([\d.]+ \w+) for [^:]+: ([\d.]+) tokens\/s with the prompt(?:, ([\d.]+) in\s+total)?/.exec(text);
  assert.equal(of('tokens_per_second_per_request', 3), `generation ${generation}`);
  assert.equal(of('decode_tokens_per_second', 3), `with the prompt ${all} tokens/s`);
  const cost = /([\d.]+) output with its prompt/.exec(text);
  if (cost) assert.equal(of('request_cost_per_million_output_tokens'), cost[1]);
  const energy = /J per token: [^\n]*?([\d.]+) output/.exec(text);
  if (energy) assert.equal(of('joules_per_output_token'), energy[1]);
}

const kStates = [
  ['model=qwen-7b&hw=rtx4090', ['-m', 'qwen-7b', '--hw', 'rtx4090']],
  [
    'model=llama-3.1-8b&hw=h100-sxm&batch=16&prompt=2048&gen=512',
    ['-m', 'llama-3.1-8b', '--hw', 'h100-sxm', '--batch', '16', '--prompt', '2048', '--gen', '512'],
  ],
  ['model=llama-3-70b&hw=rtx4090', ['-m', 'llama-3-70b', '--hw', 'rtx4090']],
  [
    'model=mixtral-8x7b&hw=rtx3090&tp=4&weights=q4_k_m',
    ['-m', 'mixtral-8x7b', '--hw', 'rtx3090', '--tp', '4', '--weights', 'q4_k_m'],
  ],
  [
    'model=deepseek-v3&hw=h200-sxm&tp=8&ep=8&batch=64&prompt=4k&runtime=none',
    ['-m', 'deepseek-v3', '--hw', 'h200-sxm', '--tp', '8', '--ep', '8', '--batch', '64', '--prompt', '4k', '--runtime', 'none'],
  ],
  [
    'model=gemma-2-9b&hw=apple-m3-max&weights=q8_0&kv=q8_0&gen=1000',
    ['-m', 'gemma-2-9b', '--hw', 'apple-m3-max', '--weights', 'q8_0', '--kv', 'q8_0', '--gen', '1000'],
  ],
];

test('the headline is what the program prints, at every state', async () => {
  for (const [state, words] of kStates)
    await explore(state, {}, async page => {
      const time = await page.evaluate(() => performance.getEntriesByName('explorer-ready')[0].startTime);
      console.log(`${state}: ready after ${time.toFixed(0)} ms`);
      await assertSame(page, told(['estimate', ...words]));
    });
});

test('the command under the page asks for what the page shows, and reads as a shell reads it', async () => {
  const odd = 'model=qwen-7b&hw=rtx4090&batch=3&options=no_fused_norm&kv=fp8&price=2.5EUR&reserve_bytes=1073741824&gen=1k';
  for (const state of [odd, ...kStates.slice(0, 2).map(([one]) => one)])
    await explore(state, {}, async page => {
      const command = await page.locator('.command-line code').textContent();
      await assertSame(page, {text: joined(shell(`${command} ${kWhole.join(' ')}`)), status: 0});
    });
});

test('a slider is dragged: the numbers follow within its frames, and end where the program does', () =>
  explore('model=llama-3.1-8b&hw=h100-sxm', {}, async page => {
    const slider = page.locator('.slider input[type=range]').first();
    const box = await slider.boundingBox();
    const before = await headline(page);
    await page.evaluate(() => {
      window.frames_ = [];
      let last = performance.now();
      const tick = () => {
        const now = performance.now();
        window.frames_.push(now - last);
        last = now;
        window.frameRequest = requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + 10, y);
    await page.mouse.down();
    for (let i = 0; i <= 100; ++i) {
      await page.mouse.move(box.x + 10 + (i / 100) * (box.width * 0.5), y);
      await page.waitForTimeout(8);
    }
    await page.mouse.up();
    await settled(page);
    const gaps = await page.evaluate(() => {
      cancelAnimationFrame(window.frameRequest);
      return window.frames_.slice(1).sort((a, b) => a - b);
    });
    console.log(
      `dragging: ${gaps.length} frames, median gap ${gaps[gaps.length >> 1].toFixed(1)} ms, 95 of 100 within ${gaps[Math.floor(gaps.length * 0.95)].toFixed(1)} ms`,
    );
    const now = await headline(page);
    assert.notDeepEqual(now, before);
    const batch = await page.locator('.slider .amount').first().inputValue();
    assert.ok(Number(batch) > 4, batch);
    await assertSame(page, told(['estimate', '-m', 'llama-3.1-8b', '--hw', 'h100-sxm', '--batch', batch]));
  }));

test('the state lives in the address: opened again, the page says the same', async () => {
  const [hash, said, form] = await explore('', {}, async page => {
    await page.locator('.field:has(> label:text("Generated")) .amount').fill('2k');
    await page.keyboard.press('Enter');
    await page.locator('select').first().selectOption('2');
    await page.locator('button[data-act=pin]').click();
    await page.locator('select').first().selectOption('4');
    await page.waitForFunction(() => location.hash.includes('tp=4') && location.hash.includes('pin='));
    return [await page.evaluate(() => location.hash), await headline(page), await page.locator('.amount').nth(2).inputValue()];
  });
  assert.match(hash, /gen=2048/);
  await explore(hash.slice(1), {}, async page => {
    assert.deepEqual(await headline(page), said);
    assert.equal(await page.locator('.amount').nth(2).inputValue(), form);
    await page.locator('#panel-compare').scrollIntoViewIfNeeded();
    await page.locator('table.pins th[scope=col]').nth(1).waitFor();
  });
});

test('a config.json, a device as YAML and the header of a GGUF file are read', () =>
  explore('model=qwen-7b&hw=rtx4090', {}, async page => {
    const open = name => page.locator('#open-file').setInputFiles(path.join(PAGES, name));
    const named = text => page.waitForFunction(one => document.querySelector('h1').textContent.includes(one), text);
    await open('config.json');
    await named('config.json');
    await assertSame(page, told(['estimate', '-m', './config.json', '--hw', 'rtx4090']));
    await open('my-npu.yaml');
    await named('my-npu');
    await assertSame(page, told(['estimate', '-m', './config.json', '--hw', './my-npu.yaml']));
    assert.match(await page.locator('.command-line code').textContent(), /-m config\.json --hw my-npu\.yaml/);
    await open('tiny.gguf');
    await named('tiny.gguf');
    await assertSame(page, told(['estimate', '-m', './tiny.gguf', '--hw', './my-npu.yaml']));
    // A worker reads it, too.
    await page.locator('#panel-which').scrollIntoViewIfNeeded();
    await page.locator('.which-row').first().waitFor();
  }));

test('a file that is dropped is read, and one that is nothing is named', () =>
  explore('model=qwen-7b&hw=rtx4090', {}, async page => {
    const drop = async (name, text) =>
      page.evaluate(
        ([called, content]) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File([content], called));
          for (const type of ['dragenter', 'drop'])
            document.body.dispatchEvent(new DragEvent(type, {dataTransfer, bubbles: true, cancelable: true}));
        },
        [name, text],
      );
    await drop('config.json', await readFile(path.join(PAGES, 'config.json'), 'utf8'));
    await page.waitForFunction(() => document.querySelector('h1').textContent.includes('config.json'));
    await drop('shopping.txt', 'eggs: 6');
    await page.waitForFunction(() => document.querySelector('.toast').textContent.includes('shopping.txt'));
  }));

test('pinned setups stand side by side, with their differences', () =>
  explore('model=llama-3.1-8b&hw=h100-sxm', {}, async page => {
    await page.locator('button[data-act=pin]').click();
    await page.locator('.combo input').nth(3).fill('fp8');
    await page.keyboard.press('Enter');
    await page.locator('#panel-compare').scrollIntoViewIfNeeded();
    const cells = page.locator('table.pins tr[data-key=tpot_s] td');
    await cells.nth(1).waitFor();
    const tpot = words => Number(JSON.parse(execFileSync(PROGRAM, ['estimate', ...words, '--json'])).tpot_s);
    const base = ['-m', 'llama-3.1-8b', '--hw', 'h100-sxm'];
    const ratio = tpot(base) / tpot([...base, '--weights', 'fp8']);
    const text = await cells.nth(1).textContent();
    assert.ok(ratio > 1.2 && ratio < 2 && text.includes(`+${(100 * (ratio - 1)).toFixed(0)} %`), `${text}, ${ratio}`);
    await page.getByRole('button', {name: /^Remove/}).click();
    await page.waitForFunction(() => !document.querySelector('table.pins tbody:not(:empty)')?.offsetParent);
  }));

test('which card: every device, the best first, as the program sweeps them; a press takes one', () =>
  explore('model=llama-3.1-8b&hw=rtx4090', {}, async page => {
    await page.locator('#panel-which').scrollIntoViewIfNeeded();
    const first = page.locator('#panel-which:not(.waiting) .which-row').first();
    await first.waitFor();
    const rows = JSON.parse(execFileSync(PROGRAM, ['sweep', '-m', 'llama-3.1-8b', '--hw', 'all', '--json'])).rows;
    const best = rows.filter(row => row.fits).sort((a, b) => a.tpot_s - b.tpot_s)[0];
    assert.equal(await first.getAttribute('data-hw'), best.hardware);
    await first.locator('button').click();
    await page.waitForFunction(name => location.hash.includes(`hw=${name}`), best.hardware);
    await assertSame(page, told(['estimate', '-m', 'llama-3.1-8b', '--hw', best.hardware]));
  }));

test('traffic is simulated as the program does it', () =>
  explore('model=llama-3.1-8b&hw=h100-sxm&rate=8&requests=300&slo=ttft.p99=1s', {}, async page => {
    await page.locator('#panel-serving').scrollIntoViewIfNeeded();
    await page.locator('tr[data-metric=ttft_s]').waitFor();
    const words = ['serve', '-m', 'llama-3.1-8b', '--hw', 'h100-sxm', '--rate', '8', '--requests', '300', '--slo', 'ttft.p99=1s', '--input', '512', '--output', '128'];
    const {text} = told(words);
    const [, ...expected] = /TTFT requests ([\d.]+ \w+) ([\d.]+ \w+) ([\d.]+ \w+) ([\d.]+ \w+) ([\d.]+ \w+)/.exec(text);
    assert.deepEqual(await page.locator('tr[data-metric=ttft_s] td').allTextContents(), expected);
    assert.match(await page.locator('.verdict').textContent(), /^met/);
  }));

test('a number is pressed for its formula', () =>
  explore('model=qwen-7b&hw=rtx4090', {}, async page => {
    await page.locator('.op', {hasText: 'gate_up_proj'}).last().click();
    const dialog = page.locator('dialog.explain');
    await dialog.waitFor();
    const command = await dialog.locator('.command').textContent();
    assert.match(command, /^llmperf explain phases\.decode\.ops\.gate_up_proj\.time_s -m qwen-7b --hw rtx4090$/);
    const formula = /formula +(.*)/.exec(shell(command))[1];
    assert.ok((await dialog.textContent()).includes(formula), formula);
    await page.keyboard.press('Escape');
    await dialog.waitFor({state: 'hidden'});
  }));

test('every control is reached by keyboard, named, and shows that it is', () =>
  explore('', {}, async page => {
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll('input, select, button, summary')]
        .filter(one => one.checkVisibility() && !one.labels?.length && !one.textContent.trim() && !one.ariaLabel)
        .map(one => one.outerHTML),
    );
    assert.deepEqual(unnamed, []);
    await page.locator('.combo input').nth(1).focus();
    await page.keyboard.type('h200');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /H200/.test(document.querySelector('h1').textContent));
    await page.locator('.slider input[type=range]').first().focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => document.querySelector('.slider .amount').value === '2');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, 'solid');
    await page.waitForFunction(() => /time to first token/.test(document.querySelector('[aria-live=polite]').textContent));
  }));

test('in Chinese, dark, on a phone and on paper', async () => {
  await explore('model=llama-3.1-8b&hw=h100-sxm&batch=16', {width: 390, height: 844, scheme: 'dark'}, async page => {
    await page.locator('button.language').click();
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    for (const heading of await page.locator('.panel h2').allTextContents()) assert.match(heading, /\p{Script=Han}/u);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${wide} pixels wide`);
    const [page_, text] = await page.evaluate(() => {
      const style = getComputedStyle(document.body);
      return [style.backgroundColor, style.color];
    });
    const sum = colour => colour.match(/\d+/g).slice(0, 3).reduce((all, one) => all + Number(one), 0);
    assert.ok(sum(page_) < 150 && sum(text) > 500, `${page_} ${text}`);
    await page.locator('button.theme').click();
    assert.ok(sum(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)) > 600);
    await shoot(page, 'explorer-390-zh');
  });
  await explore('model=llama-3.1-8b&hw=h100-sxm&batch=16&pin=model%3Dllama-3.1-8b%26hw%3Drtx4090', {width: 1440}, async page => {
    await shoot(page, 'explorer-1440');
    await page.emulateMedia({media: 'print'});
    const pdf = await page.pdf({format: 'A4'}).catch(() => null);
    if (pdf) assert.ok(pdf.length > 10000);
  });
});

test('the program opens it at a request, with what stands in files', () =>
  visit('opened.html', {}, async page => {
    await ready(page);
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    assert.match(await page.locator('h1').textContent(), /mistral-7b-v0\.1.*my-npu/);
    assert.equal(await page.locator('.amount').first().inputValue(), '8');
  }));

test('what the engine refuses is said, and the last answer stays', () =>
  explore('model=qwen-7b&hw=rtx4090&weights=q9', {}, async page => {
    assert.match(await page.locator('.said').first().textContent(), /q9/);
    await page.locator('.combo input').nth(3).fill('int8');
    await page.keyboard.press('Enter');
    await assertSame(page, told(['estimate', '-m', 'qwen-7b', '--hw', 'rtx4090', '--weights', 'int8']));
  }));

test('a report recomputes', () =>
  visit('report.html', {}, async page => {
    await page.locator('#explore').click();
    await ready(page);
    await assertSame(page, told(['estimate', '-m', 'qwen-7b', '--hw', 'rtx4090', '--batch', '4']));
    await page.locator('.slider input[type=range]').first().focus();
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction(() => document.querySelector('.slider .amount').value === '5');
    await page.locator('button[data-act=back]').click();
    assert.ok(await page.locator('.card').first().isVisible());
  }));
