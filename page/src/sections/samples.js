/** The map with its controls: colour, search, lasso, legend, and what is selected. */
import { section } from "../charts.js";
import { gradient, GREY } from "../colour.js";
import { colourings, indexed, metaText } from "../colouring.js";
import { h, uniqueId } from "../dom.js";
import { count, counted, idsOf, shorten, two, visible } from "../format.js";
import { createMap } from "../map/map.js";
import { firstPaint } from "../source.js";
import { novelty, selectionPanel } from "./selection.js";

/** @returns {HTMLElement} */
export function samplesSection(/** @type {import("../index.js").Page} */ page) {
  const { summary, source, store } = page;
  const ways = colourings(summary);
  const frame = h("div", { class: "frame" }, h("p", { class: "waiting" }, "The map is being drawn …"));
  const legend = h("div", { class: "legend" });
  const by = h("select", { disabled: true }, ways.map(({ key, label }) => h("option", { value: key }, shorten(label, 40))));
  by.value = ways.some(({ key }) => key === page.memory.colour) ? page.memory.colour : ways[0].key;
  const samples = sampleData(page);
  const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Map" }, h("label", {}, "Colour by ", by));
  const panel = selectionPanel(page, samples);
  const drawn = summary.n_drawn < summary.n ? ` ${counted(summary.n_drawn, "sample")} of ${count(summary.n)} are drawn, by chance.` : "";
  const made = section(
    "samples",
    "The samples",
    tools,
    h("div", { class: "beside" }, frame, h("div", { class: "side" }, legend, panel)),
    h("p", { class: "note" }, `Each point is a sample; similar samples are neighbours. How far apart distant groups are means little.${drawn}`),
  );
  showLegend(page, legend, ways.find(({ key }) => key === by.value) ?? ways[0]);

  page.drawn = samples.ready.then(async () => {
    await firstPaint(); // making a context for WebGL may take a while
    const { x, y } = samples;
    const map = createMap(frame, { x, y, tags: tagsOf(summary) }, {
      points: choose,
      cluster: () => {}, // a click on what carries data-cluster chooses it, on the whole page
      clear: store.clear,
      tell: (point) => tell(page, samples, point),
    });
    page.map = { choose, zoomTo: map.zoomTo, find: samples.find };
    page.onEnd(map.destroy);
    function choose(/** @type {ArrayLike<number>} */ points) {
      const clusters = new Set();
      for (let at = 0; at < points.length; at++) clusters.add(samples.cluster[points[at]]);
      store.points(points, clusters);
    }
    const colour = async () => {
      const way = ways.find(({ key }) => key === by.value) ?? ways[0];
      const values = /** @type {Uint8Array} */ (await source.column(way.column));
      showLegend(page, legend, way);
      await map.colour(indexed(values, way.palette), way.palette);
    };
    page.onEnd(store.subscribe(({ cluster, points }) => void map.highlight(flags(samples.cluster, cluster, points))));
    by.disabled = false;
    by.addEventListener("change", () => {
      page.memory.colour = by.value;
      void colour();
    });
    tools.append(...buttons(map, choose), search(page, samples));
    printable(page, frame, map);
    await colour();
    performance.mark("viewfold-map");
    void samples.rest();
  });
  return made;
}

/** Columns as they come: the map first, what tooltips tell later. */
function sampleData(/** @type {import("../index.js").Page} */ { summary, source }) {
  /** @type {any} */
  const data = { ids: null, shown: null };
  data.ready = Promise.all(["x", "y", "cluster"].map(async (name) => (data[name] = await source.column(name))));
  const names = Object.keys(summary.columns).filter((name) => !["x", "y", "cluster", "ids"].includes(name));
  data.rest = async () => {
    for (const name of names) data[name] ??= await source.column(name);
  };
  data.readIds = async () => {
    if ("ids" in summary.columns && !data.ids) Object.assign(data, idsOf(String(await source.column("ids"))));
    return data.ids;
  };
  data.find = async (/** @type {string} */ id) => {
    await data.readIds();
    const exact = (data.ids ?? []).indexOf(id);
    return exact < 0 ? (data.shown ?? []).indexOf(id) : exact;
  };
  return data;
}

/** Tags of the clusters, the largest first. */
export const tagsOf = (/** @type {any} */ summary) =>
  summary.clusters
    .filter((/** @type {any} */ one) => one.x !== null && one.y !== null)
    .sort((/** @type {any} */ a, /** @type {any} */ b) => b.size - a.size)
    .map((/** @type {any} */ { number, name, colour, x, y }) => ({ cluster: number, name, colour, x, y }));

/** Which points are chosen; null if nothing is. */
export function flags(/** @type {ArrayLike<number>} */ clusters, /** @type {number | null} */ cluster, /** @type {ArrayLike<number> | null} */ points) {
  if (cluster === null && !points) return null;
  const found = new Uint8Array(clusters.length);
  if (points) for (let at = 0; at < points.length; at++) found[points[at]] = 1;
  else for (let i = 0; i < found.length; i++) found[i] = clusters[i] === cluster ? 1 : 0;
  return found;
}

/** What a tooltip says of a point. */
function tell(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples, /** @type {number} */ point) {
  const { summary } = page;
  const cluster = page.clusters.get(samples.cluster[point]);
  const line = (/** @type {string} */ word, /** @type {string} */ text) => h("div", {}, h("span", {}, `${shorten(word, 24)} `), shorten(text, 40));
  const sure = samples.confidence?.[point];
  return [
    samples.shown && h("strong", {}, shorten(samples.shown[point] ?? "", 40)),
    h("div", {}, h("i", { class: "dot", style: { background: cluster?.colour ?? GREY } }), cluster ? `cluster ${cluster.number}${cluster.name ? ` · ${shorten(cluster.name, 30)}` : ""}` : "no cluster"),
    sure !== undefined && sure < 255 && line("confidence", two(sure / 254)),
    novelty(samples, point) && line("novelty", novelty(samples, point)),
    samples.hangs?.[point] && line("hangs on", summary.views[samples.hangs[point] - 1]?.name ?? "–"),
    samples.coverage && line("views", `${samples.coverage[point]} of ${summary.views.length}`),
    ...summary.metadata.map((/** @type {any} */ one) => samples[one.column] && line(one.name, metaText(one, samples[one.column][point]))),
  ].filter(Boolean);
}

/** What the colours mean. */
function showLegend(/** @type {import("../index.js").Page} */ { summary }, /** @type {HTMLElement} */ place, /** @type {import("../colouring.js").Colouring} */ way) {
  const { legend, palette } = way;
  const key = (/** @type {string} */ colour, /** @type {string} */ text) => h("li", { title: text }, h("i", { class: "dot", style: { background: colour } }), shorten(text, 26));
  if (legend.kind === "clusters") {
    const many = summary.clusters.length > 16;
    const button = (/** @type {any} */ one) =>
      h(
        "button",
        { type: "button", class: "pick", tabindex: -1, "data-cluster": one.number, "aria-pressed": "false", title: one.name ?? `Cluster ${one.number}` },
        h("i", { class: "dot", style: { background: one.colour } }),
        String(one.number),
        !many && one.name && ` ${shorten(one.name, 20)}`,
      );
    place.replaceChildren(h("ul", { class: many ? "many" : "", "aria-label": "Clusters" }, summary.clusters.map((/** @type {any} */ one) => h("li", {}, button(one)))));
  } else if (legend.kind === "levels") {
    place.replaceChildren(h("ul", { class: "levels", "aria-label": way.label }, legend.levels.map((text, i) => key(palette[i], text)), key(GREY, "unknown")));
  } else {
    place.replaceChildren(
      h("div", { class: "ramp" }, h("span", {}, shorten(way.label, 30)), h("i", { style: { background: gradient } }), h("span", {}, legend.low), h("span", {}, legend.high)),
    );
  }
}

/** Lasso, what is in view, zoom. */
function buttons(/** @type {ReturnType<typeof createMap>} */ map, /** @type {(points: number[]) => void} */ choose) {
  const button = (/** @type {string} */ word, /** @type {string} */ label, /** @type {() => void} */ work, more = {}) =>
    h("button", { type: "button", "aria-label": label, title: label, onclick: work, ...more }, word);
  let on = false;
  const lasso = button("Lasso", "Draw around samples to select them (or hold Shift)", () => {
    on = !on;
    map.lasso(on);
    lasso.setAttribute("aria-pressed", String(on));
  }, { "aria-pressed": "false" });
  return [
    lasso,
    button("Select view", "Select the samples that can be seen now", () => choose(map.inView())),
    h(
      "span",
      { class: "group" },
      button("+", "Zoom in", () => map.magnify(1.5)),
      button("−", "Zoom out", () => map.magnify(1 / 1.5)),
      button("Whole map", "Show the whole map", map.whole),
    ),
  ];
}

/** Search by id, where ids are in the page. */
function search(/** @type {import("../index.js").Page} */ page, /** @type {any} */ samples) {
  if (!("ids" in page.summary.columns)) return h("span", {});
  const list = h("datalist", { id: uniqueId("ids") });
  const said = h("span", { class: "said", role: "status" });
  const input = h("input", { type: "search", list: list.id, placeholder: "Find an id", "aria-label": "Find a sample by its id", autocomplete: "off", spellcheck: "false" });
  const matches = async (most = 8) => {
    const text = input.value.trim().toLowerCase();
    const found = [];
    if (text) await samples.readIds();
    for (const [i, id] of ((text && samples.shown) || []).entries()) {
      if (id.toLowerCase().startsWith(text)) found.push(i);
      if (found.length >= most) break;
    }
    return found;
  };
  input.addEventListener("input", async () => {
    said.textContent = "";
    list.replaceChildren(...(await matches()).map((i) => h("option", { value: samples.shown[i] })));
  });
  input.addEventListener("keydown", async (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return;
    let point = await samples.find(text);
    if (point < 0) point = (await matches(1))[0] ?? -1;
    if (point < 0) return void (said.textContent = `No sample ${shorten(visible(text), 30)} on this map`);
    said.textContent = `${shorten(samples.shown[point], 30)} found`;
    page.map?.choose([point]);
    page.map?.zoomTo([point]);
  });
  return h("span", { class: "find" }, input, list, said);
}

/** Paper has no WebGL: an image stands in while the page is printed. */
function printable(/** @type {import("../index.js").Page} */ page, /** @type {HTMLElement} */ frame, /** @type {ReturnType<typeof createMap>} */ map) {
  const image = h("img", { class: "printed", alt: "Map of samples" });
  const ending = new AbortController();
  const on = (/** @type {string} */ name, /** @type {() => void} */ work) => window.addEventListener(name, work, { signal: ending.signal });
  on("beforeprint", () => {
    image.src = map.image();
    frame.append(image);
  });
  on("afterprint", () => image.remove());
  page.onEnd(() => ending.abort());
}
