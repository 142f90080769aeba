// Shows times in the reader's zone, and keeps ages and the ends of leases up to date.
const formats = {
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  day: { day: "numeric", month: "short" },
};

// The server's clock minus ours; 0 if the difference is so small that the network delay explains it.
const difference = Number(document.body.dataset.now ?? Date.now()) - performance.timeOrigin - performance.now();
const skew = Math.abs(difference) > 5000 ? difference : 0;
export const now = () => Date.now() + skew;

export function startTimes() {
  refreshTimes();
  document.addEventListener("htmx:afterSettle", refreshTimes);
  setInterval(() => document.hidden || tick(), 1000);
}

export function refreshTimes() {
  for (const each of document.querySelectorAll("time[datetime][data-style]:not([data-local])")) {
    const at = new Date(each.getAttribute("datetime"));
    each.textContent = local(at, each.dataset.style);
    each.dataset.local = "";
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    each.title = `${at.toLocaleString("en-GB", { hourCycle: "h23" })} ${zone}, ${each.title || at.toISOString()}`;
  }
  for (const table of document.querySelectorAll("[data-zones]")) {
    table.classList.toggle("one-zone", [...table.querySelectorAll("[data-there]")].every(isTheReaders));
  }
  tick();
}

// Whether a cell's time of another zone is the same in the reader's.
function isTheReaders(cell) {
  const at = new Date(cell.querySelector("time").getAttribute("datetime"));
  return Math.abs(new Date(cell.dataset.there) - at) < 1000;
}

// The time of day in the reader's zone, with 24 hours.
export const clock = (ms) => new Intl.DateTimeFormat("en-GB", formats.clock).format(new Date(ms));

function local(at, style) {
  const text = new Intl.DateTimeFormat("en-GB", formats[style] ?? formats.clock).format(at);
  if (style === "minute" || at.toDateString() === new Date(now()).toDateString()) return text;
  return `${new Intl.DateTimeFormat("en-GB", formats.day).format(at)} ${text}`;
}

function tick() {
  const at = now();
  for (const each of document.querySelectorAll("[data-age]")) {
    setText(each, duration(Math.max(0, at - Number(each.dataset.age))));
  }
  for (const each of document.querySelectorAll("[data-due]")) {
    const left = Number(each.dataset.due) - at;
    setText(each, left > 0 ? duration(left) : "due");
  }
  for (const each of document.querySelectorAll("[data-until]")) lease(each, at);
}

function lease(each, at) {
  const left = Number(each.dataset.until) - at;
  const share = Math.max(0, Math.min(1, left / Math.max(1, Number(each.dataset.lease))));
  each.classList.toggle("low", share < 0.2);
  const word = each.querySelector("[data-left]");
  if (word) setText(word, left > 0 ? duration(left) : "ended");
  const ring = each.querySelector(".ring");
  if (ring) {
    ring.classList.toggle("low", share < 0.2);
    ring.querySelector(".a").setAttribute("stroke-dasharray", `${(31.4 * share).toFixed(1)} 31.4`);
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A duration as the server writes it: 12 ms, 1.4 s, 31 s, 8 min 12 s, 26 min, 1 h 12 min, 6 d 23 h.
export function duration(ms) {
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10} s`;
  const all = Math.floor(seconds);
  if (all < 60) return `${all} s`;
  if (all < 3600) return two(all, 60, "min", 1, "s");
  if (all < 86400) return two(all, 3600, "h", 60, "min");
  return two(all, 86400, "d", 3600, "h");
}

// A second unit is shown only below ten of the first.
function two(all, size, unit, smaller, smallerUnit) {
  const whole = Math.floor(all / size);
  const rest = Math.floor((all % size) / smaller);
  return `${whole} ${unit}${rest && whole < 10 ? ` ${rest} ${smallerUnit}` : ""}`;
}
