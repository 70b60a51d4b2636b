/** How sure the clusters are of their samples: quantiles by cluster, from the columns. */
import * as Plot from "@observablehq/plot";
import { figure, note, section, tagged } from "../charts.js";
import { h } from "../dom.js";
import { called, fitted, two } from "../format.js";

/** @returns {HTMLElement | null} */
export function confidenceSection(/** @type {import("../index.js").Page} */ page) {
  const { summary, source } = page;
  if (!("confidence" in summary.columns)) return null;
  const place = h("div", { class: "waiting" }, "…");
  Promise.all([source.column("cluster"), source.column("confidence")]).then(([cluster, confidence]) => {
    const rows = quantiles(summary, /** @type {Uint8Array} */ (cluster), /** @type {Uint8Array} */ (confidence));
    place.className = "";
    place.replaceChildren(
      figure({
        label: "Confidence of the samples of each cluster",
        tall: rows.length > 34,
        draw: (width) => [draw(rows, width)],
        note: "The probability that a sample is in the right cluster. Thin line: nine samples out of ten; thick line: the middle half; dot: the median. A line that reaches below 0.5 has samples that could as well be elsewhere.",
      }),
    );
  });
  return section("confidence", "How sure", place, summary.hanging && note(`${summary.hanging} Without it, they would be in another cluster.`));
}

/** The 5, 25, 50, 75 and 95 % points of each cluster; values are bytes, so counting is enough. */
function quantiles(/** @type {any} */ summary, /** @type {ArrayLike<number>} */ cluster, /** @type {Uint8Array} */ confidence) {
  const counts = new Map(summary.clusters.map((/** @type {any} */ one) => [one.number, new Uint32Array(255)]));
  for (let i = 0; i < confidence.length; i++) {
    const own = counts.get(cluster[i]);
    if (own && confidence[i] < 255) own[confidence[i]]++;
  }
  return summary.clusters.flatMap((/** @type {any} */ one) => {
    const own = counts.get(one.number);
    const all = own.reduce((sum, many) => sum + many, 0);
    if (!all) return [];
    const points = [0.05, 0.25, 0.5, 0.75, 0.95].map((share) => {
      let left = share * all;
      const at = own.findIndex((many) => (left -= many) <= 0);
      return Math.max(0, at) / 254;
    });
    return [{ cluster: one, points }];
  });
}

function draw(/** @type {{cluster: any, points: number[]}[]} */ rows, /** @type {number} */ width) {
  const left = width < 500 ? 96 : 190;
  const y = (_, i) => i;
  const tag = tagged(rows, ({ cluster }) => cluster.number);
  const title = ({ cluster, points }) => `${called(cluster)}: median ${two(points[2])}, middle half ${two(points[1])} to ${two(points[3])}`;
  return Plot.plot({
    width,
    height: (rows.length > 34 ? 17 : 24) * rows.length + 40,
    marginLeft: left,
    marginRight: 12,
    marginTop: 24,
    marginBottom: 14,
    x: { domain: [0, 1], axis: "top", label: null, ticks: 5, tickSize: 0 },
    y: { type: "band", domain: rows.map(y), axis: null },
    color: { type: "identity" },
    marks: [
      Plot.gridX({ ticks: 5, stroke: "var(--rule)", strokeOpacity: 1 }),
      Plot.ruleX([0.5], { stroke: "var(--line)", strokeDasharray: "3 3" }),
      Plot.ruleY(rows, { y, x1: ({ points }) => points[0], x2: ({ points }) => points[4], stroke: ({ cluster }) => cluster.colour, strokeWidth: 2, title, ...tag }),
      Plot.ruleY(rows, { y, x1: ({ points }) => points[1], x2: ({ points }) => points[3], stroke: ({ cluster }) => cluster.colour, strokeWidth: 8, strokeLinecap: "round", title, ...tag }),
      Plot.dot(rows, { y, x: ({ points }) => points[2], r: 4, fill: "var(--paper)", stroke: ({ cluster }) => cluster.colour, strokeWidth: 2, title, ...tag }),
      Plot.text(rows, {
        y,
        frameAnchor: "left",
        textAnchor: "end",
        dx: -8,
        text: ({ cluster }) => fitted(called(cluster), left - 12),
        title: ({ cluster }) => called(cluster),
        fontSize: 12,
        ...tag,
      }),
    ],
  });
}
