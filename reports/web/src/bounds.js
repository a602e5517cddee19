// The order of bounds.
const kBounds = ['matrix', 'vector', 'memory', 'network', 'launch', 'operand feed'];
// The bounds that ops have, in the order in which every chart shows them.
export function boundsOf(ops) {
  const found = new Set(ops.map(op => op.bound));
  return [...kBounds.filter(bound => found.delete(bound)), ...found];
}
