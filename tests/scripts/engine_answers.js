// Answers of the engine of pages: a line of standard input is {"ask": "estimate", "request": text} or {"file": path, "text"},
// a line of standard output [status, document, error]; on standard error what loading and answering took.
// node engine_answers.js FOLDER
const fs = require('fs');
const vm = require('vm');

const folder = process.argv[2];
const lines = fs.readFileSync(0, 'utf8').split('\n').filter(Boolean);
// What a worker is known by.
globalThis.self = globalThis;
globalThis.importScripts = () => {};
globalThis.location = {href: 'file:///worker'};

async function main() {
  const began = performance.now();
  const make = vm.runInThisContext(`${fs.readFileSync(`${folder}/engine.js`, 'utf8')}; llmperfEngine`);
  const module = await make({wasmBinary: fs.readFileSync(`${folder}/engine.wasm`)});
  const session = module._llmperf_open();
  const size = module._malloc(4);
  const loaded = performance.now();

  const text = (read, result) => {
    const at = module[`_llmperf_${read}`](result, size);
    const bytes = new DataView(module.HEAPU8.buffer).getUint32(size, true);
    return new TextDecoder().decode(module.HEAPU8.subarray(at, at + bytes));
  };
  const answers = [];
  for (const line of lines) {
    const {ask, request, file, text: content} = JSON.parse(line);
    if (file) {
      module.FS.writeFile(file, content);
      continue;
    }
    const bytes = new TextEncoder().encode(request);
    const at = module._malloc(bytes.length + 1);
    module.HEAPU8.set(bytes, at);
    const start = performance.now();
    const result = module[`_llmperf_${ask}`](session, at, bytes.length);
    module._free(at);
    answers.push([module._llmperf_status(result), text('json', result), text('error', result)]);
    module._llmperf_free(result);
    if (answers.length === 1) {
      console.error(`loaded in ${(loaded - began).toFixed(0)} ms, the first answer after ${(performance.now() - start).toFixed(0)} ms more`);
    }
  }
  console.error(`${answers.length} answers in ${(performance.now() - loaded).toFixed(0)} ms`);
  fs.writeSync(1, answers.map(answer => JSON.stringify(answer)).join('\n'));
}
main().catch(error => {
  console.error(error);
  process.exit(1);
});
