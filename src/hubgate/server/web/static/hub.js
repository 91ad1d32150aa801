// Optional: every page works without this script, and controls that need it stay hidden until it runs.

// Theme: applied at once and saved in the background, so that browsing the choices does not reload the page.
const form = document.querySelector(".theme-form");
if (form) {
  const select = form.elements.theme;
  form.querySelector("button").hidden = true;

  const save = async () => {
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.action, { method: "POST", body, redirect: "manual" });
    // The hub responds with a redirect; any other response is a page that the visitor should see.
    if (response.type !== "opaqueredirect") form.submit();
  };

  // Sequential requests: the last choice must be saved last.
  let saving = Promise.resolve();
  select.addEventListener("change", () => {
    document.documentElement.dataset.theme = select.value;
    saving = saving.then(save).catch(() => form.submit());
  });
}

// Copy: the button refers to the text by id. The clipboard API exists only on https and loopback.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    const status = button.parentElement.querySelector("[role=status]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.value ?? source.textContent);
        status.textContent = "Copied";
      } catch {
        status.textContent = "Select the text and copy it";
      }
      setTimeout(() => (status.textContent = ""), 4000);
    });
  }
}

// Allow is enabled with a delay after it becomes visible, so that the second click of a double click does nothing.
for (const button of document.querySelectorAll("button[data-hold]")) {
  let timer;
  const disableBriefly = () => {
    button.setAttribute("aria-disabled", "true");
    clearTimeout(timer);
    timer = setTimeout(() => button.removeAttribute("aria-disabled"), 600);
  };
  button.addEventListener("click", (event) => {
    if (button.hasAttribute("aria-disabled")) event.preventDefault();
  });
  addEventListener("focus", disableBriefly);
  addEventListener("pageshow", disableBriefly);
  disableBriefly();
}

// Typing into a field that belongs to a choice selects that choice.
for (const field of document.querySelectorAll("input[data-chooses]")) {
  field.addEventListener("input", () => {
    if (field.value) document.getElementById(field.dataset.chooses).checked = true;
  });
}

// Progress: a part of the page with this attribute is fetched every two seconds, until the attribute is gone.
const refresh = async () => {
  const part = document.querySelector("[data-refresh]");
  if (!part) return;
  try {
    const response = await fetch(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (!response.ok || !fresh) return;
    // A focused button stays focused if it still exists.
    const focused = part.contains(document.activeElement) && document.activeElement.id;
    part.replaceWith(fresh);
    showLocalTimes(fresh);
    if (focused) document.getElementById(focused)?.focus();
  } catch {
    // The hub may be restarting.
  }
  setTimeout(refresh, 2000);
};
if (document.querySelector("[data-refresh]")) setTimeout(refresh, 2000);

// Times: local, with how long ago they were; the title has the full time with its zone.
const UNITS = [[31557600, "y"], [2629800, "mo"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const SECONDS = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
const MINUTES = { hour: "2-digit", minute: "2-digit" };

function distance(seconds) {
  const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size) ?? [1, "s"];
  const text = `${Math.floor(Math.abs(seconds) / size)}\u00a0${unit}`;
  return seconds < 0 ? `in\u00a0${text}` : `${text}\u00a0ago`;
}

function localTime(time, precision, now) {
  const day = { day: "numeric", month: "short" };
  if (time.getFullYear() !== now.getFullYear() || precision === "date") day.year = "numeric";
  if (precision === "date") return time.toLocaleDateString("en-GB", day);
  if (precision === "clock") return time.toLocaleTimeString("en-GB", SECONDS);
  const isToday = time.toDateString() === now.toDateString();
  const clock = { ...(isToday ? {} : day), ...(precision === "seconds" ? SECONDS : MINUTES) };
  return `${time.toLocaleString("en-GB", clock).replaceAll(" ", "\u00a0")} (${distance((now - time) / 1000)})`;
}

function showLocalTimes(part) {
  const now = new Date();
  for (const shown of part.querySelectorAll("time[datetime]")) {
    const { precision } = shown.dataset;
    // These do not change.
    if (shown.title && (precision === "date" || precision === "clock")) continue;
    const time = new Date(shown.dateTime);
    const text = localTime(time, precision, now);
    if (shown.textContent !== text) shown.textContent = text;
    shown.title ||= time.toLocaleString("en-GB", { dateStyle: "full", timeStyle: "long" });
  }
}
showLocalTimes(document);
if (document.querySelector("time")) setInterval(() => showLocalTimes(document), 10000);

// response_mode=form_post: submit the response to the app.
document.querySelector("form[data-submit]")?.submit();

// Scripts of single pages: each gets its element.
for (const element of document.querySelectorAll("[data-module]")) {
  import(element.dataset.module).then((script) => script.default(element, { showLocalTimes }));
}
