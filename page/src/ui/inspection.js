/** What was understood of a file, as a table to read. */
import { h } from "../dom.js";
import { count, counted, percent, shorten } from "../format.js";
import { factTable } from "./parts.js";

const SHOWN = 8; // names that are listed
const LETTERS = 60; // of each
const SCALES = {
  zscore: "z-score of every feature",
  center: "centred (principal-component scores)",
  l2: "rows of unit length (weights)",
  tfidf: "tf-idf and rows of unit length (counts)",
};

const some = (/** @type {string[]} */ names) => names.slice(0, SHOWN).map((name) => shorten(name, LETTERS)).join(", ") + (names.length > SHOWN ? ", …" : "");
const named = (/** @type {string[]} */ names) => (names.length ? `${count(names.length)}: ${some(names)}` : "");

function ids(/** @type {any} */ found) {
  const others = found.candidates.filter((/** @type {string} */ name) => name !== found.column);
  const also = others.length ? `; ${some(others)} ${others.length > 1 ? "look" : "looks"} like ids${found.given ? ", too" : ""}` : "";
  if (found.column !== null) return `column “${found.column}”${found.proposed ? ", as it seems" : ""}${also}`;
  return (found.given ? "those that the file has" : "none: samples are known by their row number") + also;
}

function missing(/** @type {any} */ view) {
  if (!view.missing.cells) return "no cell";
  const worst = Object.entries(view.missing.worst).map(([name, many]) => `${shorten(name, LETTERS)} ${percent(many / view.rows)}`);
  const absent = view.absent_rows ? `; ${counted(view.absent_rows, "row")} without any value` : "";
  return `${counted(view.missing.cells, "cell")}, ${percent(view.missing.share)} (${worst.join(", ")})${absent}`;
}

function samples(/** @type {any} */ found) {
  if (!found) return null;
  const pairs = found.examples.map(([one, known]) => `“${one}” is almost “${known}”`).join(", ");
  return h("div", {}, `${count(found.known)} known, ${count(found.new)} new`,
    found.in_view ? `; ${count(found.in_view)} are in this view already` : "",
    found.fits.length ? `; the columns are those of ${some(found.fits)}` : "",
    found.nearly_known ? h("p", { class: "caution" }, `${counted(found.nearly_known, "new id")} differ${found.nearly_known === 1 ? "s" : ""} from a known one only in case, space, zeros or accents: ${pairs}.`) : null);
}

/** @returns {HTMLElement} */
export function inspectionTable(/** @type {any} */ view) {
  const { columns } = view;
  const list = (/** @type {Record<string, any>} */ of, /** @type {(value: any) => string} */ words) =>
    Object.entries(of).slice(0, SHOWN).map(([name, value]) => `${shorten(name, LETTERS)} (${words(value)})`).join("; ") + (Object.keys(of).length > SHOWN ? "; …" : "");
  const cautions = [view.refused && `This cannot be folded: ${view.refused}`, ...view.problems].filter(Boolean);
  return h("div", { class: "understood" },
    h("h3", {}, `View “${view.view}”`),
    factTable([
      ["samples", samples(view.samples)],
      ["rows", count(view.rows)],
      ["ids", ids(view.ids)],
      ["numbers", columns.numbers ? counted(columns.numbers, "column") : ""],
      ["yes or no", named(columns.booleans)],
      ["categories", list(columns.categories, (levels) => some(levels))],
      ["dates", named(columns.dates)],
      ["left out", list(columns.left_out, String)],
      ["missing", missing(view)],
      ["rows of zeros", view.zero_rows ? `${count(view.zero_rows)}, ${view.empty ? `${count(view.empty)} taken for samples that the view lacks` : "kept"}` : ""],
      ["may mark missing cells", Object.entries(view.suspects).map(([value, of]) => `${value} in ${some(of)}`).join("; ")],
      ["written with", Object.entries(view.written).map(([what, sign]) => `${what} “${sign}”`).join(", ")],
      ["scaling", view.refused ? "" : (SCALES[/** @type {keyof typeof SCALES} */ (view.scale)] ?? view.scale)],
    ]),
    cautions.length > 0 &&
      h("div", { class: "caution" },
        !view.refused && h("p", {}, "A fold asks about this. The fields below answer it as proposed; correct them if that is wrong."),
        h("ul", {}, cautions.map((one) => h("li", {}, one)))),
    view.notes.length > 0 && h("ul", { class: "noted" }, view.notes.map((/** @type {string} */ one) => h("li", {}, one))));
}
