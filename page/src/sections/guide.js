/** What the figures mean, in plain words, and where the page comes from. */
import { section } from "../charts.js";
import { h } from "../dom.js";

const TERMS = [
  ["Map", "Each point is a sample, and similar samples are neighbours. The map was made without looking at the clusters: where they are apart, the data says so; where their points mix, it does not. Distances between far groups, and how large a group looks, mean little."],
  ["Confidence", "The probability that a sample is in the right cluster, as far as distances and its number of views tell."],
  ["Stability", "Samples are drawn again and again, and clustered; stability is how much of a cluster is found again (mean Jaccard similarity). A cluster that falls apart, or is joined with another, should not be trusted, whatever its name."],
  ["Effect", "By how many standard deviations the mean of a feature in a cluster is above (or below) that of all samples. It is known also for views that are no longer there. An effect is not a cause."],
  ["Agreement", "How much of a view the consensus of the views before it explains, tried on samples that were left out: 1 is everything, 0 nothing. A view near 0 brings something entirely new, or noise."],
  ["Explained variance", "The share of a view's variation that the consensus keeps, and that the clusters alone account for."],
];

/** @returns {HTMLElement} */
export function guideSection(/** @type {import("../index.js").Page} */ page) {
  const { summary } = page;
  const ids = "ids" in summary.columns;
  return h(
    "div",
    {},
    section("guide", "How to read this", h("dl", { class: "guide" }, TERMS.map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text))))),
    h("footer", {}, summary.notes?.map((/** @type {string} */ text) => h("p", {}, text)), h("p", {}, `Written by viewfold ${summary.version} from a ${summary.method} model. This page loads nothing and ${ids ? "holds ids of samples: mind who gets it" : "holds no sample ids"}.`)),
  );
}
