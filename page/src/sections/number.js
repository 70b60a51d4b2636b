/** How many clusters stand out. */
import * as Plot from "@observablehq/plot";
import { figure, section } from "../charts.js";
import { h } from "../dom.js";
import { two } from "../format.js";

/** @returns {HTMLElement | null} */
export function numberSection(/** @type {import("../index.js").Page} */ page) {
  const { number } = page.summary;
  if (!number || number.scores.length < 2) return null;
  const { scores, best, now } = number;
  const marked = scores.filter(([k]) => k === best || k === now);
  const draw = (/** @type {number} */ width) => [
    Plot.plot({
      width,
      height: 220,
      marginLeft: 40,
      marginTop: 26,
      marginBottom: 34,
      x: { label: null, ticks: Math.min(12, scores.length), tickFormat: "d", tickSize: 0, inset: 8 },
      y: { label: null, ticks: 4, tickSize: 0, nice: true, zero: true },
      marks: [
        Plot.gridY({ ticks: 4, stroke: "var(--rule)", strokeOpacity: 1 }),
        Plot.ruleY([0], { stroke: "var(--line)" }),
        Plot.lineY(scores, { x: "0", y: "1", stroke: "var(--line)", strokeWidth: 1.5 }),
        Plot.dot(scores, { x: "0", y: "1", r: 4, fill: ([k]) => (k === best ? "var(--accent)" : "var(--paper)"), stroke: "var(--accent)", strokeWidth: 1.5, title: ([k, score]) => `${k} clusters: ${two(score)}` }),
        Plot.text(marked, {
          x: "0",
          y: "1",
          dy: -13,
          text: ([k]) => (k === best && k === now ? `${k}: best, and now` : k === best ? `${k}: best` : `${k}: now`),
          fontWeight: 600,
        }),
      ],
      color: { type: "identity" },
    }),
  ];
  return section(
    "number",
    "How many clusters",
    figure({
      label: `Score of ${scores.length} numbers of clusters; ${best} is best, ${now} are there now`,
      draw,
      note: h(
        "span",
        {},
        "How much each number of clusters stands out in the consensus. 0 is what the best number reaches where there are no clusters. ",
        !number.stands_out && "No number is clearly above it: there may be no clusters, or none that are clear. ",
        best === now ? `The present number, ${now}, stands out most.` : `${best} stands out most; there are ${now} now, and `,
        best !== now && h("code", {}, `viewfold recluster --clusters ${best}`),
        best !== now && " changes that.",
        " Where several numbers have about the same score, look at each.",
      ),
    }),
  );
}
