/** Ribbons of samples from step to step, by Observable Plot. */
import * as Plot from "@observablehq/plot";
import { tagged } from "../charts.js";
import { GREY } from "../colour.js";
import { called, counted, fitted } from "../format.js";

const [NEW, OTHERS] = [-1, -2]; // not seen before; clusters taken together
/** Clusters by number, then the others together, then what is new. */
const inOrder = (/** @type {number} */ a, /** @type {number} */ b) => Number(a < 0) - Number(b < 0) || a - b;
const MOST = 1200; // ribbons of a figure: the smallest are left out beyond

/**
 * Blocks (clusters at a step) and ribbons (samples between two steps), in units of samples.
 *
 * @param {{from: number, to: number, count: number}[][]} flow  flow[s] leads into step s.
 */
export function layers(flow) {
  const last = flow.length - 1;
  /** How many are in each cluster at a step, by what comes in or, at the first, what goes out. */
  const sizes = flow.map((_, step) => {
    /** @type {Map<number, number>} */
    const found = new Map();
    const own = flow[step].length || step === last ? flow[step].map(({ to, count }) => [to, count]) : flow[step + 1].map(({ from, count }) => [from, count]);
    for (const [cluster, many] of own) if (cluster !== NEW) found.set(cluster, (found.get(cluster) ?? 0) + many);
    const gone = step < last ? flow[step + 1].filter(({ from }) => from === NEW) : [];
    const fresh = gone.reduce((sum, { count }) => sum + count, 0);
    return { found: [...found].sort(([a], [b]) => inOrder(a, b)), fresh };
  });
  const most = Math.max(1, ...sizes.map(({ found, fresh }) => found.reduce((sum, [, many]) => sum + many, fresh)));
  const crowd = Math.max(1, ...sizes.map(({ found }) => found.length + 1));
  const gap = crowd > 1 ? Math.min(0.02, 0.25 / crowd) * most : 0;
  const blocks = sizes.flatMap(({ found, fresh }, step) => {
    let top = 0;
    return [...found, ...(fresh ? [[NEW, fresh]] : [])].map(([cluster, many]) => {
      const block = { step, cluster, count: many, y1: top, y2: top + many };
      top += many + gap;
      return block;
    });
  });
  return { blocks, ribbons: ribbons(flow, blocks), last, most, height: Math.max(...blocks.map(({ y2 }) => y2), 1) };
}

/** Where each flow leaves its block and enters the next, in the order of clusters. */
function ribbons(flow, blocks) {
  const find = (step, cluster) => blocks.find((block) => block.step === step && block.cluster === cluster);
  const found = [];
  for (let step = 1; step < flow.length; step++) {
    const left = new Map();
    const right = new Map();
    const sorted = [...flow[step]].sort((a, b) => inOrder(a.from, b.from) || inOrder(a.to, b.to));
    const leave = sorted.map(({ from, to, count }) => {
      const block = find(step - 1, from);
      const at = left.get(from) ?? block?.y1 ?? 0;
      left.set(from, at + count);
      return { step, from, to, count, y: at, known: Boolean(block) };
    });
    for (const one of [...leave].sort((a, b) => inOrder(a.to, b.to) || inOrder(a.from, b.from))) {
      const at = right.get(one.to) ?? find(step, one.to)?.y1 ?? 0;
      right.set(one.to, at + one.count);
      if (one.known) found.push({ ...one, end: at });
    }
  }
  return found;
}

/** Whether a ribbon is too thin to be followed: samples that moved or came, less than 1 % of all. */
const thin = (/** @type {ReturnType<typeof layers>} */ { most }, { from, to, count }) => from !== to && count < most / 100;

/** How many moves are in ribbons that are too thin. */
export const hidden = (/** @type {ReturnType<typeof layers>} */ laid) =>
  laid.ribbons.filter((one) => one.from !== NEW && thin(laid, one)).reduce((sum, { count }) => sum + count, 0);

const shownMoves = (/** @type {ReturnType<typeof layers>} */ laid) => laid.ribbons.filter((one) => one.from !== NEW && one.from !== one.to && !thin(laid, one)).length;

/**
 * @param {import("../index.js").Page} page
 * @param {ReturnType<typeof layers>} laid
 * @param {string[]} steps
 * @param {{width: number, height: number, small?: boolean}} options
 */
export function drawFlow({ clusters }, laid, steps, { width, height, small = false }) {
  const colour = (cluster) => clusters.get(cluster)?.colour ?? GREY;
  const words = (cluster) => (cluster === NEW ? "not seen yet" : cluster === OTHERS ? "other clusters" : called(clusters.get(cluster) ?? { number: cluster }));
  const crowded = shownMoves(laid) > 150;
  const half = small ? 0.03 : Math.min(0.06, (9 * steps.length) / width);
  const shown = laid.ribbons.filter((one) => small || !thin(laid, one)).sort((a, b) => b.count - a.count).slice(0, MOST);
  const kinds = [shown.filter(({ from, to }) => from === to), shown.filter(({ from }) => from === NEW), shown.filter(({ from, to }) => from !== NEW && from !== to)];
  // The first and last step are written inwards: half a label more than others.
  const room = steps.length > 2 ? (width / (steps.length - 1) - 12) / 1.5 : width / 2 - 12;
  const area = (ribbonsOfKind, opacity) => {
    const data = ribbonsOfKind.flatMap((one, z) => [
      { ...one, z, x: one.step - 1 + half, y1: one.y, y2: one.y + one.count },
      { ...one, z, x: one.step - half, y1: one.end, y2: one.end + one.count },
    ]);
    return Plot.areaY(data, {
      x: "x",
      y1: "y1",
      y2: "y2",
      z: "z",
      curve: "bump-x",
      fill: (one) => colour(one.from),
      fillOpacity: opacity,
      stroke: (one) => colour(one.from),
      strokeWidth: opacity > 0.5 && !crowded ? 0.6 : 0,
      title: (one) => `${words(one.from)} → ${words(one.to)}: ${counted(one.count, "sample")}`,
      ...tagged(data, ({ from, to }) => [from, to].filter((cluster) => cluster >= 0).join(" ")),
    });
  };
  const big = laid.blocks.filter(({ y1, y2, cluster }) => cluster >= 0 && (y2 - y1) / laid.height > 11 / height);
  return Plot.plot({
    width,
    height,
    marginLeft: 8,
    marginRight: 8,
    marginTop: 24,
    marginBottom: 4,
    x: { domain: [-half, laid.last + half], axis: null },
    y: { domain: [laid.height, 0], axis: null },
    color: { type: "identity" },
    marks: [
      area(kinds[0], 0.22),
      area(kinds[1], 0.22),
      area(kinds[2], 0.75),
      Plot.rect(laid.blocks, {
        x1: ({ step }) => step - half,
        x2: ({ step }) => step + half,
        y1: "y1",
        y2: "y2",
        fill: ({ cluster }) => colour(cluster),
        title: ({ cluster, count, step }) => `${steps[step]}: ${words(cluster)}, ${counted(count, "sample")}`,
        ...tagged(laid.blocks, ({ cluster }) => (cluster < 0 ? "" : cluster)),
      }),
      Plot.text(big, {
        x: ({ step }) => step + (step === laid.last ? -half : half),
        dx: 5,
        y: ({ y1, y2 }) => (y1 + y2) / 2,
        text: ({ cluster }) => String(cluster),
        textAnchor: "start",
        filter: ({ step }) => step < laid.last,
        fontWeight: 600,
        fill: "var(--ink)",
        stroke: "var(--paper)",
        strokeWidth: 3,
        ...tagged(big, ({ cluster }) => cluster),
      }),
      Plot.text(big, {
        x: ({ step }) => step - half,
        dx: -5,
        y: ({ y1, y2 }) => (y1 + y2) / 2,
        text: ({ cluster }) => String(cluster),
        textAnchor: "end",
        filter: ({ step }) => step === laid.last,
        fontWeight: 600,
        fill: "var(--ink)",
        stroke: "var(--paper)",
        strokeWidth: 3,
        ...tagged(big, ({ cluster }) => cluster),
      }),
      ...["start", "middle", "end"].map((textAnchor) =>
        Plot.text(steps, {
          x: (_, i) => (i === 0 ? -half : i === laid.last ? laid.last + half : i),
          filter: (_, i) => textAnchor === (i === 0 ? "start" : i === laid.last ? "end" : "middle"),
          frameAnchor: "top",
          dy: -18,
          text: (step) => fitted(step, room),
          title: (step) => step,
          textAnchor,
          fill: "var(--soft)",
          fontSize: 12,
        }),
      ),
    ],
  });
}
