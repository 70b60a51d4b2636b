/** The samples that are least certain, to look at by hand. */
import { chip, note, section, table } from "../charts.js";
import { h } from "../dom.js";
import { count, two } from "../format.js";

/** @returns {HTMLElement | null} */
export function uncertainSection(/** @type {import("../index.js").Page} */ page) {
  const { uncertain } = page.summary;
  if (!uncertain.length) return null;
  const named = uncertain.some((/** @type {any} */ row) => row.id !== null);
  const show = (/** @type {any} */ row) => {
    page.map?.choose([row.point]);
    page.map?.zoomTo([row.point]);
    document.getElementById("samples")?.scrollIntoView({ block: "start" });
  };
  const sample = (/** @type {any} */ row, /** @type {number} */ i) => {
    const text = row.id ?? (row.point === null ? `${i + 1}` : `point ${count(row.point)}`);
    if (row.point === null) return text;
    return h("button", { type: "button", class: "link", "aria-label": `Show ${text} on the map`, onclick: () => show(row) }, text);
  };
  return section(
    "uncertain",
    "Least certain samples",
    note(
      `The ${uncertain.length === 1 ? "sample" : `${uncertain.length} samples`} whose cluster is least sure, and the cluster that is next. `,
      named ? "Choose one to see it on the map." : "Ids are not in this page; choose one to see it on the map.",
    ),
    h(
      "div",
      { "data-own-click": true },
      table(
        "Least certain samples",
        [["sample"], ["cluster"], ["next"], ["confidence"]],
        uncertain.map((/** @type {any} */ row, /** @type {number} */ i) => ({
          attributes: { "data-cluster": row.cluster },
          cells: [sample(row, i), chip(page, row.cluster), chip(page, row.next), two(row.confidence)],
        })),
      ),
    ),
  );
}
