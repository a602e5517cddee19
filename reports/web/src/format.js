// Numbers for people: at most four significant digits, prefixes as the command line writes them.
const significant = (value, digits) => String(Number(value.toPrecision(digits)));

function prefixed(value, unit, prefixes, base, digits) {
  if (!Number.isFinite(value)) return '–';
  let step = 0;
  let scaled = value;
  while (Math.abs(Number(scaled.toPrecision(digits))) >= base && step + 1 < prefixes.length) {
    scaled /= base;
    ++step;
  }
  const text = significant(scaled, digits);
  return unit || prefixes[step] ? `${text} ${prefixes[step]}${unit}` : text;
}

const kSi = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
const kBinary = ['', 'Ki', 'Mi', 'Gi', 'Ti'];
export const kGiB = 2 ** 30;

export const flops = (value, digits = 4) => prefixed(value, 'FLOP', kSi, 1000, digits);
export const flopsRate = (value, digits = 4) => prefixed(value, 'FLOP/s', kSi, 1000, digits);
export const bytes = (value, digits = 4) => prefixed(value, 'B', kSi, 1000, digits);
export const bandwidth = (value, digits = 4) => prefixed(value, 'B/s', kSi, 1000, digits);
export const capacity = (value, digits = 4) => prefixed(value, 'B', kBinary, 1024, digits);
export const number = (value, digits = 4) => prefixed(value, '', kSi, 1000, digits);
export const share = value => (Number.isFinite(value) ? `${(value * 100).toFixed(1)} %` : '–');
export const signedShare = value => (Number.isFinite(value) ? `${value > 0 ? '+' : ''}${share(value)}` : '–');

export function seconds(value, digits = 4) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(Number(value.toPrecision(digits))); // 0.9999996 s is not 1000 ms
  if (size >= 1 || size === 0) return `${significant(value, digits)} s`;
  if (size >= 1e-3) return `${significant(value * 1e3, digits)} ms`;
  if (size >= 1e-6) return `${significant(value * 1e6, digits)} us`;
  return `${significant(value * 1e9, digits)} ns`;
}
export const signedSeconds = value => (value > 0 ? '+' : '') + seconds(value);

// By the unit that a key ends in: ttft_s, kv_cache_bytes, flops_per_s, mape.
export function byKey(key, value, digits = 4) {
  if (typeof value !== 'number') return value === null || value === undefined ? '–' : String(value);
  if (/flops_per_s$/.test(key)) return flopsRate(value, digits);
  if (/bytes_per_s$/.test(key)) return bandwidth(value, digits);
  if (/_s$/.test(key)) return seconds(value, digits);
  if (/_bytes$/.test(key)) return capacity(value, digits);
  if (/flops$/.test(key)) return flops(value, digits);
  if (/(share|utilisation|mfu|hfu|_ape|mape|error)$/.test(key)) return share(value);
  return Number.isInteger(value) && Math.abs(value) < 1e4 ? String(value) : number(value, digits);
}

// The smallest and the largest of values, of which there may be more than a call takes arguments.
export const extent = values =>
  values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
