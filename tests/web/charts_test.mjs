// Charts are drawn, in both themes and languages, and show what the numbers say.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {chart, close, colour, launch, pixels, settled, shoot, variant, visit} from './browser.mjs';

before(launch);
after(close);

const kPages = {
  'estimate.html': [
    ['roofline', 'prefill'],
    ['roofline', 'decode'],
    ['timeline', 'prefill'],
    ['timeline', 'decode'],
    ['time-by-op'],
    ['time-by-bound'],
    ['memory'],
    ['context'],
  ],
  'video.html': [['roofline', 'denoising step'], ['time-by-op'], ['time-by-bound'], ['memory']],
  'training.html': [['roofline', 'forward'], ['time-by-bound'], ['memory']],
  'validate.html': [['validation']],
  'sweep.html': [['sweep-heatmap'], ['sweep-pareto']],
  'pareto.html': [['sweep-pareto']],
  'compare.html': [['compare', 'decode']],
  'devices.html': [['bars']],
  'map.html': [['schedule'], ['bars']],
  'parallel.html': [['bars']],
  'graph.html': [['time-by-op'], ['roofline']],
  'calibrate.html': [['bars']],
  'study.html': [['table']],
  'serve.html': [['serving-timeline'], ['percentiles'], ['causes']],
  'capacity.html': [['capacity-front']],
};

// Opening a page is most of what a test of it costs: each is opened once, and then shown in another size and the other theme.
async function firstChartIsInSight(page, name) {
  for (const width of [1440, 390]) {
    await page.setViewportSize({width, height: 900});
    await settled(page);
    const tops = await page
      .locator('figure.chart:visible .canvas')
      .evaluateAll(found => found.map(one => one.getBoundingClientRect().top));
    assert.ok(tops.length && Math.min(...tops) < 900 - 120, `${name}, ${width} pixels wide: ${tops}`);
    if (name === 'estimate.html') assert.ok(await page.locator('.card').first().isVisible());
    await shoot(page, `${name.replace('.html', '')}-${width}-first`);
  }
  await page.setViewportSize({width: 1280, height: 900});
}

for (const [name, charts] of Object.entries(kPages)) {
  test(`${name}: the first chart is on the first screen, and all have their own colours on the page's background`, () =>
    visit(name, {}, async page => {
      if (name !== 'study.html') await firstChartIsInSight(page, name);
      for (const scheme of ['light', 'dark']) {
        await page.emulateMedia({colorScheme: scheme});
        await settled(page);
        const surface = await colour(page, 'surface');
        for (const [what, phase] of charts) {
          const chosen = `${scheme}: ${what} ${phase ?? ''}`;
          const figure = await chart(page, what, phase);
          assert.ok(await figure.isVisible(), `${chosen} is visible`);
          const {colours, width, height} = await pixels(page, figure.locator('.canvas canvas').first());
          const [background, most] = colours[0];
          const drawn = width * height - most;
          if (what !== 'sweep-heatmap') assert.equal(background, surface, `${chosen}: background`);
          assert.ok(drawn > 0.01 * width * height, `${chosen}: ${drawn} pixels of ${width}x${height} drawn`);
          assert.ok(colours.length > 20, `${chosen}: ${colours.length} colours`);
        }
        await shoot(page, `${name.replace('.html', '')}-${scheme}`);
      }
    }));
}

for (const name of ['h100.html', 'estimate-zh.html']) {
  test(`${name}: the first chart is on the first screen`, () =>
    visit(name, {}, page => firstChartIsInSight(page, name)));
}

test('the bar of the weights is as long, against the capacity, as the weights are large', () =>
  visit('estimate.html', {}, async page => {
    const {weight_bytes: weights, capacity_bytes: capacity} = await page.evaluate(
      () => JSON.parse(document.getElementById('result').textContent).memory,
    );
    const figure = await chart(page, 'memory');
    const fill = await colour(page, 'series-1');
    const {line} = await pixels(page, figure.locator('.canvas canvas').first(), fill);
    const start = line.indexOf(fill);
    const green = one => parseInt(one.slice(3, 5), 16);
    const stop = line.lastIndexOf(fill) + 1;
    const rest = line.slice(stop).map(green);
    const end = stop + rest.lastIndexOf(Math.min(...rest)); // the capacity's stroke, the darkest after the bar's parts
    const drawn = (stop - start) / (end - start);
    assert.ok(Math.abs(drawn - weights / capacity) < 0.01, `${drawn} for ${weights / capacity}`);
  }));

test('time by bound shows the shares that the ops add up to', () =>
  visit('estimate.html', {}, async page => {
    await chart(page, 'time-by-bound');
    const {texts, share} = await page.evaluate(() => {
      const {ops} = JSON.parse(document.getElementById('result').textContent).phases.find(
        phase => phase.name === 'prefill',
      );
      const sum = list => list.reduce((total, op) => total + op.time_s, 0);
      return {texts: window.drawnTexts, share: sum(ops.filter(op => op.bound === 'matrix')) / sum(ops)};
    });
    assert.ok(share > 0.5, 'a prefill of thousands of tokens is bound by its products');
    assert.ok(texts.includes(`${(share * 100).toFixed(1)} %`), `${share} in ${texts}`);
  }));

test('the roofline names its roofs with their rates', () =>
  visit('estimate.html', {}, async page => {
    await chart(page, 'roofline', 'prefill');
    const texts = (await page.evaluate(() => window.drawnTexts)).join('\n');
    assert.match(texts, /1\.008 TB\/s/); // the datasheet's bandwidth of an RTX 4090
    assert.match(texts, /176\.8 TFLOP\/s/); // and its dense bf16 peak, 165.2 at the clock it was seen to run at
  }));

const noteOf = async (page, ...which) => (await chart(page, ...which)).locator('.chart-note').textContent();

test('ops that overlap add up to more than their step, and the charts of time say by how much', async () => {
  await variant('overlap.html', 'estimate.html', ({phases: [prefill]}) => {
    const sum = prefill.ops.reduce((total, op) => total + op.time_s, 0);
    prefill.ops[0].time_s += 3 - sum;
    Object.assign(prefill, {overlapped_s: 0.5, pipelined_s: 1, time_s: 1.5});
  });
  await visit('overlap.html', {}, async page => {
    for (const name of ['time-by-op', 'time-by-bound']) {
      assert.equal(
        await noteOf(page, name, 'prefill'),
        'prefill: sum of ops 3 s − overlapped 500 ms − pipelined 1 s = step 1.5 s.',
      );
      assert.equal(await (await chart(page, name, 'decode')).locator('.chart-note').count(), 0);
    }
    assert.ok((await page.evaluate(() => window.drawnTexts)).includes('ops 3 s'));
  });
});

test('the roofline draws the ops of the device that matter, and says which it leaves out', async () => {
  const plain = await visit('estimate.html', {}, page => noteOf(page, 'roofline', 'prefill'));
  assert.doesNotMatch(plain, /outside the device|small ops/);
  await variant('roofs.html', 'estimate.html', ({phases: [prefill], roofs}) => {
    const [cached, host, small] = prefill.ops.filter(op => op.flops > 0 && op.place === 'device');
    Object.assign(cached, {bytes: cached.flops, time_s: cached.flops / 1e13}); // the memory's roof is at 1e12
    Object.assign(host, {place: 'host', time_s: 1e-3});
    Object.assign(small, {flops: 1, bytes: 1, time_s: 1e-6});
    const {flops_per_s: rate} = roofs.compute.find(one => one.dtype === 'bf16');
    roofs.compute.push({dtype: 'close', unit: 'matrix', flops_per_s: rate * 1.05});
  });
  await visit('roofs.html', {}, async page => {
    const note = await noteOf(page, 'roofline', 'prefill');
    assert.match(note, /above the memory roof are served partly from a cache/);
    assert.match(note, /1 ops outside the device .* are not drawn: 1 ms of /);
    assert.match(note, /1 small ops are not drawn: 1 us of /);
    const texts = await page.evaluate(() => window.drawnTexts);
    assert.ok(texts.some(text => /bf16 matrix.* 176\.8 TFLOP/.test(text)));
    assert.ok(!texts.some(text => text.includes('close')), 'an unused roof leaves the label of a used one alone');
    assert.ok(!texts.includes('1 M'), 'a small op does not stretch the axis');
    await shoot(page, 'roofs-light');
  });
});

test('contexts beyond the longest that fits are shaded, and a cache spread over devices says so', async () => {
  await variant('reach.html', 'estimate.html', result => {
    const point = (tokens, fits) => ({context_tokens: tokens, kv_cache_bytes: tokens * 2e6, decode_step_s: 0.01, fits});
    result.context_curve = [point(512, true), point(1024, true), point(1500, true), point(4096, false)];
    result.longest_context_tokens = 1500;
    result.inputs.plan.devices = 2;
  });
  await visit('reach.html', {}, async page => {
    const figure = await chart(page, 'context');
    const {width, height, colours} = await pixels(page, figure.locator('.canvas canvas').first());
    const channels = name => [1, 3, 5].map(at => parseInt(name.slice(at, at + 2), 16));
    const [bad, surface] = [channels(await colour(page, 'bad')), channels(await colour(page, 'surface'))];
    const shade = bad.map((value, i) => surface[i] + 0.08 * (value - surface[i]));
    const shaded = colours.filter(([name]) => channels(name).every((value, i) => Math.abs(value - shade[i]) < 2));
    const area = shaded.reduce((sum, [, count]) => sum + count, 0) / (width * height);
    assert.ok(area > 0.08, `${area} of the chart is shaded`); // half of the axis, less what lies under the curve
    assert.ok((await page.evaluate(() => window.drawnTexts)).includes('KV cache per device'));
  });
});

test('a memory that is too small says by how much', async () => {
  await variant('over.html', 'estimate.html', ({memory}) => {
    memory.weight_bytes += 30 * 2 ** 30 - memory.total_bytes;
    memory.total_bytes = 30 * 2 ** 30;
  });
  await visit('over.html', {}, async page => {
    await chart(page, 'memory');
    assert.ok((await page.evaluate(() => window.drawnTexts)).includes('capacity 23.52 GiB, over by 6.48 GiB'));
  });
});

test('a malformed part of a result costs its own charts, not the others', async () => {
  await variant('malformed.html', 'estimate.html', result => {
    result.roofs = {memory: 5};
    result.context_curve = [{context_tokens: 1}, null];
  });
  await visit('malformed.html', {expected: /^warning: no chart (roofline|context) /}, async page => {
    const visible = name => page.locator(`figure[data-chart="${name}"]:visible`).count();
    for (const name of ['memory', 'time-by-op', 'time-by-bound']) {
      await chart(page, name);
      assert.ok(await visible(name), name);
    }
    for (const name of ['roofline', 'context']) assert.equal(await visible(name), 0, name);
  });
});

test('a Chinese report is Chinese in its headings and in its charts', () =>
  visit('estimate-zh.html', {}, async page => {
    assert.equal(await page.getAttribute('html', 'lang'), 'zh-CN');
    const headings = await page.locator('h2').allTextContents();
    for (const heading of headings) assert.match(heading, /\p{Script=Han}/u);
    for (const name of ['memory', 'time-by-bound', 'context']) await chart(page, name);
    const texts = await page.evaluate(() => window.drawnTexts);
    for (const word of ['矩阵计算', '访存', '权重', 'KV 缓存', '预填充', '解码']) {
      assert.ok(
        texts.some(text => text.includes(word)),
        `${word} in ${texts}`,
      );
    }
    for (const word of ['matrix', 'memory', 'weights', 'prefill']) assert.ok(!texts.includes(word), word);
    await shoot(page, 'estimate-zh-light');
  }));

test('the theme follows the system, and the button overrules it: page and charts', () =>
  visit('estimate.html', {scheme: 'dark'}, async page => {
    const look = async () => {
      const {colours} = await pixels(page, (await chart(page, 'memory')).locator('.canvas canvas').first());
      return [await page.evaluate(() => getComputedStyle(document.body).backgroundColor), colours[0][0]];
    };
    const dark = await look();
    await page.emulateMedia({colorScheme: 'light'});
    const light = await look();
    assert.notEqual(light[0], dark[0]);
    assert.notEqual(light[1], dark[1]);
    await page.locator('.page-head .theme').click();
    await settled(page);
    assert.deepEqual(await look(), dark);
  }));

test('a chart is as wide as the window lets it be', () =>
  visit('estimate.html', {width: 1200}, async page => {
    const width = async () => (await (await chart(page, 'memory')).locator('canvas').first().boundingBox()).width;
    const wide = await width();
    await page.setViewportSize({width: 360, height: 900});
    await page.waitForFunction(
      old => document.querySelector('[data-chart="memory"] canvas').clientWidth < old * 0.75,
      wide,
    );
  }));

test('the map of a sweep shows the best and the median of the points behind a cell', () =>
  visit('points.html', {}, async page => {
    const drawn = async () => {
      await settled(page);
      return page.evaluate(() => window.drawnTexts.splice(0));
    };
    const figure = await chart(page, 'sweep-heatmap');
    const selects = figure.locator('.controls select');
    assert.equal(await selects.count(), 4);
    await drawn();
    await selects.nth(2).selectOption('ttft_s');
    const best = await drawn();
    await selects.nth(3).selectOption('median');
    const median = await drawn();
    // web_report_test.py: TTFT is batch * tp seconds over three degrees 1, 2, 4, plus a second on the second device.
    assert.ok(best.includes('16 s'), `${best}`); // batch 16 on tp 1, first device
    assert.ok(median.includes('16.5 s'), `${median}`); // of 16 and 17
  }));

test('a sweep shows first what tells its points apart, and what its user asked for: time and rate', () =>
  visit('sweep.html', {}, async page => {
    const chosen = async (name, at) => (await chart(page, name)).locator('.controls select').nth(at).inputValue();
    assert.equal(await chosen('sweep-heatmap', 2), 'ttft_s');
    assert.deepEqual(
      [await chosen('sweep-pareto', 0), await chosen('sweep-pareto', 1)],
      ['ttft_s', 'tokens_per_second'],
    );
    // One kind of plan: the number of devices, the same in all rows, is not worth a map.
    assert.equal(await page.locator('option[value="devices"]').count(), 0);
  }));

test('on paper a report is light, has all its charts and no buttons', () =>
  visit('estimate.html', {scheme: 'dark'}, async page => {
    await page.emulateMedia({media: 'print', colorScheme: 'dark'});
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    const shown = await page.evaluate(() => ({
      undrawn: [...document.querySelectorAll('figure.chart:not([hidden])')].filter(
        figure => !figure.querySelector('canvas'),
      ).length,
      background: getComputedStyle(document.body).backgroundColor,
      buttons: [...document.querySelectorAll('.theme, .table-tools, .controls')].filter(one => one.offsetHeight > 0)
        .length,
    }));
    assert.deepEqual(shown, {undrawn: 0, background: 'rgb(255, 255, 255)', buttons: 0});
    assert.equal((await pixels(page, page.locator('[data-chart="memory"] canvas').first())).colours[0][0], '#ffffff');
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    await page.emulateMedia({media: 'screen', colorScheme: 'dark'});
    assert.equal(
      (await pixels(page, page.locator('[data-chart="memory"] canvas').first())).colours[0][0],
      await colour(page, 'surface'),
    );
    assert.ok((await page.pdf({format: 'A4'})).length > 10000);
  }));

test('the roof of a memory is drawn where its line begins on the edge', () =>
  visit('h100.html', {}, async page => {
    await chart(page, 'roofline', 'prefill');
    assert.match((await page.evaluate(() => window.drawnTexts)).join('\n'), /HBM3 3\.35 TB\/s/);
  }));

test('a front that was asked for is shown on its axes, with the points that it beats', () =>
  visit('pareto.html', {}, async page => {
    const {pareto, rows} = await page.evaluate(() =>
      JSON.parse(document.getElementById('result').textContent),
    );
    const beats = ([time, rate]) => rows.some(row => row.tpot_s <= time && row.tokens_per_second >= rate);
    assert.ok(pareto.beaten.length + rows.length === 44 && pareto.beaten.every(beats));
    const figure = await chart(page, 'sweep-pareto');
    assert.equal(await figure.locator('.controls select').count(), 1); // the colour
    const texts = await page.evaluate(() => window.drawnTexts);
    for (const text of ['TPOT (lower is better)', 'tokens/s (higher is better)', 'beaten']) {
      assert.ok(texts.includes(text), `${text} in ${texts}`);
    }
    assert.equal(await page.locator('figure[data-chart="sweep-pareto"]').count(), 1);
  }));

test('no drawing is white in the dark, with scripts and without', async () => {
  await visit('map.html', {scheme: 'dark', javaScript: false}, async page => {
    const drawing = page.locator('img.drawing');
    await drawing.scrollIntoViewIfNeeded();
    const {colours} = await pixels(page, drawing).catch(() => ({colours: []}));
    assert.ok((await drawing.boundingBox()).width > 300);
    assert.notEqual(await drawing.evaluate(one => getComputedStyle(one).filter), 'none');
    assert.ok(colours.length === 0 || colours[0][0] !== '#ffffff', `${colours[0]}`);
  });
  await visit('map.html', {scheme: 'dark'}, async page => {
    const figure = await chart(page, 'schedule');
    const {colours} = await pixels(page, figure);
    assert.equal(colours[0][0], await colour(page, 'surface'));
    assert.equal(await page.locator('img:visible').count(), 0);
  });
});

test('rows of a sweep are one line high, its results are in sight, what never changes is above them', () =>
  visit('sweep.html', {width: 1440}, async page => {
    const {heights, keys, right} = await page.locator('table[data-name="rows"]').evaluate(table => ({
      heights: [...table.tBodies[0].rows].map(row => row.offsetHeight),
      keys: [...table.tHead.rows[0].cells].map(head => head.dataset.key),
      right: table.querySelector('[data-key="tokens_per_second"]').getBoundingClientRect().right,
    }));
    assert.ok(Math.max(...heights) < 40, `${heights}`);
    assert.deepEqual(keys.slice(0, 6), ['model', 'hardware', 'weights', 'batch', 'fits', 'ttft_s']);
    assert.ok(right < 1440, `${right}`);
    assert.ok(!keys.includes('prompt_tokens') && !keys.includes('devices'));
    assert.match(await page.locator('details.same').textContent(), /prompt 512/);
  }));
