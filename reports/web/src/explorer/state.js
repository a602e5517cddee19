// What the page shows: a request (the object that the engine takes), pinned requests, and how they are looked at. It lives
// in the URL's fragment, which reads like a query: #model=llama-3.1-8b&hw=h100-sxm&batch=16&pin=…
//
// A field of a request is a text, a number or true; `model` and `hw` may be objects: the content of a file. `names` says
// what such a file is called.
const kView = ['lang', 'by', 'cards', 'pin', 'names'];
export const kStart = {model: 'llama-3.1-8b', hw: 'rtx4090'};

export function toFragment(request, extra = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(request)) {
    if (value === undefined || value === '') continue;
    query.append(key, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  for (const [key, value] of Object.entries(extra)) for (const one of [value].flat()) if (one) query.append(key, one);
  // Readable: these need no escape in a fragment.
  return query.toString().replace(/%(3A|2F|2C|40|7E)/g, decodeURIComponent);
}

const parsed = text => {
  if (text.startsWith('{')) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text === 'true' ? true : text;
};

// A request as the program writes it, where descriptions stand as text.
export const unfolded = request =>
  Object.fromEntries(
    Object.entries(request).map(([key, value]) => [key, typeof value === 'string' ? parsed(value) : value]),
  );

// {request, extra: {lang: […], pin: […]}}; nothing for an empty fragment.
export function fromFragment(text) {
  const query = new URLSearchParams(text.replace(/^#/, ''));
  const [request, extra] = [{}, {}];
  for (const [key, value] of query) {
    if (kView.includes(key)) (extra[key] ??= []).push(value);
    else if (/^[a-z][a-z0-9_]*$/.test(key) && value) request[key] = parsed(value);
  }
  return Object.keys(request).length || Object.keys(extra).length ? {request, extra} : null;
}

// "128k", 131072 or "131072" as a number; of tokens a k is 1024, of all else 1000.
export function amount(text, kilo = 1024) {
  const [, digits, suffix] = /^\s*(\d+(?:\.\d+)?)\s*([kM]?)\s*$/.exec(String(text ?? '')) ?? [];
  if (digits === undefined) return NaN;
  return Number(digits) * (suffix === 'k' ? kilo : suffix === 'M' ? kilo * kilo : 1);
}

// As a shell reads it (src/cli/command_line.cpp).
export const shellWord = word =>
  word && /^[A-Za-z0-9%+,\-./:=@_]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

// The command line of a request: flags in the order of the catalogue. `names`: of what came from files.
export function commandOf(command, request, fields, names = {}) {
  const words = ['llmperf', command];
  for (const {key, flag, type} of fields) {
    const value = request[key];
    if (value === undefined || value === '' || value === false) continue;
    words.push(key === 'model' ? '-m' : flag);
    if (type === 'switch') continue;
    words.push(shellWord(typeof value === 'object' ? (names[key] ?? `${key}.json`) : textOf(value, type)));
  }
  return words.join(' ');
}

// An amount of memory needs its unit on a command line.
const textOf = (value, type) => (type === 'bytes' && /^\d+$/.test(String(value)) ? `${value}B` : String(value));

const kServed = {prompt: 'input', gen: 'output'};
// What of a request an estimate takes, or a simulation of traffic: of the latter prompts and answers have other names.
export function requestFor(workload, request, fields) {
  const asked = {};
  for (const {key, type, workloads} of fields) {
    const from = workload === 'serving' ? Object.keys(kServed).find(name => kServed[name] === key) ?? key : key;
    const value = request[from];
    if (value === undefined || value === '' || !workloads.includes(workload)) continue;
    asked[key] = kServed[from] === key ? String(value) : typed(value, type);
  }
  return asked;
}

const typed = (value, type) => {
  if (type === 'switch') return value === true || value === 'true';
  const plain = typeof value === 'string' && /^-?\d+(\.\d+)?(e-?\d+)?$/.test(value);
  return ['count', 'number', 'bytes'].includes(type) && plain ? Number(value) : value;
};

// The name of a model or a device: what it says of itself where it came from a file.
export function nameOf(value, names, key) {
  if (typeof value !== 'object' || !value) return String(value ?? '').replace(/^.*\//, '');
  return value.name ?? value._name_or_path ?? names?.[key] ?? key;
}
