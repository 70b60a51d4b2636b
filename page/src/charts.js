/**
 * What all figures share: Observable Plot draws them, marks carry the clusters they show, and a
 * figure is drawn again when its room gets another width.
 */
import { h } from "./dom.js";

/** Above how many clusters a figure by cluster takes the whole width. */
export const MANY = 24;
/** The least width of a column of a cluster. */
export const COLUMN = 19;

/**
 * Options of a mark that let its elements carry `data-cluster`.
 *
 * @param {any[]} data  What the mark shows, without a transform that changes the order.
 * @param {(row: any) => string | number} clusterOf
 */
export const tagged = (data, clusterOf) => ({
  render(index, scales, values, dimensions, context, next) {
    const group = next(index, scales, values, dimensions, context);
    for (const mark of group?.children ?? []) {
      const own = mark.__data__;
      const row = data[own?.[0] ?? own];
      if (row !== undefined) mark.setAttribute("data-cluster", String(clusterOf(row)));
    }
    return group;
  },
});

/**
 * A figure with a heading and a note.
 *
 * @param {object} options
 * @param {string} [options.title]
 * @param {string} options.label  Says what the figure shows, for those who do not see it.
 * @param {(width: number) => (SVGElement | HTMLElement)[]} options.draw
 * @param {any} [options.note]
 * @param {boolean} [options.tall]  Scrolls in its own box where there is much.
 */
export function figure({ title, label, draw, note, tall = false }) {
  const room = h("div", { class: `drawing${tall ? " tall" : ""}` });
  let before = 0;
  new ResizeObserver(([{ contentRect }]) => {
    const width = Math.floor(contentRect.width);
    if (!width || width === before) return;
    before = width;
    const drawn = draw(width);
    for (const one of drawn) one.removeAttribute("class");
    const wider = drawn.some((one) => Number(one.getAttribute("width")) > width);
    // What scrolls must be reached by keys.
    if (wider || tall) room.setAttribute("tabindex", "0");
    else room.removeAttribute("tabindex");
    room.replaceChildren(...drawn);
  }).observe(room);
  room.setAttribute("role", "group");
  room.setAttribute("aria-label", label);
  return h("figure", {}, title && h("h3", {}, title), room, note && h("figcaption", { class: "note" }, note));
}

/** The columns or rows of clusters: their numbers as texts, in order. */
export const numbers = (/** @type {any} */ summary) => summary.clusters.map((/** @type {any} */ cluster) => String(cluster.number));

/** Two figures, beside each other unless clusters are too many for that. */
export const pair = (/** @type {any} */ summary, /** @type {any[]} */ ...figures) =>
  h("div", { class: summary.clusters.length > MANY ? "two stacked" : "two" }, ...figures);

/** A section of the page. */
export const section = (/** @type {string} */ id, /** @type {string} */ title, /** @type {any[]} */ ...children) =>
  h("section", { id, "aria-labelledby": `h-${id}` }, h("h2", { id: `h-${id}` }, title), ...children);

/** A short text that explains. */
export const note = (/** @type {any[]} */ ...children) => h("p", { class: "note" }, ...children);

/** A coloured chip with the number of a cluster, and its name. */
export function chip(/** @type {import("./index.js").Page} */ page, /** @type {number | null} */ number, { name = true } = {}) {
  const cluster = number === null ? undefined : page.clusters.get(number);
  if (number === null || !cluster) return h("span", { class: "chip" }, number === null ? "–" : String(number));
  return h(
    "span",
    { class: "chip", title: cluster.name ?? false },
    h("i", { class: "dot", style: { background: cluster.colour } }),
    h("b", {}, String(number)),
    name && cluster.name && h("span", { class: "name" }, cluster.name),
  );
}

/** A table whose cells say what they are where it is narrow. */
export function table(/** @type {string} */ label, /** @type {[string, string?][]} */ head, /** @type {{attributes?: any, cells: any[]}[]} */ rows) {
  return h(
    "div",
    { class: `table${rows.length > 14 ? " long" : ""}`, tabindex: rows.length > 14 ? 0 : null, role: "group", "aria-label": label },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, head.map(([text, title]) => h("th", { scope: "col", title }, text)))),
      h(
        "tbody",
        {},
        rows.map(({ attributes = {}, cells }) =>
          h(
            "tr",
            attributes,
            cells.map((cell, i) => (i ? h("td", { "data-label": head[i][0] }, h("span", {}, cell)) : h("th", { scope: "row" }, cell))),
          ),
        ),
      ),
    ),
  );
}
