/**
 * The map in notebooks, for anywidget. Traits: `summary` (dict), `columns` (dict of bytes), `selection`
 * (positions of points, both ways), `colour_by` (key of a colouring) and `height` (pixels).
 */
import { gradient, GREY } from "./colour.js";
import { colourings, indexed, metaText } from "./colouring.js";
import { h } from "./dom.js";
import { called, idsOf, shorten, two } from "./format.js";
import css from "./map/map.css";
import { createMap } from "./map/map.js";
import { held } from "./source.js";
import style from "./widget.css";

/** @param {{model: any, el: HTMLElement}} context */
async function render({ model, el }) {
  const ending = new AbortController();
  /** @type {ReturnType<typeof createMap> | null} */
  let map = null;
  let turn = 0;

  async function show() {
    const own = ++turn;
    const summary = model.get("summary");
    const source = held(summary, model.get("columns"));
    const names = Object.keys(summary.columns).filter((name) => name !== "ids");
    /** @type {any} */
    const data = {};
    for (const name of names) data[name] = await source.column(name);
    data.ids = "ids" in summary.columns ? idsOf(String(await source.column("ids"))).shown : null;
    if (own !== turn || ending.signal.aborted) return;
    map?.destroy();
    map = await draw({ model, el, signal: ending.signal }, summary, data);
  }
  const again = () => void show();
  model.on("change:summary", again);
  await show();
  return () => {
    turn++;
    ending.abort();
    model.off("change:summary", again);
    map?.destroy();
    el.replaceChildren();
  };
}

/** The map of one state of the model, with its controls. */
async function draw({ model, el, signal }, summary, data) {
  const ways = colourings(summary);
  const clusters = new Map(summary.clusters.map((one) => [one.number, one]));
  const by = h("select", { "aria-label": "Colour by" }, ways.map(({ key, label }) => h("option", { value: key }, shorten(label, 40))));
  const lasso = h("button", { type: "button", "aria-pressed": "false", title: "Draw around samples to select them (or hold Shift)" }, "Lasso");
  const whole = h("button", { type: "button" }, "Whole map");
  const said = h("span", { class: "said", role: "status" });
  const legend = h("span", { class: "legend" });
  const frame = h("div", { class: "frame", style: { height: `${model.get("height") ?? 480}px` } });
  const card = h("div", { class: "viewfold-widget" }, h("style", {}, style, css), h("div", { class: "tools" }, h("label", {}, "Colour by ", by), lasso, whole, legend, said), frame);
  el.replaceChildren(card);

  const select = (/** @type {ArrayLike<number>} */ points) => {
    model.set("selection", Array.from(points));
    model.save_changes();
    chosen();
  };
  const tags = summary.clusters.filter(({ x, y }) => x !== null && y !== null).sort((a, b) => b.size - a.size);
  const map = createMap(frame, { x: data.x, y: data.y, tags: tags.map((one) => ({ ...one, cluster: one.number })) }, {
    points: select,
    cluster: (number) => select([...data.cluster.keys()].filter((i) => data.cluster[i] === number)),
    clear: () => select([]),
    tell: (point) => tell(summary, clusters, data, point),
  });
  function chosen() {
    const points = model.get("selection") ?? [];
    const flags = points.length ? new Uint8Array(data.x.length) : null;
    for (const point of points) if (flags && point >= 0 && point < flags.length) flags[point] = 1;
    said.textContent = points.length ? `${points.length} selected` : "";
    return map.highlight(flags);
  }
  function colour() {
    const way = ways.find(({ key }) => key === by.value) ?? ways[0];
    legend.replaceChildren(...(way.legend.kind === "ramp" ? [way.legend.low, h("i", { style: { background: gradient } }), way.legend.high] : []));
    if (way.legend.kind === "levels") {
      legend.replaceChildren(...way.legend.levels.slice(0, 12).map((text, i) => h("span", {}, h("i", { class: "dot", style: { background: way.palette[i] } }), shorten(text, 20))));
    }
    return map.colour(indexed(data[way.column], way.palette), way.palette);
  }
  by.addEventListener("change", () => {
    model.set("colour_by", by.value);
    model.save_changes();
  });
  lasso.addEventListener("click", () => {
    const on = lasso.getAttribute("aria-pressed") === "false";
    lasso.setAttribute("aria-pressed", String(on));
    map.lasso(on);
  });
  whole.addEventListener("click", map.whole);
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") select([]);
  });
  const recolour = () => {
    by.value = ways.some(({ key }) => key === model.get("colour_by")) ? model.get("colour_by") : "cluster";
    return colour();
  };
  const listeners = { "change:selection": chosen, "change:colour_by": recolour };
  for (const [name, listener] of Object.entries(listeners)) model.on(name, listener);
  const { destroy } = map;
  map.destroy = () => {
    for (const [name, listener] of Object.entries(listeners)) model.off(name, listener);
    destroy();
  };
  signal.addEventListener("abort", () => map.lasso(false));
  await recolour();
  await chosen();
  return map;
}

/** What a tooltip says of a point. */
function tell(summary, clusters, data, point) {
  const cluster = clusters.get(data.cluster[point]);
  const line = (word, text) => h("div", {}, h("span", {}, `${shorten(word, 24)} `), shorten(text, 40));
  const sure = data.confidence?.[point] ?? 255;
  return [
    data.ids && h("strong", {}, shorten(data.ids[point] ?? "", 40)),
    h("div", {}, h("i", { class: "dot", style: { background: cluster?.colour ?? GREY } }), cluster ? `cluster ${shorten(called(cluster), 34)}` : "no cluster"),
    sure < 255 && line("confidence", two(sure / 254)),
    data.coverage && line("views", `${data.coverage[point]} of ${summary.views.length}`),
    ...summary.metadata.map((one) => line(one.name, metaText(one, data[one.column][point]))),
  ].filter(Boolean);
}

export default { render };
