/** The table of clusters: the way to choose one by keys, and the place to name it. */
import { section } from "../charts.js";
import { h } from "../dom.js";
import { called, count, percent, two } from "../format.js";

const COLUMNS = [
  { key: "number", word: "cluster" },
  { key: "size", word: "samples" },
  { key: "share", word: "share" },
  { key: "confidence", word: "confidence", title: "mean probability of being in the right cluster" },
  { key: "stability", word: "stability", title: "how much of the cluster is found again when samples are drawn anew" },
  { key: "trusted", word: "trusted" },
];

/** @returns {HTMLElement} */
export function clusterSection(/** @type {import("../index.js").Page} */ page) {
  const { clusters } = page.summary;
  const body = h("tbody");
  let [by, down] = ["", false];

  const heads = COLUMNS.map(({ key, word, title }) => {
    const sort = h("button", { type: "button", class: "sort", title, onclick: () => order(key) }, word);
    return { key, cell: h("th", { scope: "col" }, sort) };
  });
  function order(/** @type {string} */ key) {
    down = key === by ? !down : key !== "number" && key !== "confidence" && key !== "stability";
    by = key;
    for (const head of heads) {
      if (head.key === by) head.cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.cell.removeAttribute("aria-sort");
    }
    const value = (/** @type {any} */ row) => (row[by] === null ? -1 : Number(row[by]));
    const sorted = [...clusters].sort((a, b) => (down ? value(b) - value(a) : value(a) - value(b)));
    body.replaceChildren(...sorted.map((one) => rows.get(one.number)));
  }
  const most = Math.max(...clusters.map((/** @type {any} */ one) => one.share), 0);
  const rows = new Map(clusters.map((/** @type {any} */ one) => [one.number, row(page, one, most)]));
  order("number");
  body.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => walk(page, body, event));
  return section(
    "clusters",
    "The clusters",
    h("p", { class: "note screen" }, "Choose a cluster, here or in any figure, to see it everywhere. Arrow keys go on to the next, Escape lets go."),
    h(
      "div",
      { class: `table${clusters.length > 14 ? " long" : ""}`, role: "group", "aria-label": "Table of clusters" },
      h("table", { class: "clusters" }, h("thead", {}, h("tr", {}, heads.map(({ cell }) => cell))), body),
    ),
  );
}

/** A row; its first cell is a button, and a click anywhere in it counts. */
function row(/** @type {import("../index.js").Page} */ page, /** @type {any} */ cluster, /** @type {number} */ most) {
  const cell = (/** @type {string} */ label, /** @type {any[]} */ ...children) => h("td", { "data-label": label }, ...children);
  const meter = (/** @type {number | null} */ share, /** @type {string} */ text) =>
    h("span", { class: "meter" }, text, h("i", { style: { width: `${100 * Math.max(0, share ?? 0)}%` } }));
  return h(
    "tr",
    { "data-cluster": cluster.number },
    h(
      "th",
      { scope: "row" },
      h(
        "button",
        { type: "button", class: "choose", "data-cluster": cluster.number, "aria-pressed": "false", "aria-label": `Cluster ${called(cluster)}` },
        h("i", { class: "dot", style: { background: cluster.colour } }),
        h("b", {}, String(cluster.number)),
        cluster.name && h("span", { class: "name" }, cluster.name),
      ),
      page.actions.rename && rename(page, cluster),
    ),
    cell("samples", count(cluster.size)),
    cell("share", meter(cluster.share / (most || 1), percent(cluster.share))),
    cell("confidence", cluster.confidence === null ? "–" : meter(cluster.confidence, two(cluster.confidence))),
    cell("stability", cluster.stability === null ? "–" : meter(cluster.stability, two(cluster.stability))),
    cell("trusted", cluster.trusted === null ? "–" : cluster.trusted ? h("span", { class: "yes" }, "yes") : h("span", { class: "no" }, "no")),
  );
}

/** Arrow keys go from row to row, and choose. */
function walk(/** @type {import("../index.js").Page} */ page, /** @type {HTMLElement} */ body, /** @type {KeyboardEvent} */ event) {
  const buttons = /** @type {HTMLElement[]} */ ([...body.querySelectorAll("button.choose")]);
  const at = buttons.indexOf(/** @type {any} */ (document.activeElement));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  const next = buttons[Math.min(buttons.length - 1, Math.max(0, to))];
  next.focus();
  page.store.cluster(Number(next.dataset.cluster));
}

/** A form in place of the button, until the name is given. */
function rename(/** @type {import("../index.js").Page} */ page, /** @type {any} */ cluster) {
  const box = h("span", { class: "rename", "data-own-click": true });
  const problem = h("span", { class: "problem", role: "alert" });
  const open = h("button", { type: "button", class: "quiet", "aria-label": `Rename cluster ${cluster.number}`, onclick: edit }, "rename");
  box.append(open);
  function edit() {
    const input = h("input", { value: cluster.name ?? "", maxlength: 200, "aria-label": `Name of cluster ${cluster.number}` });
    const form = h("form", {}, input, h("button", { type: "submit" }, "save"), problem);
    form.addEventListener("submit", async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        await page.actions.rename?.(cluster.number, input.value.trim());
      } catch (error) {
        problem.textContent = /** @type {Error} */ (error).message;
      }
    });
    form.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key !== "Escape") return;
      box.replaceChildren(open);
      open.focus();
    });
    box.replaceChildren(form);
    input.select();
  }
  return box;
}
