/** Title, key numbers, what changed since the last report, what not to trust. */
import { figure } from "../charts.js";
import { h } from "../dom.js";
import { called, count, counted, percent } from "../format.js";
import { drawFlow, layers } from "./flow-drawing.js";

/** @type {Record<string, string>} */
const LINKS = {
  samples: "Map",
  clusters: "Clusters",
  features: "Features",
  flow: "Changes",
  coverage: "Coverage",
  views: "Views",
  confidence: "Confidence",
  uncertain: "Least certain",
  number: "How many",
  guide: "How to read this",
};

/** @returns {HTMLElement} */
export function headerSection(/** @type {import("../index.js").Page} */ page) {
  const { summary } = page;
  const { n, complete, views, clusters, moved } = summary;
  const tile = (/** @type {string} */ word, /** @type {string} */ value, small = "") =>
    h("div", {}, h("dt", {}, word), h("dd", {}, value, small && h("small", {}, small)));
  return h(
    "header",
    {},
    h("h1", {}, summary.title),
    summary.when && h("p", { class: "note" }, `State of ${summary.when.slice(0, 16).replace("T", " ")}`),
    h(
      "dl",
      { class: "numbers" },
      tile(n === 1 ? "sample" : "samples", count(n)),
      tile(views.length === 1 ? "view" : "views", count(views.length)),
      tile(clusters.length === 1 ? "cluster" : "clusters", count(clusters.length)),
      tile("in every view", count(complete), n ? percent(complete / n) : ""),
      moved ? tile("moved at the last step", count(moved.count), percent(moved.share)) : tile("moved at the last step", "–", "first step"),
    ),
    warnings(page),
    since(page),
    h("nav", { "aria-label": "Sections" }),
  );
}

/** Let the header lead to the sections that are there. */
export function linkSections(/** @type {HTMLElement} */ root) {
  const found = [...root.querySelectorAll("section[id]")].filter(({ id }) => LINKS[id]);
  root.querySelector("header nav")?.replaceChildren(...found.map(({ id }) => h("a", { href: `#${id}` }, LINKS[id])));
}

/** Clusters that resampling takes apart. */
function warnings(/** @type {import("../index.js").Page} */ { summary }) {
  const weak = summary.clusters.filter((/** @type {any} */ cluster) => cluster.trusted === false);
  if (!weak.length) return null;
  const most = 12;
  return h(
    "div",
    { class: "warning", role: "note" },
    h("strong", {}, `${counted(weak.length, "cluster")} should not be trusted: `),
    weak.slice(0, most).map((/** @type {any} */ cluster) =>
      h(
        "button",
        { type: "button", class: "pick", "data-cluster": cluster.number, "aria-pressed": "false" },
        h("i", { class: "dot", style: { background: cluster.colour } }),
        called(cluster),
      ),
    ),
    weak.length > most && ` and ${weak.length - most} more. `,
    " Other samples of the same kind would give other clusters in their place.",
  );
}

/** What changed since the last report: a sentence and a small flow. */
function since(/** @type {import("../index.js").Page} */ page) {
  const { since: change } = page.summary;
  if (!change) return null;
  const moves = change.flow.filter((/** @type {any} */ move) => move.from !== move.to);
  return h(
    "section",
    { class: "since", "aria-label": "Since the last report" },
    h("div", {}, h("h2", {}, "Since the last report"), h("p", {}, change.text)),
    moves.length > 0 &&
      figure({
        label: `Clusters of the samples in the report of ${change.when} and now`,
        draw: (width) => [drawFlow(page, layers([[], change.flow]), ["then", "now"], { width, height: 150, small: true })],
      }),
  );
}
