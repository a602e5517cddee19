// Numbers as the program's text has them, to the last digit (src/base/number.cpp): ties round to even, prefixes change
// with the rounded number.
const kDigits = 4;

// The digits of an exact tie: 16.125 has a fifth digit of 5 and nothing behind it. toExponential() rounds those away from
// zero, the program to even.
function exponential(value, digits) {
  const text = value.toExponential(digits - 1);
  const longer = value.toExponential(digits);
  if (!/5e/.test(longer) || Number(longer) !== value) return text;
  const [mantissa] = value.toExponential(60).replace(/^-|\./g, '').split('e');
  if (!/^50*$/.test(mantissa.slice(digits))) return text;
  const even = Number(mantissa[digits - 1]) % 2 === 0;
  // The kept digits as they are, or the next ones: only the former differ from what toExponential() does.
  return even ? longer.replace(/\.?5e/, 'e') : text;
}

const rounded = (value, digits) => Number(exponential(value, digits));

// Without trailing zeros: "0.125", "24".
export function significant(value, digits = kDigits) {
  if (!Number.isFinite(value)) return 'n/a';
  if (value === 0) return '0';
  const near = rounded(value, digits);
  const power = Math.floor(Math.log10(Math.abs(near)));
  if (power < -6 || power > 15) {
    const [mantissa, exponent] = exponential(value, digits).split('e');
    const sign = exponent[0] === '-' ? '-' : '+';
    return `${Number(mantissa)}e${sign}${exponent.slice(1).padStart(2, '0')}`;
  }
  const decimals = Math.max(0, digits - 1 - power);
  // A number of more digits than are significant keeps them all, as in 10535.
  const text = decimals > 0 ? near.toFixed(decimals) : fixed(value, 0);
  return decimals > 0 ? text.replace(/\.?0+$/, '') : text;
}

// toFixed() with ties to even.
function fixed(value, decimals) {
  if (Math.abs(value) >= 1e15) return value.toFixed(decimals);
  const digits = Math.max(1, Math.floor(Math.log10(Math.abs(value) || 1)) + 1 + decimals);
  if (Math.abs(value) < 1 / 10 ** decimals) {
    return (Math.abs(value) === 0.5 / 10 ** decimals ? 0 : value).toFixed(decimals);
  }
  return rounded(value, digits).toFixed(decimals);
}

function scaled(value, units, suffix, base, limit = base) {
  if (!Number.isFinite(value)) return 'n/a';
  let step = 0;
  let scale = units.first ?? 1;
  while (step + 1 < units.names.length && Math.abs(rounded(value / scale, kDigits)) >= limit) {
    ++step;
    scale *= base;
  }
  return `${significant(value / scale)} ${units.names[step]}${suffix}`;
}

const kBytes = {names: ['B', 'KB', 'MB', 'GB', 'TB']};
const kBinary = {names: ['B', 'KiB', 'MiB', 'GiB', 'TiB']};
const kPrefixes = {names: ['', 'k', 'M', 'G', 'T', 'P']};

export const bytes = value => scaled(value, kBytes, '', 1000);
export const capacity = value => scaled(value, kBinary, '', 1024);
export const flops = value => scaled(value, kPrefixes, 'FLOP', 1000);
export const flopsRate = value => scaled(value, kPrefixes, 'FLOP/s', 1000);
export const bandwidth = value => scaled(value, kBytes, '/s', 1000, 10000);

const kSeconds = [
  [1e-9, 'ns'],
  [1e-6, 'us'],
  [1e-3, 'ms'],
  [1, 's'],
];
export function seconds(value, digits = kDigits) {
  if (!Number.isFinite(value)) return 'n/a';
  const [scale, name] =
    kSeconds.find(([unit], at) => at === kSeconds.length - 1 || Math.abs(rounded(value / unit, kDigits)) < 1000) ??
    kSeconds[3];
  return `${significant(value / scale, digits)} ${name}`;
}

// "7,721,324,544"
export const count = value =>
  Number.isFinite(value) ? fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ',') : 'n/a';
export const share = ratio => (Number.isFinite(ratio) ? `${fixed(100 * ratio, 1)} %` : 'n/a');
export const rate = value => `${significant(value)} tokens/s`;

// As it prints for `llmperf explain`: exact, with a unit.
export function exact(value, unit) {
  const number = typeof value === 'number' ? String(value) : String(value ?? '–');
  return unit ? `${number} ${unit}` : number;
}

// A difference in per cent, signed: "+12 %"; of more than a doubling "x 3.4".
export function change(value, base) {
  if (!(base > 0) || !(value > 0)) return '';
  const ratio = value / base;
  if (Math.abs(ratio - 1) < 0.0005) return '=';
  if (ratio >= 2) return `×${significant(ratio, 2)}`;
  const text = fixed(100 * (ratio - 1), ratio > 0.9 && ratio < 1.1 ? 1 : 0);
  return `${ratio > 1 ? '+' : '−'}${text.replace('-', '')} %`;
}
