"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const [m, n] = [Number(x), Number(y)];
        return x !== "" && y !== "" && !isNaN(m) && !isNaN(n) ? m - n : x.localeCompare(y);
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
    });
  });
}
const search = document.getElementById("search");
const told = document.getElementById("found");
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll("table.sortable tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
    shown += !row.hidden;
  }
  told.textContent = words.length ? `${shown} rows` : "";
});
