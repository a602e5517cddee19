// What the explorer offers to choose from, as the engine has it: a page that asked for it when it opens would wait for all
// models to be read. Printed when llmperf is built: node catalog.cjs FOLDER, that of engine.js and engine.wasm.
const fs = require('fs');
const vm = require('vm');

const folder = process.argv[2];
// By what the loader knows a worker, which it is made for.
globalThis.self = globalThis;
globalThis.importScripts = () => {};
globalThis.location = {href: 'file:///worker'};

async function main() {
  const load = vm.runInThisContext(`${fs.readFileSync(`${folder}/engine.js`, 'utf8')}; llmperfEngine`);
  const module = await load({wasmBinary: fs.readFileSync(`${folder}/engine.wasm`)});
  const session = module._llmperf_open();
  const list = kind => {
    const request = Buffer.from(JSON.stringify({kind}));
    const at = module._malloc(request.length + 4);
    module.HEAPU8.set(request, at + 4);
    const result = module._llmperf_catalog(session, at + 4, request.length);
    if (module._llmperf_status(result)) throw new Error(`the engine has no list of ${kind}`);
    const text = module._llmperf_json(result, at);
    const size = new DataView(module.HEAPU8.buffer).getUint32(at, true);
    return JSON.parse(Buffer.from(module.HEAPU8.subarray(text, text + size)).toString());
  };
  const named = ['model', 'hw', 'runtime']; // their names stand in lists of their own
  const catalog = {
    models: list('models').models.filter(one => !/dit/.test(one.architecture)).map(({name, parameters}) => ({name, parameters})),
    hardware: list('hardware').hardware.map(({name, title, vendor, memory_bytes}) => ({name, title, vendor, memory_bytes})),
    runtimes: [...new Set(list('runtimes').runtimes.map(one => one.name))].map(name => ({name})),
    fields: list('fields')
      .fields.filter(one => one.workloads.includes('text') || one.workloads.includes('serving'))
      .map(one => (named.includes(one.key) ? {...one, values: undefined} : one)),
  };
  process.stdout.write(JSON.stringify(catalog).replace(/</g, '\\u003c'));
}
main().catch(error => {
  console.error(error);
  process.exit(1);
});
