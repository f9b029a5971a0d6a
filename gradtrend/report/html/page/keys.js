// A chart in focus is walked with the keyboard; where it is, is said.
G.keys = function (figure, group) {
  const own = group.charts.find((chart) => chart.figure === figure) || group.charts[0];
  const said = group.section.querySelector(".said");

  function walk(points) {
    if (!own) return;
    const last = own.steps.length - 1;
    const begun = own.index !== undefined && own.index >= 0;
    go(begun ? Math.min(last, Math.max(0, own.index + points)) : points > 0 ? 0 : last);
  }

  function go(index) {
    if (index === undefined || index < 0 || !own) return;
    const step = own.steps[index];
    const [from, to] = group.view;
    if (step < from || step > to) group.see([step - (to - from) / 2, step + (to - from) / 2]);
    group.point(step);
    say(step);
  }

  function say(step) {
    const parts = group.charts.map((chart) => `${chart.name} ${chart.words}`);
    if (group.heat && group.heat.words) parts.push(group.heat.words);
    said.textContent = `${group.unit} ${step}: ${parts.join(", ")}`;
  }

  const nextBad = () => own.bad.find((i) => i > (own.index ?? -1)) ?? own.bad[0];
  const onset = () => (own.onset === undefined ? -1 : G.nearest(own.steps, own.onset));
  const layer = (rows) => { if (group.heat && figure === group.heat.figure) { group.heat.move(rows); group.point(group.at ?? group.view[0]); return true; } return false; };

  const actions = {
    ArrowRight: (far) => walk(far ? 10 : 1),
    ArrowLeft: (far) => walk(far ? -10 : -1),
    ArrowDown: () => layer(1),
    ArrowUp: () => layer(-1),
    Home: () => go(0),
    End: () => go(own.steps.length - 1),
    "+": () => group.zoom(0.5, group.at),
    "=": () => group.zoom(0.5, group.at),
    "-": () => group.zoom(2, group.at),
    0: () => group.see(group.span),
    Escape: () => { group.see(group.span); group.point(undefined); },
    n: () => go(nextBad()),
    o: () => go(onset()),
  };

  figure.addEventListener("keydown", (event) => {
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || event.target !== figure || event.ctrlKey || event.metaKey || event.altKey) return;
    if (action(event.shiftKey) !== false) event.preventDefault(); // up and down scroll the page where they do nothing
  });
};
