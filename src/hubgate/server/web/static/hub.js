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

// Progress: the part of the page with this attribute is fetched again every two seconds, until it has it no more.
const refresh = async () => {
  const part = document.querySelector("[data-refresh]");
  if (!part) return;
  try {
    const response = await fetch(location.href);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (!response.ok || !fresh) return;
    // Buttons keep the focus unless they are gone.
    const focused = part.contains(document.activeElement) && document.activeElement.id;
    part.replaceWith(fresh);
    if (focused) document.getElementById(focused)?.focus();
  } catch {
    // The hub may be restarting.
  }
  setTimeout(refresh, 2000);
};
if (document.querySelector("[data-refresh]")) setTimeout(refresh, 2000);

// response_mode=form_post: submit the response to the app.
document.querySelector("form[data-submit]")?.submit();
