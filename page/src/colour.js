/** Colours that are not a cluster's own: ramps for numbers, a list for levels of a column. */

// Viridis: even steps of lightness, told apart by colour-blind people.
const RAMP = ["#440154", "#46307e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
// Okabe and Ito's, then others that differ from them in lightness.
const LEVELS = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8250df", "#b3a100", "#7f4a24", "#e0457b",
  "#3d8f8f", "#94b83d", "#c25bd6", "#2f5fd0", "#f07f5a", "#8f8f3a", "#a05c6b", "#4fb58b", "#6b7fd0", "#d0a060",
];
/** Whatever is unknown, new, or not one cluster. */
export const GREY = "#8a919c";

const parts = (/** @type {string} */ hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The colour of a share of the way from low to high. */
export function ramp(/** @type {number} */ share) {
  const at = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(at));
  const [one, other] = [parts(RAMP[low]), parts(RAMP[low + 1])];
  return `#${one.map((part, i) => Math.round(part + (at - low) * (other[i] - part)).toString(16).padStart(2, "0")).join("")}`;
}

/** So many colours from low to high. */
export const ramps = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => ramp(n > 1 ? i / (n - 1) : 0.5));

/** The colour of a level of a column. */
export const level = (/** @type {number} */ i) => LEVELS[i % LEVELS.length];

/** The ramp as a background of CSS. */
export const gradient = `linear-gradient(to right, ${RAMP.join(", ")})`;

/**
 * The colour of a number around zero, from the variables of the style sheet: it follows dark mode
 * and print without being drawn again.
 */
export function around(/** @type {number | null} */ value, /** @type {number} */ most) {
  if (value === null || value === undefined) return "var(--unknown)";
  const share = Math.min(1, Math.abs(value) / (most || 1));
  return `color-mix(in oklab, var(${value < 0 ? "--less" : "--more"}) ${(100 * share ** 0.8).toFixed(1)}%, var(--even))`;
}

/** The colour of a share of 1, from nothing to the accent. */
export const filled = (/** @type {number | null} */ share, most = 1) =>
  share === null || share === undefined
    ? "var(--unknown)"
    : `color-mix(in oklab, var(--accent) ${(100 * Math.min(1, Math.max(0, share / (most || 1)))).toFixed(1)}%, var(--even))`;
