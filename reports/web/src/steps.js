// When the ops of a step run: laid out from the ops of a phase, in the order in which they stand there.
export const kMostBars = 4000; // of a step; with more, an op is one bar

// Consecutive ops that repeat are the body of layers, until a name comes again: other layers begin.
function bodies(ops) {
  const found = [];
  let names = new Set();
  for (const op of ops) {
    const last = found.at(-1);
    if (last && op.times > 1 && last[0].times > 1 && !names.has(op.name)) last.push(op);
    else {
      found.push([op]);
      names = new Set();
    }
    names.add(op.name);
  }
  return found;
}

// The share of the time of an op that runs beside others, as a function. Where ops do not say it, what their phase says
// is dealt to the network's ops, or without any to all: weights that came early.
function hiddenShare({ops, overlapped_s: overlapped = 0}) {
  if (ops.some(op => op.hidden_s > 0)) return op => (op.hidden_s ?? 0) / op.time_s;
  const network = ops.filter(op => op.place === 'network');
  const dealt = new Set(network.length ? network : ops);
  const share = overlapped / [...dealt].reduce((sum, op) => sum + op.time_s, 0);
  return op => (dealt.has(op) ? Math.min(share, 1) : 0);
}

// When every execution of the ops of a step runs: [{op, from, to, layer}…]. What is hidden beside the op before begins
// that much earlier, or, on the device itself, takes that much less.
export function laidOut(phase) {
  const batches = phase.micro_batches > 1 ? phase.micro_batches : 1;
  const hidden = hiddenShare(phase);
  const ops = phase.ops
    .filter(op => op.time_s > 0 && op.count > 0)
    .map(op => ({...op, hidden: hidden(op), times: Math.max(1, Math.round(op.count / batches))}));
  const few = ops.reduce((sum, op) => sum + op.times, 0) <= kMostBars;
  const spans = [];
  let clock = 0;
  let before = 0; // layers
  const run = (op, layer, times = 1) => {
    const time = (op.time_s / batches / op.times) * times;
    const from = (op.place ?? 'device') === 'device' ? clock : Math.max(0, clock - time * op.hidden);
    clock += time * (1 - op.hidden);
    spans.push({op, from, to: clock, layer});
  };
  const overhead = op => op.kind === 'overhead';
  for (const op of ops.filter(overhead)) run(op, -1);
  for (const body of bodies(ops.filter(op => !overhead(op)))) {
    const layers = few ? Math.max(...body.map(op => op.times)) : 1;
    for (let i = 0; i < layers; ++i)
      for (const op of body) {
        const times = few ? Math.floor(((i + 1) * op.times) / layers) - Math.floor((i * op.times) / layers) : op.times;
        if (times) run(op, layers > 1 ? before + i : -1, times);
      }
    if (layers > 1) before += layers;
  }
  return {spans, end: clock, layers: before};
}
