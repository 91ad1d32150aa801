// A form with a text to edit: the browser asks before it leaves a page with unsaved changes.
export default function watch(form) {
  const text = form.elements.content;
  if (!text) return;
  // The text of a form that was rejected is unsaved too.
  const saved = document.querySelector(".error-summary") ? null : text.value;
  let submitting = false;
  form.addEventListener("submit", () => (submitting = true));
  addEventListener("pageshow", () => (submitting = false));
  addEventListener("beforeunload", (event) => {
    if (!submitting && text.value !== saved) event.preventDefault();
  });
}
