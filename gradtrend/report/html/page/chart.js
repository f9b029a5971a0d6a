// One series over steps, drawn by uPlot.
const HEIGHTS = { norm: 250, loss: 150, lr: 104, scale: 104 };

G.chart = function (figure, packed, group) {
  const chart = { ...packed, group, figure, steps: G.steps(packed.steps), values: G.values(packed.values) };
  chart.band = packed.band && G.values(packed.band);
  const indices = [...chart.values.keys()];
  chart.bad = indices.filter((i) => !Number.isFinite(chart.values[i]));
  chart.below = chart.log ? indices.filter((i) => chart.values[i] <= 0 && Number.isFinite(chart.values[i])) : [];
  chart.gaps = gaps(chart);
  const plot = figure.querySelector(".plot");
  const shown = chart.values.map((value) => G.onAxis(chart.log, value)); // null is a gap; NaN would be bridged
  const marks = G.marks(chart);
  marks.setCursor = [(u) => group.hovered(chart, u)];
  marks.setSelect = [(u) => group.selected(u)];
  const u = new uPlot(
    {
      width: plot.clientWidth || 640,
      height: HEIGHTS[chart.kind],
      padding: [10, 14, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, range: () => group.view },
        y: { range: (_, low, high) => G.range(chart.log, low, high, chart.band) },
      },
      axes: [axis({ values: (_, ticks) => ticks.map(G.short), size: 28, space: 70, incrs: whole() }), vertical(chart, group.gutter)],
      series: [{}, { stroke: () => G.colour("line"), width: chart.steps.length > 800 ? 1.1 : 1.6, points: points(chart), spanGaps: false }],
      cursor: {
        drag: { x: true, y: false, setScale: false, dist: 4 },
        points: { size: 8, fill: () => G.colour("line"), stroke: () => G.colour("paper"), width: 2 },
        y: false,
        bind: { dblclick: () => () => { group.see(group.span); return null; } },
      },
      hooks: marks,
    },
    [chart.steps, shown],
    plot,
  );
  u.root.setAttribute("aria-hidden", "true"); // the figure says in words what the canvas shows
  u.over.addEventListener("wheel", (event) => group.wheel(event, u), { passive: false });
  chart.u = u;
  chart.readout = figure.querySelector(".readout");
  return chart;
};

function axis(more) {
  return {
    stroke: () => G.colour("quiet"),
    grid: { stroke: () => G.colour("grid"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
    gap: 6,
    ...more,
  };
}

function vertical(chart, size) {
  if (!chart.log) {
    const values = (_, ticks) => ticks.map(G.linearLabel);
    return axis({ size, space: 34, values });
  }
  return axis({
    size,
    splits: (u) => G.logTicks(u.scales.y.min, u.scales.y.max),
    values: (_, ticks) => ticks.map(G.logLabel),
    filter: (_, ticks) => ticks,
  });
}

function whole() {
  const steps = [];
  for (let size = 1; size < 1e17; size *= 10) steps.push(size, 2 * size, 5 * size);
  return steps;
}

// Few points are shown as such, and so is one between two gaps, of which no line would be seen.
function points(chart) {
  const few = chart.steps.length <= 60;
  const alone = (i) => {
    const bad = (j) => j < 0 || j >= chart.values.length || G.onAxis(chart.log, chart.values[j]) === null;
    return !bad(i) && bad(i - 1) && bad(i + 1);
  };
  const lonely = few ? null : [...chart.values.keys()].filter(alone);
  const colour = () => G.colour("line");
  return { show: few || lonely.length > 0, size: 5, width: 0, fill: colour, stroke: colour, filter: () => lonely };
}

// The steps from a first value that is not finite to the next that is: [from, to] pairs.
function gaps(chart) {
  const found = [];
  for (const index of chart.bad) {
    const next = Math.min(index + 1, chart.steps.length - 1);
    const open = found[found.length - 1];
    if (open && open[2] === index) [open[1], open[2]] = [chart.steps[next], next];
    else found.push([chart.steps[index], chart.steps[next], next]);
  }
  return found;
}
