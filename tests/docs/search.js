// The search of the static site. A plain script, because browsers load neither modules nor JSON from files on a disk.
// The same rules as on a hub (web/pages/docs/searching.py): every word must occur in the heading, the title or the text.
(function () {
  const MOST_RESULTS = 50;
  const MOST_WORDS = 8;
  const EXCERPT = 180;
  const results = document.getElementById("results");
  const status = document.getElementById("search-status");
  const field = document.getElementById("docs-search");
  document.getElementById("without-script").hidden = true;

  const query = new URLSearchParams(location.search).get("q") ?? "";
  const words = (query.toLowerCase().match(/[\p{L}\p{N}_./:-]*[\p{L}\p{N}_]/gu) ?? []).slice(0, MOST_WORDS);
  field.value = query;

  const times = (text, word) => Math.min(text.split(word).length - 1, 3);
  const score = ([, page, heading, text]) =>
    words.reduce((sum, word) => {
      const inTitles = 8 * heading.toLowerCase().includes(word) + 5 * page.toLowerCase().includes(word);
      return sum + inTitles + times(text.toLowerCase(), word);
    }, 0);

  function excerpt(text) {
    const places = words.map((word) => [text.toLowerCase().indexOf(word), word]).filter(([place]) => place >= 0);
    const shown = document.createElement("p");
    shown.className = "caption";
    if (places.length === 0) {
      shown.textContent = text.slice(0, EXCERPT);
      return shown;
    }
    const [place, word] = places.sort(([one], [other]) => one - other)[0];
    const start = place < EXCERPT / 3 ? 0 : text.indexOf(" ", place - EXCERPT / 3) + 1;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(place, place + word.length);
    const after = text.slice(place + word.length, Math.max(start, 0) + EXCERPT);
    shown.append(start ? "… " : "", text.slice(start, place), mark, after);
    return shown;
  }

  function show(entries) {
    const found = entries.filter(([, page, heading, text]) => {
      const all = `${page} ${heading} ${text}`.toLowerCase();
      return words.every((word) => all.includes(word));
    });
    found.sort((one, other) => score(other) - score(one));
    for (const [address, page, heading, text] of found.slice(0, MOST_RESULTS)) {
      const link = document.createElement("a");
      link.href = address;
      link.textContent = heading ? `${page}: ${heading}` : page;
      const item = document.createElement("li");
      item.append(link, excerpt(text));
      results.append(item);
    }
    const count = Math.min(found.length, MOST_RESULTS);
    status.textContent = count ? `${count} section${count === 1 ? "" : "s"}` : "Nothing matches. Try fewer words.";
  }

  if (words.length === 0) {
    status.textContent = "Enter words that must occur in the same section.";
    return;
  }
  const index = document.createElement("script");
  index.src = "search-index.js";
  index.onload = () => show(window.docsIndex);
  index.onerror = () => (status.textContent = "The index of the search, search-index.js, was not found.");
  document.head.append(index);
})();
