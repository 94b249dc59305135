// The clock: play, pause, speed, jump, keyboard; a veil over what lies after it; and, while the ledger grows, following it.
(() => {
  "use strict";
  const page = document.getElementById("page");
  if (!page) {
    if (document.querySelector("[data-waiting]")) setTimeout(() => location.reload(), 1500);
    return;
  }
  const by = (id) => document.getElementById(id);
  const play = by("play"), slider = by("slider"), clock = by("clock"), speed = by("speed"), jumpTo = by("jump-to");
  const veil = by("veil"), needle = by("needle"), pin = by("pin"), stage = document.querySelector(".stage");
  const MINUTE = 60, TELL_EVERY_MS = 1000;
  const state = { now: Number(page.dataset.now), playing: false, follow: page.dataset.live === "1", last: 0, told: 0, telling: false, pin: null };
  document.documentElement.classList.add("js");
  const board = () => by("board");
  const start = () => Number(board().dataset.start);
  const end = () => Number(board().dataset.end);
  const iso = (s) => new Date(s * 1000).toISOString().replace(".000Z", "Z");
  const shortClock = (s) => { const text = iso(Math.floor(s)); return text.slice(17, 19) === "00" ? text.slice(11, 16) : text.slice(11, 19); };

  const recordEnd = () => Number(page.dataset.fullEnd);

  const dayClock = (s) => {
    const day = new Date(s * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
    return `${day} ${shortClock(s)}`;
  };

  /** The query of this page, with the clock (`clocked`) unless it stands at the record's end, where the report speaks. */
  function query(clocked) {
    const found = new URLSearchParams(location.search);
    found.delete("now");
    if (clocked && state.now < recordEnd()) found.set("now", iso(Math.floor(state.now / MINUTE) * MINUTE));
    const text = found.toString();
    return text ? `?${text}` : "";
  }

  function place() {
    const plot = board().querySelector(".plotbox");
    const box = plot.getBoundingClientRect(), frame = stage.getBoundingClientRect(), rows = board().querySelectorAll(".track");
    const top = rows[0].getBoundingClientRect().bottom - frame.top, bottom = rows[rows.length - 1].getBoundingClientRect().top - frame.top;
    const shareOf = (at) => (at - start()) / Math.max(1, end() - start());
    const xOf = (at) => box.left - frame.left + Math.min(1, Math.max(0, shareOf(at))) * box.width;
    const x = xOf(state.now);
    veil.hidden = needle.hidden = shareOf(state.now) >= 1;
    pin.hidden = state.pin === null || shareOf(state.pin) < 0 || shareOf(state.pin) > 1;
    board().classList.toggle("turned", state.now < recordEnd() && state.now < end());
    for (const [part, left, width] of [[veil, x, box.right - frame.left - x], [needle, x, 0], [pin, xOf(state.pin ?? 0), 0]]) {
      part.style.left = `${left}px`; part.style.top = `${top}px`; part.style.height = `${bottom - top}px`;
      if (part === veil) part.style.width = `${Math.max(0, width)}px`;
    }
  }

  function show() {
    clock.textContent = dayClock(state.now);
    clock.dateTime = iso(Math.floor(state.now));
    slider.min = start(); slider.max = end(); slider.value = Math.min(state.now, end());
    slider.setAttribute("aria-valuetext", `${shortClock(state.now)} UTC`);
    if (document.activeElement !== jumpTo) jumpTo.value = iso(Math.floor(state.now / MINUTE) * MINUTE);
    for (const row of document.querySelectorAll("#decisions tr[data-start]")) row.classList.toggle("later", Number(row.dataset.start) >= state.now);
    place();
    document.dispatchEvent(new CustomEvent("leadtime:clock", { detail: { now: state.now } }));
  }

  /** Ask the server to tell the story up to the clock again; at most one question at a time, and one a second while playing. */
  async function tell(force) {
    const minute = Math.floor(state.now / MINUTE);
    if (state.telling || (!force && minute === state.told)) return;
    if (!force && state.playing && performance.now() - state.last < TELL_EVERY_MS) return;
    state.telling = true; state.last = performance.now(); state.told = minute;
    const base = `/ledgers/${encodeURIComponent(page.dataset.ledger)}/part/`;
    const hide = by("hide-nothing")?.checked;
    try {
      await window.leadtime.swap(`${base}told${query(true)}`, by("told"));
      await window.leadtime.swap(`${base}risk${query(true)}`, by("risk"));
      await window.leadtime.swap(`${base}decisions${query(true)}`, by("decisions"));
      if (hide && by("hide-nothing")) by("hide-nothing").checked = true;
      if (force === "tracks") {
        await redraw();
      }
    } finally {
      state.telling = false;
    }
    if (Math.floor(state.now / MINUTE) !== state.told && !state.playing) tell(false);
    place();
  }

  async function redraw() {
    await window.leadtime.swap(`/ledgers/${encodeURIComponent(page.dataset.ledger)}/part/tracks${query(false)}`, by("tracks"));
    page.dataset.fullEnd = board().dataset.fullEnd;
    document.dispatchEvent(new CustomEvent("leadtime:tracks"));
  }

  function move(to, say) {
    state.now = to === recordEnd() ? to : Math.min(end(), Math.max(start(), to));
    state.follow = page.dataset.live === "1" && state.now >= end();
    show();
    tell(false);
    if (say) by("said").textContent = `${shortClock(state.now)} UTC`;
  }

  function setPlaying(on) {
    state.playing = on;
    play.textContent = on ? "❚❚" : "▶";
    play.setAttribute("aria-pressed", String(on));
    play.setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) { by("said").textContent = `paused at ${shortClock(state.now)} UTC`; tell(false); return; }
    if (state.now >= end()) move(start());
    let before = performance.now();
    const step = (at) => {
      if (!state.playing) return;
      move(state.now + ((at - before) / 1000) * Number(speed.value));
      before = at;
      if (state.now >= end()) setPlaying(false); else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  play.addEventListener("click", () => setPlaying(!state.playing));
  slider.addEventListener("input", () => move(Number(slider.value)));
  by("jump").addEventListener("submit", (event) => {
    const at = readTime(jumpTo.value);
    if (at === null || at < start() || at > end()) return; // another window: the server draws it
    event.preventDefault();
    setPlaying(false);
    move(at, true);
  });

  /** `06:05` is that time of the window's day, else an RFC 3339 instant; null when it is neither. */
  function readTime(text) {
    const short = /^(\d\d):(\d\d)(?::(\d\d))?$/.exec(text.trim());
    if (short) {
      const day = Math.floor(start() / 86400) * 86400 + Number(short[1]) * 3600 + Number(short[2]) * 60 + Number(short[3] || 0);
      return day < start() ? day + 86400 : day;
    }
    const parsed = Date.parse(text.trim());
    return Number.isNaN(parsed) ? null : Math.floor(parsed / 1000);
  }

  const shownNow = () => Math.min(state.now, end());
  const KEYS = { ArrowLeft: (n) => shownNow() - n, ArrowRight: (n) => state.now + n, Home: () => start(), End: () => recordEnd() };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input:not([type=checkbox]):not([type=range]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !by("drawer").hidden) return;
    if (event.key === " " && !event.target.closest("button, a, summary, input[type=checkbox]")) {
      event.preventDefault();
      setPlaying(!state.playing);
    } else if (KEYS[event.key]) {
      event.preventDefault();
      move(Math.round(KEYS[event.key](event.shiftKey ? 15 * MINUTE : MINUTE) / MINUTE) * MINUTE, true);
    }
  });
  by("tracks").addEventListener("change", (event) => { if (event.target.name === "worlds") event.target.form.submit(); });
  addEventListener("resize", place);

  function followLedger() {
    const events = new EventSource(`/ledgers/${encodeURIComponent(page.dataset.ledger)}/events`);
    let due = false;
    events.addEventListener("tick", () => {
      if (due) return;
      due = true;
      setTimeout(async () => {
        due = false;
        if (!state.follow) return;
        state.now = Number.MAX_SAFE_INTEGER; // past whatever the record's end will be
        await tell("tracks");
        state.now = recordEnd();
        show();
      }, 1200);
    });
    addEventListener("pagehide", () => events.close());
  }

  for (const part of [play, slider, speed]) part.disabled = false;
  document.addEventListener("leadtime:pin", (event) => { state.pin = event.detail.at; place(); });
  document.addEventListener("leadtime:drawn", place);
  state.told = Math.floor(state.now / MINUTE);
  // Tracks drawn by the server end at the clock; here the veil does that, so that the clock can move on.
  if (state.now < recordEnd()) redraw().then(show); else show();
  if (page.dataset.live === "1") followLedger();
})();
