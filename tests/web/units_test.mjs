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
