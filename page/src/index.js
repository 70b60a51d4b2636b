/**
 * The page: all sections over one source of data and one store of what is chosen.
 *
 * `viewfold.start(root, source, options)` is all that the HTML file and the server call.
 *
 * @typedef {object} Actions  What a server can do and a file cannot; what is absent has no button.
 * @property {(cluster: number, name: string) => Promise<any>} [rename]
 * @property {(id: string) => Promise<{text: string}>} [explain]
 * @property {(ids: string[]) => Promise<any>} [forget]
 *
 * @typedef {object} Page  What every section gets.
 * @property {any} summary
 * @property {Map<number, any>} clusters  By number.
 * @property {import("./source.js").Source} source
 * @property {import("./store.js").Store} store
 * @property {Actions} actions
 * @property {(work: () => void) => void} onEnd  Called when the page is drawn anew.
 * @property {{choose(points: ArrayLike<number>): void, zoomTo(points: ArrayLike<number>): void, find(id: string): Promise<number>} | null} map  Once it is drawn.
 * @property {Promise<void>} drawn  When the map is.
 * @property {{colour: string}} memory  What stays when the page is drawn anew.
 */
import { highlight } from "./highlight.js";
import { clusterSection } from "./sections/clusters.js";
import { confidenceSection } from "./sections/confidence.js";
import { coverageSection } from "./sections/coverage.js";
import { featureSection } from "./sections/features.js";
import { flowSection } from "./sections/flow.js";
import { guideSection } from "./sections/guide.js";
import { headerSection, linkSections } from "./sections/header.js";
import { numberSection } from "./sections/number.js";
import { samplesSection } from "./sections/samples.js";
import { uncertainSection } from "./sections/uncertain.js";
import { viewSection } from "./sections/views.js";
import { h } from "./dom.js";
import { painted } from "./source.js";
import { createStore } from "./store.js";

export { csv, download, h } from "./dom.js";
export * as format from "./format.js";
export { embedded, held, served } from "./source.js";
export { createStore } from "./store.js";

const SECTIONS = [
  headerSection,
  samplesSection,
  clusterSection,
  featureSection,
  flowSection,
  coverageSection,
  viewSection,
  confidenceSection,
  uncertainSection,
  numberSection,
  guideSection,
];

const PATIENCE = 4000; // milliseconds that figures below the map wait for it

/**
 * Draw the page.
 *
 * @param {HTMLElement} root
 * @param {import("./source.js").Source} source
 * @param {{actions?: Actions}} [options]
 */
export function start(root, source, { actions = {} } = {}) {
  const store = createStore();
  const element = h("div", { class: "viewfold" });
  highlight(element, store);
  const memory = { colour: "cluster" };
  /** @type {Page | null} */
  let page = null;
  /** @type {(() => void)[]} */
  let endings = [];

  async function refresh() {
    const summary = await source.summary();
    for (const end of endings.splice(0)) end();
    const before = store.get().cluster;
    store.clear();
    const clusters = new Map(summary.clusters.map((/** @type {any} */ one) => [one.number, one]));
    const now = (page = { summary, clusters, source, store, actions, onEnd: (work) => endings.push(work), map: null, drawn: Promise.resolve(), memory });
    const [height, scrolled] = [element.offsetHeight, window.scrollY];
    element.style.minHeight = `${height}px`; // what is looked at stays where it is
    element.replaceChildren();
    for (const section of SECTIONS) {
      const made = section(now);
      if (made) element.append(made);
      linkSections(element);
      if (element.parentElement !== root) root.replaceChildren(element); // what stood in for it goes now
      await painted(); // the first sections are seen while the others are made
      if (section === clusterSection) await Promise.race([now.drawn, new Promise((go) => setTimeout(go, PATIENCE))]);
      if (page !== now) return; // asked to start again meanwhile
    }
    element.style.minHeight = "";
    if (height) window.scrollTo({ top: scrolled, behavior: "instant" });
    if (before !== null && clusters.has(before)) store.cluster(before);
  }

  /** Choose a cluster, points, or the sample with an id. */
  async function select(/** @type {{cluster?: number, points?: ArrayLike<number>, id?: string}} */ what) {
    if (what.cluster !== undefined) store.cluster(what.cluster);
    else if (what.points) page?.map?.choose(what.points);
    else if (what.id !== undefined && page?.map) {
      const point = await page.map.find(what.id);
      if (point < 0) return;
      page.map.choose([point]);
      page.map.zoomTo([point]);
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) store.clear();
  });
  return { element, store, refresh, select, ready: refresh() };
}
