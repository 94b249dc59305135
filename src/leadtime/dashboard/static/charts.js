// The numeric tracks by uPlot, over the grid the server drew: cursor with values in every track, drag to zoom.
(() => {
  "use strict";
  const page = document.getElementById("page");
  if (!page || !window.uPlot) return;
  const charts = new Map();
  let data = null, now = Number(page.dataset.now);

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const faded = (name, opacity) => `color-mix(in srgb, ${colour(name)} ${Math.round(opacity * 100)}%, transparent)`;
  const dash = (text) => (text ? text.split(" ").map(Number) : undefined);
  const stepped = () => uPlot.paths.stepped({ align: 1 });

  async function load() {
    const found = new URLSearchParams(location.search);
    found.delete("now"); // the veil hides what lies after the clock
    const answer = await fetch(`/api/ledgers/${encodeURIComponent(page.dataset.ledger)}/tracks?${found}`);
    if (!answer.ok) return; // the server's own drawing stays
    data = await answer.json();
    draw();
  }

  function draw() {
    for (const chart of charts.values()) chart.destroy();
    charts.clear();
    if (!data) return;
    for (const track of data.tracks) {
      const section = document.querySelector(`[data-track="${track.id}"]`);
      const box = section?.querySelector(".plotbox");
      if (!box || !track.lines) continue;
      charts.set(track.id, chartOf(track, section, box));
      section.classList.add("drawn");
    }
    readout(null);
    document.dispatchEvent(new CustomEvent("leadtime:drawn"));
  }

  function chartOf(track, section, box) {
    const columns = [data.grid], series = [{}], bands = [];
    for (const band of track.bands) {
      const paths = band.stepped ? stepped() : undefined;
      columns.push(band.upper, band.lower);
      for (const label of [band.label, `${band.label} from`]) series.push({ label, width: 0, points: { show: false }, paths, stroke: "transparent" });
      bands.push({ series: [series.length - 2, series.length - 1], fill: faded(band.colour, band.opacity) });
    }
    for (const line of track.lines) {
      columns.push(line.values);
      series.push({
        label: line.label, stroke: colour(line.colour), width: line.width, dash: dash(line.dash), points: { show: false },
        paths: line.stepped ? stepped() : undefined, fill: line.fill_opacity ? faded(line.colour, line.fill_opacity) : undefined,
      });
    }
    const options = {
      width: box.clientWidth, height: track.height, padding: [3, 0, 1, 0], legend: { show: false },
      scales: { x: { time: true, range: [data.window.start_s, data.window.end_s] }, y: { range: [0, track.top] } },
      axes: [{ show: false }, { show: false }], series, bands,
      cursor: { sync: { key: "leadtime" }, points: { show: false }, y: false, drag: { x: true, y: false, setScale: false } },
      hooks: { setCursor: [(chart) => readout(chart.cursor.idx ?? null)], setSelect: [zoom] },
    };
    return new uPlot(options, columns, box);
  }

  /** A dragged stretch becomes the window: an address of its own, drawn anew by the server. */
  function zoom(chart) {
    if (chart.select.width < 6) return;
    const from = Math.floor(chart.posToVal(chart.select.left, "x") / 60) * 60;
    const to = Math.ceil(chart.posToVal(chart.select.left + chart.select.width, "x") / 60) * 60;
    if (to - from < 600) return;
    const found = new URLSearchParams(location.search);
    found.set("from", new Date(from * 1000).toISOString().replace(".000Z", "Z"));
    found.set("to", new Date(to * 1000).toISOString().replace(".000Z", "Z"));
    location.search = found;
  }

  const figure = (v) => (v === null || v === undefined ? "–" : v.toLocaleString("en", { maximumFractionDigits: Math.abs(v) < 100 && v % 1 ? 1 : 0 }).replaceAll(",", "\u202f"));

  /** Values in the keys: under the cursor, else just before the clock. */
  function readout(index) {
    if (!data) return;
    const last = Math.ceil((now - data.window.start_s) / 60) - 1;
    const clocked = Math.min(data.grid.length - 1, Math.max(0, last));
    const i = index === null ? clocked : Math.min(index, clocked);
    for (const track of data.tracks) {
      if (!track.lines) continue;
      const section = document.querySelector(`[data-track="${track.id}"]`);
      section?.querySelectorAll("output[data-line]").forEach((out) => { out.textContent = figure(track.lines[out.dataset.line]?.values[i]); });
      section?.querySelectorAll("output[data-band]").forEach((out) => {
        const band = track.bands[out.dataset.band];
        out.textContent = band && band.upper[i] !== null && band.lower[i] !== null ? figure(band.upper[i] - band.lower[i]) : "–";
      });
    }
  }

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      for (const [id, chart] of charts) {
        const box = document.querySelector(`[data-track="${id}"] .plotbox`);
        if (box) chart.setSize({ width: box.clientWidth, height: chart.height });
      }
    }, 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("leadtime:clock", (event) => { now = event.detail.now; readout(null); });
  document.addEventListener("leadtime:tracks", load);
  load();
})();
