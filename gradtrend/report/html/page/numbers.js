// What was packed by points.py, and numbers as the text report writes them.
const G = { groups: new Map() };

G.steps = function (packed) {
  if (!Array.isArray(packed)) return Array.from({ length: packed.n }, (_, i) => packed.from + i * packed.by);
  let at = 0;
  return packed.map((difference) => (at += difference));
};

const UNPACKED = { N: NaN, I: Infinity, "-I": -Infinity };
G.values = (packed) => packed.map((value) => (typeof value === "string" ? UNPACKED[value] : value));

G.number = function (value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const size = Math.abs(value);
  if (size === 0 || (size < 1e5 && Number.isInteger(value))) return String(value);
  if (size >= 1e-3 && size < 99950) return String(Number(value.toPrecision(4)));
  return value.toExponential(3).replace(/\.?0+e/, "e").replace("e+", "e");
};

// Steps on an axis: 250k, 1.5M.
G.short = function (step) {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(step) >= size) return Number((step / (letter === "k" ? 1e3 : size)).toPrecision(6)) + letter;
  }
  return String(Number(step.toPrecision(8)));
};

// The index of the point at or nearest to a step.
G.nearest = function (steps, step) {
  let low = 0;
  let high = steps.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
};
