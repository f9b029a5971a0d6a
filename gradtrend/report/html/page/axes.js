// Axes. A logarithmic one is a linear one of log10: zeros, negative and non-finite values cannot blank it.
const MIN_DECADES = 1; // noise of 20 % has to look flat, as in the text report

G.onAxis = (log, value) => (!Number.isFinite(value) ? null : !log ? value : value > 0 ? Math.log10(value) : null);

G.range = function (log, low, high, band) {
  if (low === null || high === null) [low, high] = band ? band.map((v) => G.onAxis(log, v)) : log ? [-1, 1] : [0, 1];
  if (log) {
    const missing = Math.max(0, MIN_DECADES - (high - low));
    const room = Math.max(0.08, (high - low) * 0.08);
    return [low - missing / 2 - room, high + missing / 2 + room];
  }
  const size = high - low || Math.abs(high) || 1;
  return [low >= 0 && low < size * 0.5 ? 0 : low - size * 0.08, high + size * 0.12];
};

// Where an axis of log10 has its lines: decades, or 1-2-5 where there are few.
G.logTicks = function (low, high) {
  const decades = high - low;
  const few = decades < 1.3 ? [1, 2, 3, 5, 7] : decades < 2.6 ? [1, 2, 5] : [1];
  const apart = Math.max(1, Math.ceil(decades / 6));
  const ticks = [];
  for (let decade = Math.floor(low); decade <= Math.ceil(high); decade++) {
    if (few.length === 1 && decade % apart !== 0) continue;
    for (const digit of few) {
      const place = decade + Math.log10(digit);
      if (place >= low && place <= high) ticks.push(place);
    }
  }
  return ticks;
};

G.logLabel = function (place) {
  const value = Number((10 ** place).toPrecision(2));
  if (value >= 0.001 && value < 1e5) return String(value);
  return value.toExponential().replace("e+", "e");
};

G.linearLabel = (value) => (value === 0 ? "0" : Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5 ? value.toExponential(1).replace(".0e", "e").replace("e+", "e") : String(Number(value.toPrecision(4))));
