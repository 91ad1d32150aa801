// The live list of deliveries: rows change in place, new rows wait behind a button with their count.
const PAUSE = 2000;
const LONGEST_PAUSE = 30000;

export default function follow(status, { showLocalTimes }) {
  const [button, message] = status.children;
  const table = document.querySelector(".table[aria-label=Deliveries]");
  const body = table?.tBodies?.[0] ?? table?.querySelector("tbody");
  const limit = Number(status.dataset.limit);
  const number = (row) => Number(row.dataset.seq);
  let newest = Math.max(0, ...[...(body?.rows ?? [])].map(number));
  let waiting = [];
  let pause = PAUSE;

  const update = (rows) => {
    for (const row of rows) {
      const shown = body?.querySelector(`tr[data-seq="${row.dataset.seq}"]`);
      if (shown && shown.dataset.version !== row.dataset.version && !shown.contains(document.activeElement)) {
        shown.replaceWith(row);
      }
    }
    waiting = rows.filter((row) => number(row) > newest);
    button.hidden = waiting.length === 0;
    button.textContent = `${waiting.length >= limit ? `${limit}+` : waiting.length} new`;
  };

  button.addEventListener("click", () => {
    // Without a table, or if rows would be missing between the new and the old ones.
    if (!body || waiting.length >= limit) return location.reload();
    newest = Math.max(...waiting.map(number));
    body.prepend(...waiting);
    for (const row of [...body.rows].slice(limit)) row.remove();
    const count = document.querySelector("[data-count]");
    if (count) {
      const total = Number(count.dataset.count) + waiting.length;
      count.dataset.count = total;
      count.textContent = `${total.toLocaleString("en")} ${total === 1 ? "delivery" : "deliveries"}`;
    }
    waiting = [];
    button.hidden = true;
    table.focus();
    showLocalTimes(body);
  });

  const poll = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(status.dataset.rows, { redirect: "manual" });
        if (response.status < 500 && !response.ok) {
          // Signed out, or the webhook was deleted.
          message.textContent = "Updates have stopped. Reload the page.";
          return;
        }
        if (!response.ok) throw new Error(response.status);
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        update([...page.querySelectorAll("tr[data-seq]")].map((row) => document.importNode(row, true)));
        if (body) showLocalTimes(body);
        message.textContent = "";
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
