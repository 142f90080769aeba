// Live updates: the server sends the cells that changed, and they change in place.
// No element is replaced, added or removed, so focus, hover, scroll and selections stay.
import { clock, refreshTimes } from "./times.js";

const POLL_MS = 5000;
const POLLS_BEFORE_EVENTS = 24; // then events are tried again
const SILENCE_MS = 25000; // the server sends something every ten seconds
const LOST_PANEL_MS = 30000;
const PAUSED_KEY = "forq.live.paused";

let source = null;
let pollTimer = 0;
let failures = 0;
let polls = 0;
let heardAt = Date.now();
let lastAt = Date.now();
let lostAt = 0;
let away = false; // whether the latest poll was not answered

const path = () => document.body.dataset.livePath;
const paused = () => sessionStorage.getItem(PAUSED_KEY);

export function startLive() {
  if (!path()) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : resume()));
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => event.persisted && resume());
  setInterval(watch, 1000);
  resume();
}

// Polls if events do not arrive, because a proxy may hold them back without ending the stream.
function watch() {
  if (source && Date.now() - heardAt > SILENCE_MS) {
    stop();
    polls = 0;
    poll();
  }
  show();
}

// Pauses or resumes the updates, polling included.
export function pauseLive() {
  if (!path()) return;
  if (paused()) sessionStorage.removeItem(PAUSED_KEY);
  else sessionStorage.setItem(PAUSED_KEY, String(Date.now()));
  if (paused()) stop();
  else resume();
  show();
}

export const isPaused = () => Boolean(paused());

function resume() {
  stop();
  if (paused() || document.hidden) return show();
  if (failures >= 3) {
    failures = 0;
    polls = 0;
    return poll();
  }
  heardAt = Date.now();
  source = new EventSource(path());
  source.onmessage = (event) => {
    failures = 0;
    heardAt = Date.now();
    apply(JSON.parse(event.data));
  };
  source.onerror = () => {
    failures += 1;
    if (!lostAt) lostAt = lastAt;
    // After an error answer of the server, poll. EventSource reconnects by itself only after a lost connection.
    if (source && (source.readyState === EventSource.CLOSED || failures >= 3)) {
      stop();
      failures = 0;
      polls = 0;
      poll();
    }
    show();
  };
  show();
}

function stop() {
  if (source) source.close();
  source = null;
  clearTimeout(pollTimer);
}

async function poll() {
  if (paused() || document.hidden) return;
  const wasAway = away;
  try {
    const answer = await fetch(path().replace("/live/", "/live/poll/"), {
      headers: { "HX-Request": "true" },
    });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(String(answer.status));
    apply(await answer.json());
    away = false;
  } catch {
    away = true;
    if (!lostAt) lostAt = lastAt;
  }
  // The server is back: use events again, because they failed for its absence and not for a proxy.
  if (wasAway && !away) {
    failures = 0;
    return resume();
  }
  show();
  polls += 1;
  pollTimer = setTimeout(polls < POLLS_BEFORE_EVENTS ? poll : resume, POLL_MS);
}

function apply(cells) {
  lastAt = Date.now();
  lostAt = 0;
  document.documentElement.classList.remove("is-lost");
  for (const [key, html] of Object.entries(cells)) {
    for (const old of document.querySelectorAll(`[data-live="${CSS.escape(key)}"]`)) patch(old, html);
  }
  if (document.querySelector("[data-wait-for-queue]") && /[1-9]/.test(cells["nav:queues"] ?? "")) location.reload();
  if (document.querySelector("[data-wait-for-schedule]") && /[1-9]/.test(cells["nav:schedules"] ?? "")) location.reload();
  if (document.querySelector("[data-wait-for-worker]") && /[1-9]/.test(cells["nav:workers"] ?? "")) location.reload();
  document.dispatchEvent(new CustomEvent("forq:live", { detail: cells }));
  refreshTimes();
  show();
}

// Gives an element the content and attributes of another version of itself.
function patch(old, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  if (!fresh) return;
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of ["title", "class", "hidden"]) {
    if (!fresh.hasAttribute(name) && old.hasAttribute(name)) old.removeAttribute(name);
  }
  if (old.contains(document.activeElement) && old !== document.activeElement) return patchFocused(old, fresh);
  if (old.innerHTML !== fresh.innerHTML) old.replaceChildren(...fresh.childNodes);
}

// The same if something inside has the focus: only texts and attributes of the same elements change.
function patchFocused(old, fresh) {
  if (old.childNodes.length !== fresh.childNodes.length) return;
  [...old.childNodes].forEach((node, place) => {
    const other = fresh.childNodes[place];
    if (node.nodeType === Node.TEXT_NODE && other.nodeType === Node.TEXT_NODE) {
      if (node.data !== other.data) node.data = other.data;
    } else if (node.nodeName === other.nodeName && node.nodeType === Node.ELEMENT_NODE) {
      for (const { name, value } of other.attributes) node.setAttribute(name, value);
      patchFocused(node, other);
    }
  });
}

// The text in the bar: Live, or since when it is paused or no longer live.
function show() {
  const state = document.getElementById("live-state");
  const button = document.getElementById("live-pause");
  if (!state || !button) return;
  const since = Number(paused());
  const lost = !since && lostAt && Date.now() - lostAt > 2500;
  state.classList.toggle("is-paused", Boolean(since));
  state.classList.toggle("is-lost", Boolean(lost));
  document.documentElement.classList.toggle("is-lost", Boolean(lost));
  let text = "Live";
  if (since) text = `Paused ${ago(Date.now() - since)}`;
  else if (lost) text = `Not live since ${clock(lostAt)}`;
  const word = state.querySelector("span");
  if (word.textContent !== text) word.textContent = text;
  const label = since ? "Resume live updates" : "Pause live updates";
  if (button.getAttribute("aria-label") !== label) {
    button.setAttribute("aria-label", label);
    button.title = `${label} (p)`;
    button.querySelector("use").setAttribute("href", since ? "#i-play" : "#i-pause");
  }
  const panel = document.getElementById("lost");
  if (panel) panel.hidden = !(lost && Date.now() - lostAt > LOST_PANEL_MS);
}

function ago(ms) {
  const minutes = Math.floor(ms / 60000);
  return minutes < 1 ? "just now" : `${minutes} min ago`;
}
