// Suggestions for names to watch. A chosen name becomes a line of the text field.
const PAUSE = 150;

export default function suggest(part) {
  const input = part.querySelector("input");
  const options = part.querySelector("datalist");
  const lines = document.getElementById(part.dataset.lines);
  const status = part.querySelector("[role=status]");
  let timer;

  const add = (name) => {
    const present = lines.value.split("\n").map((line) => line.trim());
    if (!present.includes(name)) lines.value = [...present.filter(Boolean), name].join("\n");
    input.value = "";
    options.replaceChildren();
    status.textContent = `Added ${name}`;
  };
  const refresh = async () => {
    const text = input.value.trim();
    if (!text) return options.replaceChildren();
    const response = await fetch(`${part.dataset.address}?${new URLSearchParams({ q: text })}`, { redirect: "manual" });
    if (!response.ok || text !== input.value.trim()) return;
    options.replaceChildren(...(await response.json()).map((name) => new Option(name, name)));
  };

  input.addEventListener("input", () => {
    status.textContent = "";
    if ([...options.children].some((option) => option.value === input.value)) return add(input.value);
    clearTimeout(timer);
    timer = setTimeout(() => refresh().catch(() => {}), PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (input.value.trim()) add(input.value.trim());
  });
  part.querySelector("button").addEventListener("click", () => {
    if (input.value.trim()) add(input.value.trim());
    input.focus();
  });
  part.hidden = false;
}
