// The charts of one run: one range of steps, one cursor.
const LEAST = 4; // steps in view; nearer there is nothing to see

G.group = function (section, data) {
  const group = { section, span: data.span, view: [...data.span], unit: data.unit, charts: [] };
  // Room for the labels at the left: the same in all charts, so that steps lie below one another.
  group.gutter = parseInt(getComputedStyle(section.querySelector(".charts")).getPropertyValue("--gutter"), 10);
  if (group.span[0] === group.span[1]) group.span = group.view = [data.span[0] - 1, data.span[1] + 1];
  const reset = section.querySelector(".reset");
  let pending = false;

  group.see = function ([from, to]) {
    const [first, last] = group.span;
    const wide = Math.min(last - first, Math.max(to - from, Math.min(LEAST, last - first)));
    const start = Math.min(last - wide, Math.max(first, from));
    group.view = [start, start + wide];
    reset.disabled = wide >= last - first;
    if (pending) return; // a wheel turns faster than can be drawn
    pending = true;
    requestAnimationFrame(() => {
      pending = false;
      for (const { u } of group.charts) u.setScale("x", { min: group.view[0], max: group.view[1] });
      if (group.heat) group.heat.draw();
    });
  };

  group.zoom = function (factor, about) {
    const [from, to] = group.view;
    const at = about === undefined ? (from + to) / 2 : about;
    group.see([at - (at - from) * factor, at + (to - at) * factor]);
  };

  group.wheel = function (event, u) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const zooms = event.ctrlKey || event.metaKey;
    if (!zooms && !(sideways && !reset.disabled)) return; // the page scrolls
    event.preventDefault();
    if (zooms) return group.zoom(1.0015 ** event.deltaY, u.posToVal(event.offsetX, "x"));
    const move = ((group.view[1] - group.view[0]) * event.deltaX) / u.over.clientWidth;
    group.see(group.view.map((step) => step + move));
  };

  group.selected = function (u) {
    const { left, width } = u.select;
    if (width < 4) return;
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    group.see([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  };

  group.hovered = function (chart, u) {
    const off = u.cursor.left === undefined || u.cursor.left < 0;
    group.point(off ? undefined : u.posToVal(u.cursor.left, "x"), chart);
  };

  group.place = (step) => `${group.unit} ${Math.round(step).toLocaleString("en")}`;

  // Shows the point nearest to a step in every chart; undefined: none.
  group.point = function (step, from) {
    group.at = step;
    const near = (group.view[1] - group.view[0]) / 100;
    for (const chart of group.charts) {
      const unseen = step < chart.steps[0] - near || step > chart.steps[chart.steps.length - 1] + near;
      const index = step === undefined || unseen ? -1 : G.nearest(chart.steps, step);
      if (chart !== from) {
        const left = index < 0 ? -10 : chart.u.valToPos(chart.steps[index], "x");
        chart.u.setCursor({ left, top: index < 0 ? -10 : 1 }, false);
      }
      chart.index = index;
      const value = chart.values[index];
      chart.words = index >= 0 ? G.number(value) : unseen ? "not logged" : "";
      chart.readout.textContent = index < 0 ? chart.words : `${group.place(chart.steps[index])}: ${chart.words}`;
      chart.readout.classList.toggle("bad", index >= 0 && !Number.isFinite(value));
    }
    if (group.heat) group.heat.say(step);
  };

  group.redraw = function () {
    for (const { u } of group.charts) u.redraw(false);
    if (group.heat) group.heat.draw();
  };

  group.resize = function () {
    for (const { u, figure } of group.charts) {
      const width = figure.querySelector(".plot").clientWidth;
      if (width && width !== u.width) u.setSize({ width, height: u.height });
    }
    if (group.heat) group.heat.draw();
  };

  const figures = [...section.querySelectorAll("figure.chart:not(.heat)")];
  group.charts = data.charts.map((packed, i) => G.chart(figures[i], packed, group));
  const map = section.querySelector("figure.heat");
  if (map && data.heat) {
    group.heat = G.heat(map, data.heat, group);
    group.heat.draw();
  }
  reset.addEventListener("click", () => group.see(group.span));
  for (const figure of section.querySelectorAll("figure.chart")) G.keys(figure, group);
  new ResizeObserver(group.resize).observe(section);
  return group;
};
