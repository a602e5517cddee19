// The engine behind the page: llmperf's C interface (bindings/c/llmperf.h) in WebAssembly, and the same in a worker.
// Bundled apart, because the worker is made of this script's own text: a page from a file may load no other.
//
// An answer is {status, document, error}: the program's exit status, the document of --json, the error as a document.
import {XzReadableStream} from 'xz-decompress';

class Engine {
  constructor(module) {
    this.module = module;
    this.session = module._llmperf_open();
    this.size = module._malloc(4);
  }

  text(read, result) {
    const {module, size} = this;
    const at = module[read](result, size);
    const bytes = new DataView(module.HEAPU8.buffer).getUint32(size, true);
    return decoder.decode(module.HEAPU8.subarray(at, at + bytes));
  }

  call(name, request) {
    const {module} = this;
    const bytes = encoder.encode(JSON.stringify(request));
    const at = module._malloc(bytes.length + 1);
    module.HEAPU8.set(bytes, at);
    const result = module[`_llmperf_${name}`](this.session, at, bytes.length);
    module._free(at);
    try {
      const status = module._llmperf_status(result);
      const error = status ? this.text('_llmperf_error', result) : '';
      const json = status === 1 || status === 2 ? '' : this.text('_llmperf_json', result);
      return {status, document: json ? JSON.parse(json) : null, error: error ? JSON.parse(error) : null};
    } finally {
      module._llmperf_free(result);
    }
  }

  // A file of the user's, which requests may then name: its beginning, and how long it is.
  write({path, bytes, size}) {
    const {FS} = this.module;
    const folder = path.slice(0, path.lastIndexOf('/'));
    if (!FS.analyzePath(folder).exists) FS.mkdir(folder);
    FS.writeFile(path, bytes);
    FS.lookupPath(path).node.usedBytes = size;
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const open = async wasmBinary => new Engine(await self.llmperfEngine({wasmBinary}));

async function unpacked(base64) {
  const text = atob(base64.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return new Response(new XzReadableStream(new Blob([bytes]).stream())).arrayBuffer();
}

// One in a worker. Of several calls that wait on a line only the last is made: what a slider passed by is of no use.
class Distant {
  constructor(source, binary) {
    this.source = source;
    this.binary = binary;
    this.files = [];
    this.waiting = new Map();
  }

  start() {
    this.url ??= URL.createObjectURL(new Blob([this.source], {type: 'text/javascript'}));
    this.worker = new Worker(this.url);
    this.worker.onmessage = ({data}) => this.answered(data);
    this.worker.onerror = event => this.answered({error: {errors: [{message: event.message}]}, status: 1});
    this.worker.postMessage({binary: this.binary, files: this.files});
  }

  // The answer, or null where a later call took its place.
  call(line, name, request) {
    return new Promise(done => {
      this.waiting.get(line)?.done(null);
      this.waiting.set(line, {line, name, request, done});
      this.next();
    });
  }

  next() {
    if (this.running) {
      // What takes this long, for an answer that nobody waits for, is given up.
      const {line, began} = this.running;
      if (!this.waiting.has(line) || performance.now() - began < kPatience) return;
      this.worker.terminate();
      this.worker = null;
      this.running.done(null);
      this.running = null;
    }
    const [first] = this.waiting.values();
    if (!first) return;
    this.waiting.delete(first.line);
    if (!this.worker) this.start();
    this.running = {...first, began: performance.now()};
    this.worker.postMessage({name: first.name, request: first.request});
  }

  answered(answer) {
    const {done, line} = this.running ?? {};
    this.running = null;
    done?.(this.waiting.has(line) ? null : answer);
    this.next();
  }

  write(file) {
    this.files.push(file);
    this.worker?.postMessage({file});
  }
}

const kPatience = 1000; // ms

// In a worker: the first message brings the engine, each other a call or a file.
function serve() {
  let engine;
  self.onmessage = async ({data: {binary, files, file, name, request}}) => {
    if (binary) {
      engine = open(binary).then(opened => {
        files.forEach(one => opened.write(one));
        return opened;
      });
      return;
    }
    const opened = await engine;
    if (file) opened.write(file);
    else self.postMessage(opened.call(name, request));
  };
}

if (typeof document === 'undefined') serve();
else {
  self.llmperfExplorerEngine = {
    // {engine, worker()}: here, and makers of others beside.
    async open(packed, sources) {
      const binary = await unpacked(packed);
      const distant = [];
      const engine = await open(binary);
      return {
        call: (name, request) => engine.call(name, request),
        worker() {
          distant.push(new Distant(sources, binary));
          return distant.at(-1);
        },
        write(file) {
          for (const one of [engine, ...distant]) one.write(file);
        },
      };
    },
  };
}
