// Uploads: files and folders are dropped or chosen several times, listed, and sent with a progress bar.
const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

// The files of a dropped folder, with their paths.
async function filesOf(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [[entry.fullPath.replace(/^\//, ""), file]];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    for (const one of some) found.push(...(await filesOf(one)));
  }
}

export default function upload(form) {
  const input = form.elements.files;
  const drop = form.querySelector(".drop");
  const list = form.querySelector(".chosen");
  const sending = form.querySelector(".sending");
  const bar = sending.querySelector("progress");
  const problem = form.querySelector("p.error-summary");
  const status = form.querySelector("[role=status]");
  const submit = form.querySelector("button:not([type])");
  const stop = form.querySelector("[data-stop]");
  const chosen = new Map();
  let request = null;

  const isTooLarge = (file) => file.size > Number(form.dataset.max);
  const show = () => {
    list.replaceChildren(
      ...[...chosen].map(([path, file]) => {
        const line = document.createElement("li");
        const name = document.createElement("bdi");
        name.textContent = path;
        const remove = document.createElement("button");
        remove.type = "button";
        remove.className = "button button-small";
        remove.textContent = "Remove";
        remove.setAttribute("aria-label", `Remove ${path}`);
        remove.addEventListener("click", () => {
          chosen.delete(path);
          show();
          input.focus();
        });
        line.append(name, ` ${size(file.size)}${isTooLarge(file) ? ", too large" : ""} `, remove);
        return line;
      }),
    );
    list.hidden = chosen.size === 0;
    const total = [...chosen.values()].reduce((sum, file) => sum + file.size, 0);
    status.textContent = chosen.size ? `${chosen.size} file${chosen.size === 1 ? "" : "s"}, ${size(total)}` : "";
  };
  const add = (files) => {
    for (const [path, file] of files) chosen.set(path, file);
    // The list has them now, and the same file can be chosen again.
    input.value = "";
    show();
  };
  const refuse = (text) => {
    problem.textContent = text;
    problem.hidden = false;
    problem.focus();
  };
  const finish = () => {
    request = null;
    sending.hidden = stop.hidden = true;
    submit.removeAttribute("aria-busy");
    submit.textContent = "Upload";
  };
  // The hub answers with the form and its errors, or with an error page.
  const reason = (page) =>
    [...page.querySelectorAll("main .error-summary li, main h1 + p")].map((line) => line.textContent).join(" ");

  const send = () => {
    const tooLarge = [...chosen].filter(([, file]) => isTooLarge(file)).map(([path]) => path);
    if (chosen.size === 0) return refuse("Choose a file.");
    if (tooLarge.length) return refuse(`Too large: ${tooLarge.join(", ")}. Remove it and try again.`);
    problem.hidden = true;
    const body = new FormData(form);
    body.delete("files");
    for (const [path, file] of chosen) body.append("files", file, path);
    request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.value = event.loaded / event.total;
      status.textContent =
        event.loaded < event.total ? `${size(event.loaded)} of ${size(event.total)}` : "Sent. The hub is storing it…";
    });
    request.addEventListener("load", () => {
      const { status: code, responseText: text } = request;
      const address = request.getResponseHeader("location");
      finish();
      if (code === 201) return location.assign(address);
      const page = new DOMParser().parseFromString(text, "text/html");
      // Changed only by a conflict: the next attempt replaces what the message named.
      const seen = page.querySelector("#form [name=seen]")?.value;
      if (seen) form.elements.seen.value = seen;
      show();
      refuse(reason(page) || `The hub answered with status ${code}.`);
    });
    request.addEventListener("error", () => {
      finish();
      refuse("The connection was lost. Nothing was changed. Try again.");
    });
    request.addEventListener("abort", () => {
      finish();
      show();
    });
    request.open("POST", form.action);
    request.setRequestHeader("X-Requested-With", "XMLHttpRequest");
    bar.value = 0;
    sending.hidden = stop.hidden = false;
    submit.setAttribute("aria-busy", "true");
    submit.textContent = "Uploading…";
    request.send(body);
  };

  input.addEventListener("change", () => add([...input.files].map((file) => [file.webkitRelativePath || file.name, file])));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!request) send();
  });
  stop.addEventListener("click", () => request?.abort());
  // On the whole page: a browser opens a file that is dropped beside the box, and the form is lost. Text is not a file.
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", async (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    drop.classList.remove("over");
    // Read at once: the browser forgets the items after this event. Not every file has an entry.
    const dropped = [...event.dataTransfer.items]
      .filter((item) => item.kind === "file")
      .map((item) => [item.webkitGetAsEntry?.(), item.getAsFile()]);
    try {
      add((await Promise.all(dropped.map(([entry, file]) => (entry ? filesOf(entry) : [[file.name, file]])))).flat());
    } catch {
      refuse("Some files could not be read.");
    }
  });
  addEventListener("beforeunload", (event) => {
    if (request) event.preventDefault();
  });
  // Without script, the files are last because the hub reads the other fields first.
  form.prepend(drop);
  for (const hidden of form.querySelectorAll("[data-with-script]")) hidden.hidden = false;
}
