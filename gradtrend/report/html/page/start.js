// A run's charts are drawn when it is first seen.
(function () {
  const sections = [...document.querySelectorAll("section.run")];
  const several = document.getElementById("all") !== null;

  function open(section) {
    const place = section.dataset.run;
    const packed = document.querySelector(`script[data-run="${place}"]`);
    if (!packed || G.groups.has(place) || !section.querySelector(".reset")) return;
    G.groups.set(place, G.group(section, JSON.parse(packed.textContent)));
  }

  function show() {
    const wanted = sections.find((section) => `#${section.id}` === location.hash);
    document.documentElement.classList.toggle("one", Boolean(wanted));
    for (const section of sections) section.classList.toggle("open", section === wanted);
    if (!wanted) return;
    open(wanted);
    wanted.querySelector("h2").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  if (!several) return sections.forEach(open);
  window.addEventListener("hashchange", show);
  show();
})();
