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
  for (const [key, [english, chinese, ...more]] of Object.entries(words)) {
    assert.ok(english && chinese && more.length === 0, key);
  }
  const root = path.join(process.env.SOURCE, 'reports/web/src');
  const files = (await readdir(root, {recursive: true})).filter(name => name.endsWith('.js'));
  assert.ok(files.length > 10);
  for (const file of files) {
    const text = await readFile(path.join(root, file), 'utf8');
    for (const [, key] of text.matchAll(/\blabel\(\s*'([\w.]+)'/g)) assert.ok(key in words, `${file}: ${key}`);
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
