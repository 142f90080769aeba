// The readout of a chart: the title and the legend show the moment under the pointer, or the one reached by ← and →.
import { clock, duration } from "./times.js";

const units = {
  rate: (value) => (value < 0.05 ? "0" : value < 1000 ? value.toFixed(1) : Math.round(value).toLocaleString("en-US")),
  count: (value) => Math.round(value).toLocaleString("en-US"),
  seconds: (value) => duration(value * 1000),
};

export function startCharts() {
  for (const name of ["pointermove", "pointerleave", "keydown", "blur"]) {
    document.addEventListener(name, (event) => handle(name, event), true);
  }
}

function handle(name, event) {
  const chart = event.target.closest?.(".chart");
  if (!chart) return;
  if (name === "pointermove") {
    const box = chart.querySelector(".plot svg")?.getBoundingClientRect();
    if (!box || event.clientY < box.top || event.clientY > box.bottom) return leave(chart);
    show(chart, (event.clientX - box.left) / box.width);
  } else if (name === "keydown") {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    const data = values(chart);
    const count = data.lines[0][1].length;
    const place = Number(chart.dataset.place ?? count) + (event.key === "ArrowLeft" ? -1 : 1);
    show(chart, Math.max(0, Math.min(count - 1, place)) / (count - 1));
  } else if (event.target === chart) leave(chart);
}

const values = (chart) => JSON.parse(chart.querySelector("[data-values]").dataset.values);

function show(chart, share) {
  const data = values(chart);
  const count = data.lines[0][1].length;
  const place = Math.max(0, Math.min(count - 1, Math.round(share * (count - 1))));
  chart.dataset.place = String(place);
  const title = chart.querySelector("h2");
  title.dataset.title ??= title.textContent;
  title.textContent = clock(data.start + place * data.step);
  chart.querySelectorAll(".lg[data-live] b").forEach((word, line) => {
    word.dataset.now ??= word.textContent;
    const value = data.lines[line]?.[1][place];
    word.textContent = value == null ? "–" : units[data.unit](value);
  });
  const x = (place / (count - 1)) * 600;
  chart.querySelector(".cross")?.setAttribute("d", `M${x.toFixed(1)} 0V112`);
}

function leave(chart) {
  if (chart.dataset.place === undefined) return;
  delete chart.dataset.place;
  const title = chart.querySelector("h2");
  if (title.dataset.title) title.textContent = title.dataset.title;
  for (const word of chart.querySelectorAll(".lg b[data-now]")) {
    word.textContent = word.dataset.now;
    delete word.dataset.now;
  }
  chart.querySelector(".cross")?.setAttribute("d", "");
}
