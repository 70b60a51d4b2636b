/** What is selected, beside the map: counts by cluster, ids, a way to take them along. */
import { chip } from "../charts.js";
import { metaText } from "../colouring.js";
import { csv, download, h } from "../dom.js";
import { clusterWords, count, counted, percent, short, shorten, two } from "../format.js";

const LISTED = 100; // ids that are shown; the file has all

/** @returns {HTMLElement} */
export function selectionPanel(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples) {
  const { store } = page;
  const panel = h("div", { class: "selection", "aria-live": "polite" });
  let turn = 0;
  const show = async () => {
    const { cluster, points } = store.get();
    const own = ++turn;
    if (points) {
      await Promise.all([samples.readIds(), samples.rest()]);
      if (own === turn) panel.replaceChildren(...chosenPoints(page, samples, points));
    } else if (cluster !== null) panel.replaceChildren(...chosenCluster(page, samples, cluster));
    else panel.replaceChildren(h("p", { class: "note screen" }, "Nothing is selected. Click a point or a cluster, or draw around samples with Shift held down."));
  };
  page.onEnd(store.subscribe(show));
  show();
  return panel;
}

const clearButton = (/** @type {import("../index.js").Page} */ page) => h("button", { type: "button", onclick: page.store.clear }, "Clear");

/** A cluster: its numbers, its strongest features. */
function chosenCluster(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {number} */ number) {
  const cluster = page.clusters.get(number);
  if (!cluster) return [];
  const top = page.summary.features?.top.filter((/** @type {any} */ row) => row.cluster === number).slice(0, 3) ?? [];
  const points = () => Uint32Array.from(samples.cluster.keys()).filter((i) => samples.cluster[i] === number);
  return [
    h("h3", {}, h("i", { class: "dot", style: { background: cluster.colour } }), `Cluster ${number}`, cluster.name && h("span", { class: "name" }, ` ${cluster.name}`)),
    h("p", {}, `${counted(cluster.size, "sample")} (${percent(cluster.share)})`, cluster.confidence !== null && `, confidence ${two(cluster.confidence)}`, cluster.stability !== null && `, stability ${two(cluster.stability)}`, "."),
    cluster.trusted === false && h("p", { class: "no" }, "It should not be trusted."),
    top.length > 0 &&
      h("ul", { class: "facts" }, top.map((/** @type {any} */ row) => h("li", {}, h("b", {}, row.feature), ` ${short(row.mean)}, of all ${short(row.overall_mean)}`))),
    h("p", { class: "row" }, clearButton(page), samples.cluster && saveButton(page, samples, points)),
  ].filter(Boolean);
}

/** Points: how many of which cluster, and who. */
function chosenPoints(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {Uint32Array} */ points) {
  if (points.length === 1) return oneSample(page, samples, points[0]);
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const i of points) counts.set(samples.cluster[i], (counts.get(samples.cluster[i]) ?? 0) + 1);
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  const ids = samples.shown && Array.from(points.subarray(0, LISTED), (i) => shorten(samples.shown[i], 120));
  return [
    h("h3", {}, `${counted(points.length, "sample")} selected`),
    h("ul", { class: "counts" }, sorted.map(([cluster, many]) => h("li", {}, chip(page, page.clusters.has(cluster) ? cluster : null), h("span", {}, `${count(many)} · ${percent(many / points.length)}`)))),
    ids && h("div", { class: "ids", tabindex: 0, role: "group", "aria-label": "Ids of the selected samples" }, ids.join(", "), points.length > LISTED && ` … and ${count(points.length - LISTED)} more`),
    h("p", { class: "row" }, clearButton(page), ids && copyButton(() => Array.from(points, (i) => samples.ids[i]).join("\n")), saveButton(page, samples, () => points), forgetButton(page, samples, points)),
  ].filter(Boolean);
}

/** The share of known rows that are less unlike; nothing if that is not known. */
export const novelty = (/** @type {any} */ samples, /** @type {number} */ point) => (samples.novelty && samples.novelty[point] < 255 ? two(samples.novelty[point] / 254) : "");

/** One sample: all that the page knows of it. */
function oneSample(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {number} */ point) {
  const { summary } = page;
  const id = samples.ids?.[point];
  const number = samples.cluster[point];
  const cluster = page.clusters.get(number);
  const sure = samples.confidence?.[point];
  const facts = [
    ["cluster", cluster ? chip(page, number) : "–"],
    ["confidence", sure === undefined || sure > 254 ? "–" : two(sure / 254)],
    ...(novelty(samples, point) ? [["novelty", novelty(samples, point)]] : []),
    ...(samples.hangs?.[point] ? [["hangs on", summary.views[samples.hangs[point] - 1]?.name ?? "–"]] : []),
    ["views", samples.coverage ? `${samples.coverage[point]} of ${summary.views.length}` : "–"],
    ...summary.metadata.map((/** @type {any} */ one) => [one.name, metaText(one, samples[one.column][point])]),
  ];
  const place = h("div", {});
  const why = async () => {
    place.replaceChildren(h("p", { class: "note" }, "…"));
    try {
      const { text } = await /** @type {any} */ (page.actions).explain(id);
      place.replaceChildren(h("pre", { tabindex: 0 }, text));
    } catch (error) {
      place.replaceChildren(h("p", { class: "problem", role: "alert" }, /** @type {Error} */ (error).message));
    }
  };
  return [
    h("h3", {}, shorten(samples.shown?.[point] ?? `Point ${count(point)}`, 120)),
    h("dl", { class: "sample" }, facts.map(([word, value]) => h("div", {}, h("dt", {}, word), h("dd", {}, value)))),
    h(
      "p",
      { class: "row" },
      clearButton(page),
      cluster && h("button", { type: "button", onclick: () => page.store.cluster(number) }, `All of ${clusterWords({ number })}`),
      id && page.actions.explain && h("button", { type: "button", onclick: why }, "Why here?"),
      forgetButton(page, samples, Uint32Array.of(point)),
    ),
    place,
  ];
}

function copyButton(/** @type {() => string} */ text) {
  const button = h("button", { type: "button" }, "Copy ids");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow it";
    }
    setTimeout(() => (button.textContent = "Copy ids"), 1500);
  });
  return button;
}

/** A CSV of the samples, with all that the page knows of them. */
function saveButton(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {() => Uint32Array} */ points) {
  const { summary } = page;
  const save = async () => {
    await Promise.all([samples.readIds(), samples.rest()]);
    const meta = summary.metadata;
    const head = [samples.ids ? "id" : "point", "cluster", "name", "confidence", "novelty", "hangs_on", "views", ...meta.map((/** @type {any} */ one) => one.name)];
    const rows = Array.from(points(), (i) => {
      const cluster = page.clusters.get(samples.cluster[i]);
      const sure = samples.confidence?.[i] ?? 255;
      return [samples.ids?.[i] ?? i, cluster?.number ?? "", cluster?.name ?? "", sure > 254 ? "" : (sure / 254).toFixed(3), novelty(samples, i), summary.views[samples.hangs?.[i] - 1]?.name ?? "", samples.coverage?.[i] ?? "", ...meta.map((/** @type {any} */ one) => metaText(one, samples[one.column][i]))];
    });
    download("selection.csv", csv([head, ...rows]));
  };
  return h("button", { type: "button", onclick: save }, "Save as CSV");
}

/** Forget samples: the server asks whether it is meant. */
function forgetButton(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {Uint32Array} */ points) {
  const { forget } = page.actions;
  if (!forget || !samples.ids) return null;
  const problem = h("span", { class: "problem", role: "alert" });
  const work = async () => {
    problem.textContent = "";
    try {
      await forget(Array.from(points, (i) => samples.ids[i]));
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
    }
  };
  return [h("button", { type: "button", class: "danger", onclick: work }, "Forget"), problem];
}
