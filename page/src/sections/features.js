/** What makes each cluster: a heat map of all, bars of the chosen one. */
import * as Plot from "@observablehq/plot";
import { COLUMN, figure, note, numbers, pair, section, tagged } from "../charts.js";
import { around } from "../colour.js";
import { h } from "../dom.js";
import { called, clusterWords, fitted, short, shorten, two } from "../format.js";

/** @returns {HTMLElement | null} */
export function featureSection(/** @type {import("../index.js").Page} */ page) {
  const { features } = page.summary;
  if (!features.top.length && !features.note) return null;
  return section(
    "features",
    "What makes a cluster",
    features.note && note(features.note),
    features.top.length > 0 && pair(page.summary, bars(page), features.heat && heat(page)),
  );
}

/** Features that say nothing of a view but its name, where there is only one view. */
const wording = (/** @type {any} */ summary) => (/** @type {any} */ row) =>
  summary.views.length > 1 ? `${row.feature} · ${row.view}` : `${row.feature}`;

/** Features by clusters, coloured by effect. */
function heat(/** @type {import("../index.js").Page} */ page) {
  const { summary } = page;
  const { rows, effects } = summary.features.heat;
  const words = wording(summary);
  const columns = numbers(summary);
  const sizes = effects.flat().filter((value) => value !== null).map(Math.abs).sort((a, b) => a - b);
  const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1; // one huge effect would pale all others
  const cells = rows.flatMap((row, r) => columns.map((cluster, c) => ({ r, cluster, effect: effects[r][c], row })));
  const draw = (/** @type {number} */ width) => {
    const left = width < 500 ? 132 : 210;
    const full = Math.max(width, left + COLUMN * columns.length + 8);
    return [
      Plot.plot({
        width: full,
        height: 15 * rows.length + 30,
        marginLeft: left,
        marginRight: 4,
        marginTop: 26,
        marginBottom: 2,
        x: { domain: columns, axis: "top", tickSize: 0, label: null, padding: 0.06 },
        y: { domain: rows.map((_, r) => r), axis: null, padding: 0.08 },
        color: { type: "identity" },
        marks: [
          Plot.cell(cells, {
            x: "cluster",
            y: "r",
            fill: ({ effect }) => around(effect, most),
            title: ({ row, cluster, effect }) => `${words(row)}, cluster ${cluster}: ${effect === null ? "too few samples" : `effect ${two(effect)}`}`,
            ...tagged(cells, ({ cluster }) => cluster),
          }),
          Plot.text(rows, {
            y: (_, r) => r,
            frameAnchor: "left",
            textAnchor: "end",
            dx: -6,
            text: (row) => fitted(words(row), left - 8, 11),
            title: words,
            fontSize: 11,
            fill: "currentColor",
          }),
        ],
      }),
    ];
  };
  return figure({
    title: "Features by cluster",
    label: `Effect of ${rows.length} features in ${columns.length} clusters`,
    draw,
    tall: rows.length > 34,
    note: h(
      "span",
      {},
      h("span", { class: "scale" }, `−${two(most)}`, h("i", { class: "diverging" }), two(most)),
      "Standard deviations by which a cluster's mean is below or above that of all samples.",
    ),
  });
}

/** The ten strongest features of the chosen cluster. */
function bars(/** @type {import("../index.js").Page} */ page) {
  const { summary, store } = page;
  const words = wording(summary);
  const pick = h(
    "select",
    { "aria-label": "Cluster whose features are shown" },
    summary.clusters.map((/** @type {any} */ cluster) => h("option", { value: cluster.number }, shorten(called(cluster), 40))),
  );
  const title = h("h3", {});
  const place = h("div", {});
  const show = () => {
    const { clusters } = store.get();
    const number = clusters?.size === 1 ? [...clusters][0] : Number(pick.value);
    const cluster = page.clusters.get(number);
    if (!cluster) return;
    pick.value = String(number);
    const top = summary.features.top.filter((/** @type {any} */ row) => row.cluster === number);
    title.replaceChildren("Strongest features of ", clusterWords(cluster));
    place.replaceChildren(
      top.length
        ? figure({ label: `Strongest features of ${clusterWords(cluster)}`, draw: (width) => [drawBars(top, cluster, words, width)] })
        : note("No feature can be told of this cluster: it has too few samples in every view."),
    );
  };
  pick.addEventListener("change", () => store.cluster(Number(pick.value)));
  page.onEnd(store.subscribe(show));
  show();
  return h(
    "div",
    {},
    title,
    h("p", { class: "controls" }, h("label", {}, "Cluster ", pick)),
    place,
    note("Bars: the effect, in standard deviations. Right: the mean in this cluster, and of all samples."),
  );
}

/** Bars to the left and right of zero, with both means beside them. */
function drawBars(top, cluster, words, width) {
  const left = Math.min(210, Math.floor(width * 0.4));
  const right = 118;
  const flat = top.every(({ effect }) => !effect); // a single cluster: without a domain, bars of nothing fill the figure
  return Plot.plot({
    width,
    height: 30 * top.length + 42,
    marginLeft: left,
    marginRight: right,
    marginTop: 24,
    marginBottom: 18,
    x: { label: null, ticks: 4, nice: true, tickSize: 0, ...(flat && { domain: [-1, 1] }) },
    y: { domain: top.map((_, i) => i), axis: null, padding: 0.35 },
    marks: [
      Plot.gridX({ ticks: 4, stroke: "var(--rule)", strokeOpacity: 1 }),
      Plot.barX(top, {
        x: "effect",
        y: (_, i) => i,
        fill: cluster.colour,
        title: (row) => `${words(row)}: mean ${short(row.mean)}, of all ${short(row.overall_mean)}, effect ${two(row.effect)}`,
        ...tagged(top, () => cluster.number),
      }),
      Plot.ruleX([0], { stroke: "var(--line)" }),
      Plot.text(top, {
        y: (_, i) => i,
        frameAnchor: "left",
        textAnchor: "end",
        dx: -8,
        text: (row) => fitted(words(row), left - 12),
        title: words,
        fontSize: 12,
      }),
      Plot.text(top, { y: (_, i) => i, frameAnchor: "right", textAnchor: "end", dx: 56, text: (row) => short(row.mean), fontWeight: 600, fontSize: 12 }),
      Plot.text(top, { y: (_, i) => i, frameAnchor: "right", textAnchor: "end", dx: right - 6, text: (row) => short(row.overall_mean), fill: "var(--soft)", fontSize: 12 }),
      Plot.text(["cluster"], { frameAnchor: "top-right", textAnchor: "end", dx: 56, dy: -16, fill: "var(--soft)" }),
      Plot.text(["all"], { frameAnchor: "top-right", textAnchor: "end", dx: right - 6, dy: -16, fill: "var(--soft)" }),
    ],
  });
}
