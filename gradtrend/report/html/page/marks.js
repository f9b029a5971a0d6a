// What is drawn on a chart beside its line: usual range, onset, spikes, NaN and inf, what was not logged.
const CROSS = 4; // half the size of the sign for NaN, in CSS pixels
const [NEAR, FAR] = [3, 12]; // of these sizes apart are signs at least, and those of one stretch

G.marks = function (chart) {
  const scale = () => window.devicePixelRatio || 1;
  const box = (u) => u.bbox;

  function clipped(u, draw) {
    const { left, top, width, height } = box(u);
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    draw(u.ctx, left, top, width, height);
    u.ctx.restore();
  }

  const x = (u, step) => u.valToPos(step, "x", true);
  const y = (u, value) => u.valToPos(G.onAxis(chart.log, value), "y", true);

  function below(u) {
    clipped(u, (ctx, left, top, width, height) => {
      if (chart.band) {
        const [low, high] = chart.band;
        ctx.fillStyle = G.colour("band");
        ctx.fillRect(left, y(u, high), width, Math.max(2 * scale(), y(u, low) - y(u, high)));
      }
      unseen(u, ctx, top, height);
      ctx.fillStyle = G.colour("bad-wash");
      for (const [from, to] of chart.gaps) {
        const wide = Math.max(2 * scale(), x(u, to) - x(u, from));
        ctx.fillRect(x(u, from) - scale(), top, wide, height);
      }
    });
  }

  // The steps of the run over which this series is not logged, hatched.
  function unseen(u, ctx, top, height) {
    if (chart.kind !== "norm") return;
    const steps = chart.steps;
    const whole = chart.group.span[1] - chart.group.span[0];
    for (const [from, to] of [[chart.group.span[0], steps[0]], [steps[steps.length - 1], chart.group.span[1]]]) {
      if (to - from < whole * 0.02) continue;
      const [a, b] = [x(u, from), x(u, to)];
      ctx.strokeStyle = G.colour("hatch");
      ctx.lineWidth = scale();
      ctx.save();
      ctx.beginPath();
      ctx.rect(a, top, b - a, height);
      ctx.clip();
      ctx.beginPath();
      for (let at = a - height; at < b; at += 9 * scale()) {
        ctx.moveTo(at, top + height);
        ctx.lineTo(at + height, top);
      }
      ctx.stroke();
      ctx.restore();
    }
  }

  function above(u) {
    clipped(u, (ctx, left, top, width, height) => {
      if (chart.onset !== undefined) onset(u, ctx, left, top, width, height);
      for (const step of chart.spikes || []) spike(u, ctx, step);
      crosses(u, ctx, left, top, width);
      zeros(u, ctx, top + height);
    });
  }

  function onset(u, ctx, left, top, width, height) {
    const at = Math.round(x(u, chart.onset));
    ctx.strokeStyle = ctx.fillStyle = G.colour("onset");
    ctx.lineWidth = 1.5 * scale();
    ctx.setLineDash([5 * scale(), 4 * scale()]);
    ctx.beginPath();
    ctx.moveTo(at, top);
    ctx.lineTo(at, top + height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.font = `600 ${11 * scale()}px system-ui, sans-serif`;
    const label = `onset ${chart.onset}`;
    const wide = ctx.measureText(label).width;
    const room = at - left > wide + 12 * scale();
    ctx.textAlign = room ? "right" : "left";
    // Where the line is not.
    const value = chart.values[G.nearest(chart.steps, chart.onset)];
    const low = !Number.isFinite(value) || y(u, value) > top + height / 2;
    ctx.fillText(label, room ? at - 6 * scale() : at + 6 * scale(), low ? top + 28 * scale() : top + height - 8 * scale());
  }

  function spike(u, ctx, step) {
    const index = G.nearest(chart.steps, step);
    const value = chart.values[index];
    if (!Number.isFinite(value) || value <= 0) return;
    const [px, py, r] = [x(u, chart.steps[index]), y(u, value) - 5 * scale(), 4 * scale()];
    ctx.fillStyle = G.colour("spike");
    ctx.beginPath();
    ctx.moveTo(px, py);
    ctx.lineTo(px - r, py - 1.6 * r);
    ctx.lineTo(px + r, py - 1.6 * r);
    ctx.fill();
  }

  function crosses(u, ctx, left, top, width) {
    ctx.strokeStyle = G.colour("bad");
    ctx.lineWidth = 1.75 * scale();
    ctx.lineCap = "round";
    const r = CROSS * scale();
    let before = -Infinity;
    let last = -2;
    ctx.beginPath();
    for (const index of chart.bad) {
      const apart = index === last + 1 ? FAR : NEAR;
      last = index;
      const px = Math.min(left + width - r - scale(), Math.max(left + r + scale(), x(u, chart.steps[index])));
      const seen = chart.steps[index] >= u.scales.x.min && chart.steps[index] <= u.scales.x.max;
      if (!seen || px - before < apart * r) continue; // side by side they would be one smear
      before = px;
      const py = top + 3 * r;
      ctx.moveTo(px - r, py - r);
      ctx.lineTo(px + r, py + r);
      ctx.moveTo(px + r, py - r);
      ctx.lineTo(px - r, py + r);
    }
    ctx.stroke();
  }

  function zeros(u, ctx, bottom) {
    if (!chart.log) return;
    ctx.fillStyle = G.colour("line");
    const r = 2.5 * scale();
    let before = -Infinity;
    for (const index of chart.below) {
      const px = x(u, chart.steps[index]);
      if (px - before < 2 * r) continue;
      before = px;
      ctx.fillRect(px - r, bottom - 2 * r, 2 * r, 2 * r);
    }
  }

  return { drawClear: [below], draw: [above] };
};
