// The Pareto front of points {at: [x, y]}: those that no other beats on both. `better`: 'lower' or 'higher' for each.
// Sorted by x from its best end, a point is on the front when its y is better than that of all before it.
export function frontOf(points, better) {
  const [sx, sy] = better.map(end => (end === 'higher' ? -1 : 1));
  const sorted = [...points].sort((a, b) => sx * (a.at[0] - b.at[0]) || sy * (a.at[1] - b.at[1]));
  let best = Infinity;
  return sorted.filter(point => {
    const ahead = sy * point.at[1] < best;
    if (ahead) best = sy * point.at[1];
    return ahead;
  });
}
