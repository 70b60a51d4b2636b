/** What moved: counts, what happened to clusters, who went where. */
import { h } from "../dom.js";
import { count, counted, percent } from "../format.js";

const ROWS = 12;

/** @returns {HTMLElement} */
export function changesOf(/** @type {any} */ changes) {
  if (!changes) return h("p", {}, "This is the first view: nobody could move.");
  const flow = changes.flow.filter((/** @type {any} */ one) => one.from >= 0 && one.from !== one.to).sort((/** @type {any} */ a, /** @type {any} */ b) => b.count - a.count);
  const tile = (/** @type {string} */ word, /** @type {any} */ ...value) => h("div", {}, h("dt", {}, word), h("dd", {}, ...value));
  return h("div", { class: "changes" },
    h("dl", { class: "numbers" },
      tile("moved to another cluster", count(changes.moved), h("small", {}, percent(changes.share))),
      tile("new", count(changes.new)),
      changes.gone > 0 && tile("gone", count(changes.gone))),
    changes.events.length > 0
      ? h("ul", { class: "events" }, changes.events.map((/** @type {any} */ one) => h("li", {}, one.text)))
      : h("p", {}, "Nothing happened to the clusters as a whole."),
    flow.length > 0 &&
      h("details", {}, h("summary", {}, "Who went where"),
        h("ul", { class: "went" }, flow.slice(0, ROWS).map((/** @type {any} */ one) => h("li", {}, `${counted(one.count, "sample")} from cluster ${one.from} to ${one.to}`)), flow.length > ROWS && h("li", {}, `and ${counted(flow.length - ROWS, "more way")}`))));
}
