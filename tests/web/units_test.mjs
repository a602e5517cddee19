// What needs no browser: numbers as the command line writes them, the Pareto front, a build without esbuild.
import assert from 'node:assert/strict';
import {execFile} from 'node:child_process';
import {createHash} from 'node:crypto';
import {access, mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {test} from 'node:test';
import {pathToFileURL} from 'node:url';
import {promisify} from 'node:util';

const source = name => import(pathToFileURL(path.join(process.env.SOURCE, 'reports/web/src', name)).href);

test('numbers of the explorer are printed as src/base/number.cpp prints them: exact ties to even, prefixes by the rounded number', async () => {
  const number = await source('explorer/number.js');
  const ties = [1234.5, 1235.5, 12.345, 12.375, 0.0625, 10535.45587, 44850.08, 999950, 9999.6, 9.9996, 0.00002, 1.5e-9, 1e16];
  assert.deepEqual(
    ties.map(value => number.significant(value)),
    ['1234', '1236', '12.35', '12.38', '0.0625', '10535', '44850', '999950', '10000', '10', '0.00002', '1.5e-09', '1e+16'],
  );
  assert.equal(number.capacity(16.125 * 2 ** 30), '16.12 GiB');
  assert.equal(number.capacity(1023.99 * 2 ** 20), '1 GiB');
  assert.equal(number.bandwidth(1008e9), '1008 GB/s');
  assert.equal(number.bytes(9999.6), '10 KB');
  assert.equal(number.seconds(999.96e-6), '1 ms');
  assert.equal(number.seconds(123.4), '123.4 s');
  assert.equal(number.count(7721324544), '7,721,324,544');
  assert.equal(number.count(2.5), '2');
  assert.equal(number.share(0.1225), '12.2 %');
  assert.equal(number.share(0.00049), '0.0 %');
  assert.equal(number.significant(0.0238448, 3), '0.0238');
  assert.equal(number.significant(NaN), 'n/a');
});

test('the state of the explorer goes through an address and through a shell unharmed', async () => {
  const {commandOf, fromFragment, requestFor, toFragment} = await source('explorer/state.js');
  const request = {model: {model_type: 'llama', n: 1}, hw: '2xrtx3090+rtx3060', options: "a,no_b; rm 'x'", cpu_moe: true, batch: 16};
  const {request: back, extra} = fromFragment(`#${toFragment(request, {pin: [toFragment({hw: 'a&b'})], lang: 'zh'})}`);
  assert.deepEqual(back, {...request, batch: '16'});
  assert.deepEqual(fromFragment(extra.pin[0]).request, {hw: 'a&b'});
  assert.deepEqual(extra.lang, ['zh']);
  assert.equal(fromFragment('#'), null);
  const field = (key, type, workloads) => ({key, flag: `--${key.replaceAll('_', '-')}`, type, workloads});
  const both = ['text', 'serving'];
  const fields = [field('model', 'text', both), field('hw', 'text', both), field('batch', 'count', ['text']), field('options', 'text', both), field('cpu_moe', 'switch', ['text']), field('prompt', 'count', ['text']), field('input', 'text', ['serving'])];
  assert.equal(
    commandOf('estimate', request, fields, {model: 'my config.json'}),
    `llmperf estimate -m 'my config.json' --hw 2xrtx3090+rtx3060 --batch 16 --options 'a,no_b; rm '\\''x'\\''' --cpu-moe`,
  );
  assert.deepEqual(requestFor('serving', {...back, prompt: '2k'}, fields), {model: request.model, hw: request.hw, options: request.options, input: '2k'});
  assert.deepEqual(requestFor('text', {batch: '16', prompt: '2k'}, fields), {batch: 16, prompt: '2k'});
});

test('numbers have at most four significant digits and the prefix that keeps them in 1 to 1000', async () => {
  const format = await source('format.js');
  assert.equal(format.seconds(0.015321), '15.32 ms');
  assert.equal(format.seconds(0), '0 s');
  assert.equal(format.seconds(2.5e-6), '2.5 us');
  assert.equal(format.flopsRate(165.2e12), '165.2 TFLOP/s');
  assert.equal(format.bytes(15.442649e9), '15.44 GB');
  assert.equal(format.capacity(24 * 2 ** 30), '24 GiB');
  assert.equal(format.seconds(0.9999996), '1 s');
  assert.equal(format.number(999999), '1 M');
  assert.equal(format.share(0.9342), '93.4 %');
  assert.equal(format.seconds(null), '–');
  assert.equal(format.byKey('ttft_s', 0.5), '500 ms');
  assert.equal(format.byKey('kv_cache_bytes', 2 ** 30), '1 GiB');
  assert.equal(format.byKey('tp', 8), '8');
  assert.equal(format.byKey('error', null), '–');
  assert.deepEqual(format.extent(Array.from({length: 1e6}, (unused, i) => i)), [0, 999999]);
});

test('a point is on the Pareto front when no other is at least as good on both axes', async () => {
  const {frontOf} = await source('front.js');
  const points = [
    [1, 10],
    [2, 30],
    [2, 20],
    [3, 25],
    [4, 40],
    [5, 40],
  ].map(at => ({at}));
  const front = frontOf(points, ['lower', 'higher']).map(point => point.at);
  assert.deepEqual(front, [
    [1, 10],
    [2, 30],
    [4, 40],
  ]);
  assert.deepEqual(
    frontOf(points, ['lower', 'lower']).map(point => point.at),
    [[1, 10]],
  );
  assert.deepEqual(
    frontOf(points, ['higher', 'higher']).map(point => point.at),
    [[5, 40]],
  );
});

test('the roofline of every built-in device has its memory roof, from edge to ceiling', async () => {
  const {inSight, ranges, slopeEnds} = await source('roofs.js');
  const devices = JSON.parse(await readFile(path.join(process.env.PAGES, 'devices.json'), 'utf8'));
  assert.ok(devices.length > 20);
  for (const {inputs, phases, roofs} of devices) {
    for (const {name, ops} of phases) {
      const dots = ops
        .filter(op => op.flops > 0 && op.bytes > 0 && op.time_s > 0 && op.place === 'device')
        .map(op => ({op, intensity: op.flops / op.bytes, rate: op.flops / op.time_s}))
        .sort((a, b) => b.op.time_s - a.op.time_s);
      const total = dots.reduce((sum, {op}) => sum + op.time_s, 0);
      const tops = roofs.compute.map(({flops_per_s: rate}) => ({rate}));
      const area = ranges(inSight(dots, total), roofs.memory, tops);
      for (const roof of roofs.memory) {
        for (const [x, y] of slopeEnds(roof, area)) {
          const where = `${inputs.hardware.name} ${name} ${roof.name} ${x} ${y}`;
          assert.ok(area.x[0] <= x && x <= area.x[1] && area.y[0] <= y && y <= area.y[1], where);
          assert.ok(Math.abs(y / x / roof.bytes_per_s - 1) < 1e-12, where);
        }
      }
    }
  }
});

test('the timeline of a step ends when its phase does, and layers follow one another', async () => {
  const {laidOut} = await source('steps.js');
  for (const {phases} of JSON.parse(await readFile(path.join(process.env.PAGES, 'devices.json'), 'utf8'))) {
    for (const phase of phases) {
      const {spans, end, layers} = laidOut(phase);
      assert.ok(Math.abs(end / phase.time_s - 1) < 1e-9, `${end} for ${phase.time_s}`);
      assert.equal(layers, 16); // of Llama 3.2 1B
      assert.ok(spans.every(({from, to}, i) => to >= from && (i === 0 || from >= spans[i - 1].from)));
    }
  }
  const op = (name, count, time_s, more = {}) => ({name, count, time_s, ...more});
  const {spans, end} = laidOut({
    ops: [op('a', 1, 1), op('b', 2, 4), op('c', 2, 2, {place: 'network', hidden_s: 1}), op('b', 3, 3)],
  });
  assert.deepEqual(
    spans.map(({op: {name}, from, to, layer}) => [name, from, to, layer]),
    [
      ['a', 0, 1, -1],
      ['b', 1, 3, 0],
      ['c', 2.5, 3.5, 0], // half a second of it beside b
      ['b', 3.5, 5.5, 1],
      ['c', 5, 6, 1],
      ['b', 6, 7, 2],
      ['b', 7, 8, 3],
      ['b', 8, 9, 4],
    ],
  );
  assert.equal(end, 9);
});

test('every word that the script asks for by name stands in words.js, in English and Chinese', async () => {
  const {words} = await source('words.js');
  const {words: explorer} = await source('explorer/words.js');
  for (const [key, [english, chinese, ...more]] of [...Object.entries(words), ...Object.entries(explorer)]) {
    assert.ok(english && chinese && more.length === 0, key);
  }
  const root = path.join(process.env.SOURCE, 'reports/web/src');
  const files = (await readdir(root, {recursive: true})).filter(name => name.endsWith('.js'));
  assert.ok(files.length > 10);
  for (const file of files) {
    const text = await readFile(path.join(root, file), 'utf8');
    for (const [, key] of text.matchAll(/\blabel\(\s*'([\w.]+)'/g)) assert.ok(key in words, `${file}: ${key}`);
    for (const [, key] of text.matchAll(/\bsay\(\s*'([\w.]+)'/g))
      assert.ok(key in words || key in explorer, `${file}: ${key}`);
  }
});

test('a build whose npm left out the program of esbuild has no charts, and tries again', async () => {
  const root = path.join(process.env.SOURCE, 'reports/web');
  const folder = await mkdtemp(path.join(tmpdir(), 'llmperf-web-'));
  try {
    const at = name => path.join(folder, name);
    const lock = createHash('sha256').update(await readFile(path.join(root, 'package-lock.json')));
    await writeFile(at('installed'), `${lock.digest('hex')} tests=OFF`);
    const values = {ROOT: root, FOLDER: folder, OUTPUT: at('assets.cpp'), NPM: 'npm', CHARTS: 'ON', TESTS: 'OFF'};
    const script = path.join(process.env.SOURCE, 'cmake/embed_web.cmake');
    const defined = Object.entries(values).map(([key, value]) => `-D${key}=${value}`);
    await promisify(execFile)('cmake', [...defined, '-P', script]);
    assert.match(await readFile(at('assets.cpp'), 'utf8'), /npm could not fetch esbuild/);
    await access(at('failed'));
    await assert.rejects(access(at('installed')));
  } finally {
    await rm(folder, {recursive: true});
  }
});
