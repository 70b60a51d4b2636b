/** Numbers and names as people read them. */

const whole = new Intl.NumberFormat("en-US");

/** A count, with commas. */
export const count = (/** @type {number} */ n) => whole.format(n);

/** A count with its noun: 1 sample, 2 samples. */
export const counted = (/** @type {number} */ n, /** @type {string} */ noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A share as percent: one digit after the point where there is room for doubt. */
export function percent(/** @type {number | null} */ share) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** Two digits after the point; a dash where nothing is known. */
export const two = (/** @type {number | null | undefined} */ value) =>
  value === null || value === undefined ? "–" : value.toFixed(2).replace("-", "−");

/** Any number, with three digits that count. */
export function short(/** @type {number | null | undefined} */ value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1).replace("e+", "e").replace("-", "−");
  return new Intl.NumberFormat("en-US", { maximumSignificantDigits: size >= 1000 ? 4 : 3 }).format(value).replace("-", "−");
}

/** The escape of a character that cannot be seen, as Python writes it. */
function escaped(/** @type {string} */ letter) {
  const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[letter];
  if (short) return short;
  const code = /** @type {number} */ (letter.codePointAt(0)).toString(16);
  return code.length <= 2 ? `\\x${code.padStart(2, "0")}` : code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
}

/** A sample id in which every character can be seen: no two ids look the same. */
export const visible = (/** @type {string} */ text) => text.replace(/[\p{C}\p{Z}]/gu, (letter) => (letter === " " ? letter : escaped(letter)));

/** A text out of data in which nothing turns around or hides what stands beside it; joiners stay. */
export const harmless = (/** @type {string} */ text) => text.replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (letter) => (/[\s\u200c\u200d]/.test(letter) ? letter : escaped(letter)));

/**
 * Sample ids from the lines of their column: as they are, and as they are shown. Lines are plain but
 * for ids that a plain line would not give back to the letter.
 */
export function idsOf(/** @type {string} */ column) {
  const lines = column.split("\n");
  if (!lines.some((line) => line.startsWith('"'))) return { ids: lines, shown: lines };
  const ids = lines.map((line) => (line.startsWith('"') ? /** @type {string} */ (JSON.parse(line)) : line));
  return { ids, shown: ids.map(visible) };
}

/** A name with at most so many characters: the middle is left out, since names often begin alike. */
export function shorten(/** @type {string} */ name, most = 24) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const end = letters.length - Math.floor((most - 1) / 2);
  return `${letters.slice(0, Math.ceil((most - 1) / 2)).join("").trimEnd()}…${letters.slice(end).join("").trimStart()}`;
}

/** @type {CanvasRenderingContext2D | null | undefined} */
let ink;

/** How wide a text is in figures. */
export function wide(/** @type {string} */ text, size = 12, weight = 400) {
  ink ??= document.createElement("canvas").getContext("2d");
  if (!ink) return 0.62 * size * text.length;
  ink.font = `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;
  return ink.measureText(text).width;
}

/** A name cut so that it is no wider than so many pixels. */
export function fitted(/** @type {string} */ name, /** @type {number} */ most, size = 12) {
  let [low, high] = [1, Array.from(name).length];
  if (wide(name, size) <= most) return name;
  while (low < high) {
    const half = Math.ceil((low + high) / 2);
    if (wide(shorten(name, half), size) <= most) low = half;
    else high = half - 1;
  }
  return shorten(name, low);
}

/** A name that stays on its side of what follows, also if it is written from right to left. */
export const apart = (/** @type {string} */ name) => `\u2068${name}\u2069`;

/** What a cluster is called: its number, then its name. */
export const called = (/** @type {{number: number, name?: string | null}} */ cluster) =>
  cluster.name ? `${cluster.number} ${cluster.name}` : `${cluster.number}`;

/** The same in a sentence. */
export const clusterWords = (/** @type {{number: number, name?: string | null}} */ cluster) =>
  `cluster ${cluster.number}${cluster.name ? ` (${cluster.name})` : ""}`;
