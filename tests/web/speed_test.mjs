// How soon a page of 5,000 ops can be used: reported and not asserted, as a machine that does other things too says little
// of the page. (Within 2 s where nothing else runs.) Alone on the machine (tests/CMakeLists.txt).
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {close, launch, visit} from './browser.mjs';

before(launch);
after(close);

const ops = 'table[data-name="ops"]';

test('5,000 ops: the table sorts as soon as the page is open', () =>
  visit('large.html', {}, async page => {
    const {all, times, ready, sorted} = await page.evaluate(
      async ([table]) => {
        const rows = () => [...document.querySelector(table).tBodies[0].rows];
        const heads = [...document.querySelector(table).tHead.rows[0].cells];
        const index = heads.findIndex(one => one.dataset.key === 'time_s');
        heads[index].querySelector('button').click();
        await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
        return {
          times: rows().map(row => Number(row.cells[index].dataset.value)),
          all: JSON.parse(document.getElementById('result').textContent)
            .phases[0].ops.map(op => op.time_s)
            .sort((a, b) => b - a),
          ready: performance.getEntriesByName('report-ready')[0].startTime,
          sorted: performance.now(),
        };
      },
      [ops],
    );
    assert.ok(all.length === 5000 && times.length > 100);
    assert.deepEqual(times, all.slice(0, times.length));
    console.log(`ready after ${ready.toFixed(0)} ms, sorted after ${sorted.toFixed(0)} ms`);
  }));
