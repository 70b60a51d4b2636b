/**
 * What the map can be coloured by, and what the colours mean.
 *
 * @typedef {object} Colouring
 * @property {string} key
 * @property {string} label
 * @property {string} column  Its values are numbers of colours, once `indexed`.
 * @property {string[]} palette  The last one is for what is unknown.
 * @property {{kind: "clusters"} | {kind: "levels", levels: string[]} | {kind: "ramp", low: string, high: string}} legend
 */
import { GREY, level, ramps } from "./colour.js";
import { short } from "./format.js";

const MOST = 254; // the highest value of a number or date
const DAY = 24 * 60 * 60 * 1000;

/** @returns {Colouring[]} */
export function colourings(/** @type {any} */ summary) {
  const numbers = summary.clusters.map((/** @type {any} */ cluster) => cluster.number);
  const byNumber = new Array(Math.max(-1, ...numbers) + 1).fill(GREY);
  for (const cluster of summary.clusters) byNumber[cluster.number] = cluster.colour;
  const views = summary.views.length;
  const found = [
    { key: "cluster", label: "cluster", column: "cluster", palette: [...byNumber, GREY], legend: { kind: "clusters" } },
    { key: "confidence", label: "confidence", column: "confidence", palette: [...ramps(255), GREY], legend: { kind: "ramp", low: "0", high: "1" } },
    {
      key: "coverage",
      label: "number of views",
      column: "coverage",
      palette: [GREY, ...ramps(views), GREY],
      legend: { kind: "ramp", low: "1", high: String(views) },
    },
    ...summary.metadata.map((/** @type {any} */ one) => ({
      key: one.column,
      label: one.name,
      column: one.column,
      ...(one.kind === "category"
        ? { palette: [...one.levels.map((_, i) => level(i)), GREY], legend: { kind: "levels", levels: one.levels } }
        : { palette: [...ramps(255), GREY], legend: { kind: "ramp", low: metaText(one, 0), high: metaText(one, MOST) } }),
    })),
    { key: "novelty", label: "novelty", column: "novelty", palette: [...ramps(255), GREY], legend: { kind: "ramp", low: "0", high: "1" } },
    {
      key: "hangs",
      label: "view that the label hangs on",
      column: "hangs",
      palette: [GREY, ...summary.views.map((/** @type {any} */ _, /** @type {number} */ i) => level(i)), GREY],
      legend: { kind: "levels", levels: ["none", ...summary.views.map((/** @type {any} */ one) => one.name)] },
    },
  ];
  return found.filter(({ column }) => column in summary.columns);
}

/** Values as numbers of colours: what has no colour of its own gets the last. */
export function indexed(/** @type {Uint8Array | Uint16Array} */ values, /** @type {string[]} */ palette) {
  const last = palette.length - 1;
  if (last === 255 && values instanceof Uint8Array) return values;
  return values.map((value) => (value > last ? last : value));
}

/** Text of a value of metadata. */
export function metaText(/** @type {any} */ one, /** @type {number} */ value) {
  if (one.kind === "category") return one.levels[value] ?? "–";
  if (value > MOST) return "–";
  const share = value / MOST;
  if (one.kind === "date") return dateText(Date.parse(one.low), Date.parse(one.high), share);
  return short(one.low * (1 - share) + one.high * share);
}

/** A date, as exactly as the values of its column are told: a day, a month or a year. */
function dateText(/** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ share) {
  const days = (high - low) / DAY / MOST; // between two values
  const text = new Date(Math.round((low * (1 - share) + high * share) / DAY) * DAY).toISOString();
  return text.slice(0, days <= 1 ? 10 : days <= 31 ? 7 : 4);
}
