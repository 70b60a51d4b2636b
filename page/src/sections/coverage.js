/** Which views samples are in: an upset chart. */
import * as Plot from "@observablehq/plot";
import { figure, section } from "../charts.js";
import { apart, count, counted, fitted, wide } from "../format.js";

/** @returns {HTMLElement | null} */
export function coverageSection(/** @type {import("../index.js").Page} */ page) {
  const { views, coverage } = page.summary;
  if (views.length < 2 || !coverage.patterns.length) return null;
  const { others } = coverage;
  return section(
    "coverage",
    "Who is in which view",
    figure({
      label: `Combinations of ${views.length} views, and how many samples have each`,
      draw: (width) => draw(page, width),
      note: [
        "Each column is a combination of views; its bar says how many samples have just this one. Next to its name: how many samples a view has. ",
        others && `Not shown: ${counted(others.patterns, "rarer combination")} with ${counted(others.count, "sample")}.`,
      ].filter(Boolean).join(""),
    }),
  );
}

/** Bars above, dots below, over the same columns. */
function draw(/** @type {import("../index.js").Page} */ page, /** @type {number} */ width) {
  const { views, coverage } = page.summary;
  const { patterns } = coverage;
  const left = width < 500 ? 128 : 200;
  const step = Math.min(44, Math.max(26, (width - left) / patterns.length));
  const full = Math.ceil(left + step * patterns.length + 4);
  const x = { domain: patterns.map((_, p) => p), type: "band", axis: null, padding: 0.25 };
  const members = patterns.flatMap((pattern, p) => views.map((_, v) => ({ p, v, own: pattern.views.includes(v) })));
  const spans = patterns.map((pattern, p) => ({ p, low: Math.min(...pattern.views), high: Math.max(...pattern.views) }));
  const shared = { width: full, marginLeft: left, marginRight: 4, x };
  const says = (p) => `${patterns[p].views.map((v) => views[v].name).join(", ")}: ${counted(patterns[p].count, "sample")}`;
  return [
    Plot.plot({
      ...shared,
      height: 150,
      marginTop: 18,
      marginBottom: 2,
      y: { axis: null },
      marks: [
        Plot.barY(patterns, { x: (_, p) => p, y: "count", fill: "var(--bar)", title: (_, p) => says(p) }),
        Plot.text(patterns, { x: (_, p) => p, y: "count", dy: -7, text: ({ count: many }) => (step < 30 && many > 9999 ? "" : count(many)), fontSize: step < 34 ? 9 : 11 }),
        Plot.ruleY([0], { stroke: "var(--line)" }),
      ],
    }),
    Plot.plot({
      ...shared,
      height: 22 * views.length + 8,
      marginTop: 4,
      marginBottom: 4,
      y: { type: "point", domain: views.map((_, v) => v), axis: null, padding: 0.5 }, // two numbers would be a scale
      marks: [
        Plot.dot(members, { x: "p", y: "v", r: 5, fill: ({ own }) => (own ? "var(--ink)" : "var(--rule)"), title: ({ p }) => says(p) }),
        Plot.ruleX(spans, { x: "p", y1: "low", y2: "high", stroke: "var(--ink)", strokeWidth: 2 }),
        Plot.text(views, {
          y: (_, v) => v,
          frameAnchor: "left",
          textAnchor: "end",
          dx: -6,
          text: ({ name, n_samples }) => `${apart(fitted(name, left - 16 - wide(` · ${count(n_samples)}`)))} · ${count(n_samples)}`,
          title: ({ name }) => name,
          fontSize: 12,
        }),
      ],
      color: { type: "identity" },
    }),
  ];
}
