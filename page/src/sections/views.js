/** What each view brought, and how much of it consensus and clusters explain. */
import * as Plot from "@observablehq/plot";
import { COLUMN, figure, note, numbers, pair, section, table, tagged } from "../charts.js";
import { filled } from "../colour.js";
import { h } from "../dom.js";
import { count, counted, fitted, percent, two } from "../format.js";

/** @returns {HTMLElement} */
export function viewSection(/** @type {import("../index.js").Page} */ page) {
  const { views } = page.summary;
  const known = views.some((/** @type {any} */ view) => view.consensus !== null || view.explained !== null);
  const byCluster = views.some((/** @type {any} */ view) => view.by_cluster);
  return section("views", "The views", pair(page.summary, known && variance(page), byCluster && heat(page)), viewTable(page), gaps(page));
}

const margin = (/** @type {number} */ width) => (width < 500 ? 112 : 170);
const label = (/** @type {any[]} */ views, /** @type {number} */ left) =>
  Plot.text(views, {
    y: (_, v) => v,
    frameAnchor: "left",
    textAnchor: "end",
    dx: -6,
    text: ({ name }) => fitted(name, left - 10),
    title: ({ name }) => name,
    fontSize: 12,
  });

/** Bars of the share that consensus explains, in them that of the clusters. */
function variance(/** @type {import("../index.js").Page} */ page) {
  const { views } = page.summary;
  const draw = (/** @type {number} */ width) => {
    const left = margin(width);
    const says = (view) => `${view.name}: consensus explains ${percent(view.consensus)}, clusters ${percent(view.explained)}`;
    return [
      Plot.plot({
        width,
        height: 26 * views.length + 34,
        marginLeft: left,
        marginRight: 40,
        marginTop: 6,
        marginBottom: 26,
        x: { domain: [0, 1], label: null, percent: false, ticks: 5, tickFormat: (value) => `${Math.round(100 * value)} %`, tickSize: 0 },
        y: { domain: views.map((_, v) => v), axis: null, padding: 0.3 },
        marks: [
          Plot.gridX({ ticks: 5, stroke: "var(--rule)", strokeOpacity: 1 }),
          Plot.barX(views, { y: (_, v) => v, x1: 0, x2: (view) => view.consensus ?? 0, fill: "var(--pale)", title: says }),
          Plot.barX(views, { y: (_, v) => v, x1: 0, x2: (view) => view.explained ?? 0, fill: "var(--accent)", insetTop: 3, insetBottom: 3, title: says }),
          label(views, left),
        ],
      }),
    ];
  };
  return figure({
    title: "Explained variance",
    label: "Share of each view's variance that consensus and clusters explain",
    draw,
    note: h("span", {}, h("i", { class: "key", style: { background: "var(--pale)" } }), "the consensus ", h("i", { class: "key", style: { background: "var(--accent)" } }), "the clusters alone. What neither explains is the view's own, or noise."),
  });
}

/** Views by clusters. */
function heat(/** @type {import("../index.js").Page} */ page) {
  const { summary } = page;
  const { views } = summary;
  const columns = numbers(summary);
  const cells = views.flatMap((view, v) => columns.map((cluster, c) => ({ v, cluster, view, share: view.by_cluster?.[c] ?? null })));
  const most = Math.max(0.01, ...cells.map(({ share }) => share ?? 0));
  const draw = (/** @type {number} */ width) => {
    const left = margin(width);
    return [
      Plot.plot({
        width: Math.max(width, left + COLUMN * columns.length + 8),
        height: 26 * views.length + 34,
        marginLeft: left,
        marginRight: 4,
        marginTop: 26,
        marginBottom: 6,
        x: { domain: columns, axis: "top", tickSize: 0, label: null, padding: 0.06 },
        y: { domain: views.map((_, v) => v), axis: null, padding: 0.08 },
        color: { type: "identity" },
        marks: [
          Plot.cell(cells, {
            x: "cluster",
            y: "v",
            fill: ({ share }) => filled(share, most),
            title: ({ view, cluster, share }) => `${view.name}, cluster ${cluster}: ${share === null ? "too few samples" : percent(share)}`,
            ...tagged(cells, ({ cluster }) => cluster),
          }),
          label(views, left),
        ],
      }),
    ];
  };
  return figure({
    title: "By cluster",
    label: "Share of each view's variance that is explained in each cluster",
    draw,
    note: h("span", {}, h("span", { class: "scale" }, "0 %", h("i", { class: "filling" }), percent(most)), "Which clusters a view tells apart from the others."),
  });
}

function viewTable(/** @type {import("../index.js").Page} */ page) {
  return table(
    "Table of views",
    [["view, in order"], ["samples"], ["features"], ["new"], ["known before"], ["agreement", "share of the view that the consensus before it explains, on samples left out"], ["by consensus"], ["by clusters"]],
    page.summary.views.map((/** @type {any} */ view) => ({
      cells: [view.name, count(view.n_samples), count(view.n_features), count(view.n_new), count(view.n_shared), two(view.agreement), percent(view.consensus), percent(view.explained)],
    })),
  );
}

/** What was missing, where something was. */
function gaps(/** @type {import("../index.js").Page} */ page) {
  const { views } = page.summary;
  const listed = (/** @type {string} */ key, /** @type {string} */ noun) =>
    views.filter((/** @type {any} */ view) => view[key]).map((/** @type {any} */ view) => `${counted(view[key], noun)} of ${view.name}`).join(", ");
  const [empty, missing] = [listed("n_empty", "row"), listed("n_missing", "cell")];
  return [empty && note(`Rows of zeros were taken for samples that a view lacks: ${empty}.`), missing && note(`Missing cells: ${missing}.`)];
}
