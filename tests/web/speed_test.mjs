// How soon a page of 5,000 ops can be used: reported and not asserted, as a machine that does other things too says little
// of the page. (Within 2 s where nothing else runs.) Alone on the machine (tests/CMakeLists.txt).
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {close, launch, visit} from './browser.js';

before(launch);
after(close);

const ops = 'table[data-name="ops"]';

test('5,000 ops: the table sorts as soon as the page is open', async () => {
  const attempt = () =>
    visit('large.html', {}, async page =>
      page.evaluate(
        async ([table]) => {
          const rows = () => [...document.querySelector(table).tBodies[0].rows];
          const heads = [...document.querySelector(table).tHead.rows[0].cells];
          const index = heads.findIndex(one => one.dataset.key === 'time_s');
          heads[index].querySelector('button').click();
          await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
          const times = rows().map(row => Number(row.cells[index].dataset.value));
          const all = JSON.parse(document.getElementById('result').textContent)
            .phases[0].ops.map(op => op.time_s)
            .sort((a, b) => b - a);
          return {
            count: all.length,
            shown: times.length,
            ordered: times.every((time, i) => time === all[i]),
            ready: performance.getEntriesByName('report-ready')[0].startTime,
            sorted: performance.now(),
          };
        },
        [ops],
      ),
    );
  const attempts = [await attempt()];
  // Of a machine that may do other things too, the best of some.
  while (attempts.length < 6 && attempts.at(-1).sorted > 2000) attempts.push(await attempt());
  for (const {count, shown, ordered} of attempts) assert.ok(count === 5000 && shown > 100 && ordered);
  const best = Math.min(...attempts.map(one => one.sorted));
  console.log(
    `ready after ${Math.min(...attempts.map(one => one.ready)).toFixed(0)} ms, sorted after ${best.toFixed(0)} ms`,
  );
});
