// Norms by layer: rows of cells whose colour is the size. The colours grow lighter evenly, on light and dark paper.
const RAMP = ["#30123b", "#3d2f8f", "#2e5fa8", "#1f8a9c", "#2aab7f", "#7ec850", "#d9d930", "#fdf3a0"];
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TOP = 6; // so that the label of the first row is whole
const [LEVELS, ZERO, BAD, NONE] = [4093, 4093, 4094, 4095];

G.ramp = function (share) {
  const at = Math.min(RAMP.length - 1.001, Math.max(0, share) * (RAMP.length - 1));
  const channel = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const [a, b] = [RAMP[Math.floor(at)], RAMP[Math.floor(at) + 1]];
  const mixed = [0, 1, 2].map((i) => Math.round(channel(a, i) + (channel(b, i) - channel(a, i)) * (at % 1)));
  return `rgb(${mixed.join()})`;
};

G.heat = function (figure, data, group) {
  const plot = figure.querySelector(".plot");
  const canvas = plot.appendChild(document.createElement("canvas"));
  canvas.setAttribute("aria-hidden", "true");
  const rows = data.cells.length;
  const tall = Math.max(5, Math.min(18, Math.floor(420 / rows)));
  const every = Math.ceil(12 / tall); // a label needs 12 pixels
  const heat = { canvas, figure, readout: figure.querySelector(".readout"), row: 0 };
  const cells = data.cells.map((row) =>
    Array.from({ length: data.columns }, (_, i) => DIGITS.indexOf(row[2 * i]) * 64 + DIGITS.indexOf(row[2 * i + 1])));
  const wide = (data.to - data.from + 1) / data.columns;

  function paint(code) {
    if (code === NONE) return null;
    if (code === BAD) return G.colour("bad");
    return code === ZERO ? G.colour("zero") : G.ramp(code / (LEVELS - 1));
  }

  heat.draw = function () {
    const width = plot.clientWidth;
    const scale = window.devicePixelRatio || 1;
    const height = TOP + rows * tall + 24;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext("2d");
    ctx.scale(scale, scale);
    ctx.translate(0, TOP);
    const [left, right] = [group.gutter, width - 14];
    const x = (step) => left + ((step - group.view[0]) / (group.view[1] - group.view[0])) * (right - left);
    const whole = (step) => Math.round(x(step) * scale) / scale; // half a pixel between cells would be a stripe
    heat.x = { left, right };
    ctx.fillStyle = G.colour("hollow");
    ctx.fillRect(left, 0, right - left, rows * tall);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, 0, right - left, rows * tall);
    ctx.clip();
    cells.forEach((row, r) => row.forEach((code, c) => {
      const colour = paint(code);
      if (!colour) return;
      const from = whole(data.from + c * wide);
      ctx.fillStyle = colour;
      ctx.fillRect(from, r * tall, whole(data.from + (c + 1) * wide) - from, tall - (tall > 6 ? 1 : 0));
    }));
    ctx.restore();
    labels(ctx, left);
    axisOfSteps(ctx, x, right);
    if (heat.at !== undefined) cursor(ctx, x, left, right);
  };

  function labels(ctx, left) {
    ctx.font = "11px ui-monospace, monospace";
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const named = new Set(data.marked);
    for (let r = 0; r < rows; r += every) {
      ctx.fillStyle = G.colour(named.has(r) ? "bad" : "quiet");
      ctx.fillText(fitted(ctx, data.layers[r], left - 8), left - 6, r * tall + tall / 2);
    }
  }

  function fitted(ctx, name, room) {
    let kept = name.length;
    let text = name;
    while (ctx.measureText(text).width > room && kept > 2) {
      kept -= 1;
      text = name.slice(0, Math.ceil(kept / 2)) + "…" + name.slice(name.length - Math.floor(kept / 2));
    }
    return text;
  }

  // At the very steps that the charts above have their labels at.
  function axisOfSteps(ctx, x, right) {
    const above = group.charts[0];
    const ticks = above ? above.u.axes[0]._splits || [] : group.span;
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = G.colour("quiet");
    ctx.textAlign = "center";
    for (const step of ticks) if (x(step) <= right) ctx.fillText(G.short(step), x(step), rows * tall + 14);
  }

  function cursor(ctx, x, left, right) {
    const at = x(heat.at);
    if (at < left || at > right) return;
    for (const [colour, width] of [["#000", 3], ["#fff", 1]]) { // to be seen on every colour of the map
      ctx.strokeStyle = colour;
      ctx.lineWidth = width;
      ctx.strokeRect(at, 0, 0, rows * tall);
      ctx.strokeRect(left, heat.row * tall + 0.5, right - left, tall - 1);
    }
  }

  heat.say = function (step) {
    heat.at = step;
    heat.draw();
    if (step === undefined) return (heat.readout.textContent = "");
    const column = Math.floor((step - data.from) / wide);
    const code = (cells[heat.row] || [])[column];
    const level = data.low + (code / (LEVELS - 1)) * (data.high - data.low);
    const words = code === undefined || code === NONE ? "not logged"
      : code === BAD ? "NaN or inf" : code === ZERO ? "0" : G.number(Number((10 ** level).toPrecision(2)));
    heat.words = `${words} in ${data.layers[heat.row]}`;
    return (heat.readout.textContent = `${group.place(step)}: ${heat.words}`);
  };

  heat.move = (rowsDown) => { heat.row = Math.min(rows - 1, Math.max(0, heat.row + rowsDown)); };

  canvas.addEventListener("pointermove", (event) => {
    const { left, right } = heat.x;
    heat.row = Math.min(rows - 1, Math.max(0, Math.floor((event.offsetY - TOP) / tall)));
    const share = (event.offsetX - left) / (right - left);
    group.point(share < 0 || share > 1 ? undefined : group.view[0] + share * (group.view[1] - group.view[0]));
  });
  canvas.addEventListener("pointerleave", () => group.point(undefined));
  legend(figure, data, rows);
  return heat;
};

function legend(figure, data, rows) {
  const list = figure.querySelector(".legend");
  const item = (words, ...marks) => list.appendChild(document.createElement("li")).append(...marks, words);
  const strip = document.createElement("canvas");
  [strip.width, strip.height] = [96, 1];
  const ctx = strip.getContext("2d");
  for (let i = 0; i < 96; i++) {
    ctx.fillStyle = G.ramp(i / 95);
    ctx.fillRect(i, 0, 1, 1);
  }
  const written = (log) => G.number(Number((10 ** log).toPrecision(2)));
  item(written(data.high), `${written(data.low)} `, strip, " ");
  const codes = data.cells.join("");
  const has = (code) => data.cells.some((row) => {
    for (let i = 0; i < row.length; i += 2) if (row[i] === DIGITS[code >> 6] && row[i + 1] === DIGITS[code & 63]) return true;
    return false;
  });
  const sign = (name) => Object.assign(document.createElement("i"), { className: name });
  if (codes && has(BAD)) item("NaN or inf", sign("square bad-square"));
  if (codes && has(ZERO)) item("zero", sign("square zero-square"));
  const facts = figure.querySelector(".facts");
  const words = rows < data.all ? `${rows} of ${data.all} layers: those with findings, and others evenly from first to last` : `${rows} layers`;
  facts.textContent = `${words}, the largest norm of each share of the steps.` + (data.marked.length ? " Names in red have findings." : "");
}
