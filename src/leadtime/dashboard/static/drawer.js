// A click on a decision → its drawer. Without this file the same links open the decision's own page.
(() => {
  "use strict";
  const drawer = document.getElementById("drawer");
  const body = document.getElementById("drawer-body");
  if (!drawer || !body) return;
  let opener = null;

  /** Put the answer to `url` into `target`: by htmx where it is there, by fetch where npm was absent at build. */
  async function swap(url, target) {
    if (window.htmx) return window.htmx.ajax("GET", url, { target, swap: "innerHTML" });
    const answer = await fetch(url, { headers: { "HX-Request": "true" } });
    target.innerHTML = await answer.text();
  }

  async function open(link) {
    if (!drawer.contains(link)) opener = link;
    await swap(link.getAttribute("href"), body);
    drawer.hidden = false;
    shown(Number(body.querySelector("[data-at]")?.dataset.at) || null);
    drawer.scrollTop = 0;
    document.querySelectorAll(".decisions tr[aria-current]").forEach((row) => row.removeAttribute("aria-current"));
    const row = link.closest("tr");
    if (row) row.setAttribute("aria-current", "true");
    document.getElementById("drawer-title")?.focus({ preventScroll: true });
  }

  /** Make room beside the drawer and tell the tracks which instant it is about. */
  function shown(at) {
    document.body.classList.toggle("with-drawer", !drawer.hidden);
    document.dispatchEvent(new CustomEvent("leadtime:pin", { detail: { at } }));
    dispatchEvent(new Event("resize"));
  }

  function close() {
    if (drawer.hidden) return;
    drawer.hidden = true;
    shown(null);
    if (opener && opener.isConnected) opener.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-decision]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      open(link);
    } else if (event.target.closest("[data-close]")) {
      close();
    }
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  window.leadtime = Object.assign(window.leadtime || {}, { swap });
})();
