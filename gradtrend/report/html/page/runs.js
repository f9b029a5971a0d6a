// Several runs: the table is sorted and filtered, and its rows open one report at a time.
(function () {
  const all = document.getElementById("all");
  if (!all) return;
  document.documentElement.classList.add("many");
  const body = all.querySelector("tbody");
  const rows = [...body.rows];
  const chips = [...all.querySelectorAll(".chip")];
  const find = all.querySelector("input[type=search]");
  const shown = all.querySelector(".shown");

  function filter() {
    const wanted = new Set(chips.filter((c) => c.getAttribute("aria-pressed") === "true").map((c) => c.dataset.verdict));
    const words = find.value.toLowerCase();
    let left = 0;
    for (const row of rows) {
      const fits = (!wanted.size || wanted.has(row.dataset.verdict)) && row.textContent.toLowerCase().includes(words);
      row.hidden = !fits;
      left += fits;
    }
    shown.textContent = left < rows.length ? `${left} of ${rows.length} shown.` : "";
  }

  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") !== "true");
      filter();
    });
  }
  find.addEventListener("input", filter);

  const valueOf = (cell, kind) => {
    if (cell.dataset.by) return Number(cell.dataset.by); // worst first
    if (kind === "text") return cell.textContent;
    if (cell.textContent === "") return -Infinity;
    return /nan|inf/.test(cell.textContent.toLowerCase()) ? Infinity : Number(cell.textContent);
  };
  all.querySelectorAll("th button").forEach((button, column) => {
    const head = button.parentElement;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of all.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const kind = button.dataset.kind;
      const keyed = rows.map((row) => [valueOf(row.cells[column], kind), row]);
      keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (up ? 1 : -1));
      body.append(...keyed.map(([, row]) => row));
    });
  });
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a") && !String(getSelection())) row.querySelector("a").click();
  });
})();
