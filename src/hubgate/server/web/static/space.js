// The state and the log of a Space, while its page is open: new lines are added below.
const PAUSE = 2000;
const LONGEST_PAUSE = 30000;
const MOST_LINES = 2000;

export default function follow(part, { showLocalTimes }) {
  const log = part.querySelector("pre");
  const message = part.querySelector("[role=status]");
  let pause = PAUSE;
  log.scrollTop = log.scrollHeight;

  const update = (page) => {
    const state = document.getElementById("space-state");
    const fresh = page.getElementById("space-state");
    if (state && fresh && state.dataset.version !== fresh.dataset.version) {
      state.replaceWith(fresh);
      showLocalTimes(fresh);
    }
    const last = Number(log.lastElementChild?.dataset.n ?? 0);
    const lines = [...page.querySelectorAll("span[data-n]")].filter((line) => Number(line.dataset.n) > last);
    if (lines.length === 0) return;
    // A reader who has scrolled up stays there.
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.append(...lines);
    showLocalTimes(log);
    while (log.childElementCount > MOST_LINES) log.firstElementChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  };

  const poll = async () => {
    if (!document.hidden) {
      const after = log.lastElementChild?.dataset.n ?? 0;
      try {
        const response = await fetch(`${part.dataset.live}&after=${after}`, { redirect: "manual" });
        if (response.status < 500 && !response.ok) {
          // Signed out, or the Space was deleted.
          message.textContent = "Updates have stopped. Reload the page.";
          return;
        }
        if (!response.ok) throw new Error(response.status);
        update(new DOMParser().parseFromString(await response.text(), "text/html"));
        if (log.childElementCount) message.textContent = "";
        pause = PAUSE;
      } catch {
        pause = Math.min(2 * pause, LONGEST_PAUSE);
        message.textContent = "Connection lost. Trying again…";
      }
    }
    setTimeout(poll, pause);
  };
  setTimeout(poll, PAUSE);
}
