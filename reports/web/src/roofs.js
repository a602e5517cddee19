// What a roofline shows: which dots, which part of the plane, and where a memory's roof runs through it.
const kRoom = 6; // to the right of everything, for the names of the ceilings
const kMatters = 0.99; // of the time: the ops that have it, largest first, are always drawn
const kMostDots = 500; // a browser needs a second for thousands
const kBelow = 100; // how far below the lowest of those a dot may lie: small ops would flatten all others

const magnitude = (value, round) => 10 ** round(Math.log10(value));

// Without the dots so far down that they would take the picture from those that matter. `dots`: largest first.
export function inSight(dots, total) {
  let time = 0;
  let lowest = Infinity;
  for (const {op, rate} of dots) {
    if (time >= kMatters * total) break;
    time += op.time_s;
    lowest = Math.min(lowest, rate);
  }
  return dots.filter(({rate}) => rate >= lowest / kBelow).slice(0, kMostDots);
}

export function ranges(dots, slopes, tops) {
  const highest = Math.max(...tops.map(top => top.rate), ...dots.map(dot => dot.rate));
  const steepest = Math.max(...slopes.map(slope => slope.bytes_per_s));
  const ridges = slopes.map(slope => highest / slope.bytes_per_s);
  const left = Math.min(...dots.map(dot => dot.intensity), ...ridges.map(ridge => ridge / 10));
  const right = Math.max(...dots.map(dot => dot.intensity), ...ridges) * kRoom;
  const lowest = Math.min(...dots.map(dot => dot.rate), highest / 100);
  return {
    x: [magnitude(left / 1.5, Math.floor), magnitude(right, Math.ceil)],
    y: [magnitude(lowest / 1.5, Math.floor), magnitude(highest * 1.2, Math.ceil)],
    highest,
    steepest,
  };
}

// A memory's roof: up to the highest ceiling, from the edge of the picture. On the edge itself, because a chart does not
// draw a line that begins a rounding outside: (1e12 / 3.35e12) * 3.35e12 is less than 1e12.
export function slopeEnds({bytes_per_s: rate}, {x, y, highest}) {
  const start = x[0] * rate > y[0] ? [x[0], x[0] * rate] : [y[0] / rate, y[0]];
  return [start, [highest / rate, highest]];
}
