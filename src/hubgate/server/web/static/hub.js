// Comfort only: every page works without this file, and controls that need it stay hidden until it runs.

// Theme: applied at once and saved in the background, so that moving through the list does not reload the page.
const form = document.querySelector(".theme-form");
if (form) {
  const select = form.elements.theme;
  form.querySelector("button").hidden = true;

  const save = async () => {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.action, { method: "POST", body, redirect: "manual" });
    // The hub answers with a redirect; anything else is a page the visitor should see.
    if (answer.type !== "opaqueredirect") form.submit();
  };

  // One after the other: the last choice must be the last to arrive.
  let saving = Promise.resolve();
  select.addEventListener("change", () => {
    document.documentElement.dataset.theme = select.value;
    saving = saving.then(save).catch(() => form.submit());
  });
}

// Copy: the button names what it copies by id. The clipboard exists only on https and loopback.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const source = document.getElementById(button.dataset.copy);
    const told = button.parentElement.querySelector("[role=status]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.value ?? source.textContent);
        told.textContent = "Copied";
      } catch {
        told.textContent = "Select it and copy by hand";
      }
      setTimeout(() => (told.textContent = ""), 4000);
    });
  }
}
