// Files of the reader's: what they are, and as what a request takes them.
import {parse as parseYaml} from 'yaml';

const kHeader = 32 << 20; // bytes of a GGUF file that are read: its header is smaller
const kFolder = '/files/';
const kMagic = 'GGUF';

const isObject = value => value !== null && typeof value === 'object' && !Array.isArray(value);

// A path that names the file as the reader's does.
const pathOf = name => kFolder + name.replace(/[^A-Za-z0-9._-]/g, '_');

// What an object describes: {key: 'model' | 'hw', value} of a request, or a whole request.
function sorted(value) {
  if (!isObject(value)) return null;
  if (typeof value.schema === 'string' && isObject(value.request)) return {request: value.request};
  if (value.model_type !== undefined || value.architectures !== undefined) return {key: 'model', value};
  if (value.peaks !== undefined || value.memory !== undefined || value.tiles !== undefined) return {key: 'hw', value};
  if (value.hidden_size !== undefined || value.num_layers !== undefined || value.attention !== undefined)
    return {key: 'model', value};
  if (value.hw !== undefined && value.model !== undefined && typeof value.model !== 'number') return {request: value};
  return null;
}

// {key, value} or {request}; nothing for what is neither. `write({path, bytes, size})`: where the engine reads files.
export async function readFile(file, write) {
  const start = await file.slice(0, 4).text();
  if (start === kMagic) {
    const path = pathOf(file.name);
    write({path, bytes: new Uint8Array(await file.slice(0, kHeader).arrayBuffer()), size: file.size});
    return {key: 'model', value: path};
  }
  const text = await file.text();
  return sorted(/\.ya?ml$/i.test(file.name) || !/^\s*\{/.test(text) ? parseYaml(text) : JSON.parse(text));
}

export const isGone = value => typeof value === 'string' && value.startsWith(kFolder);
