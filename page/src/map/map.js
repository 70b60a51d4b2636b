/**
 * The map of samples, for page and notebook: points, tags of clusters, lasso, tooltip.
 *
 * @typedef {object} Handlers
 * @property {(points: number[]) => void} [points]  A lasso or a click chose these.
 * @property {(cluster: number) => void} [cluster]  The tag of a cluster was clicked.
 * @property {() => void} [clear]  Nothing is to be chosen any more.
 * @property {(point: number) => any[]} [tell]  Nodes or texts for the tooltip of a point.
 */
import { h, svg } from "../dom.js";
import { createCamera } from "./camera.js";
import { listen } from "./gestures.js";
import { createCanvasPainter } from "./paint-canvas.js";
import { createWebglPainter } from "./paint-webgl.js";
import { createPicker } from "./picking.js";
import { createTags } from "./tags.js";

const HINT = "Click the map, or hold Ctrl or ⌘, to zoom with the wheel";

/**
 * @param {HTMLElement} element  Is filled; its size is the map's.
 * @param {{x: Uint16Array, y: Uint16Array, tags: import("./tags.js").Tag[]}} data
 * @param {Handlers} handlers
 */
export function createMap(element, { x, y, tags }, handlers) {
  const n = x.length;
  const ending = new AbortController();
  let canvas = h("canvas", { "aria-hidden": true });
  const ring = svg("circle", { class: "ring", r: 7 });
  const path = svg("path", { class: "lasso" });
  const overlay = svg("svg", { class: "over", "aria-hidden": true }, path, ring);
  const layer = h("div", { class: "tags", "aria-hidden": true });
  const tooltip = h("div", { class: "tooltip", role: "status", hidden: true });
  const hint = h("div", { class: "hint", "aria-hidden": true }, HINT);
  const surface = h(
    "div",
    {
      class: "map",
      tabindex: 0,
      role: "group",
      "aria-label": "Map of samples. Arrow keys move it, plus and minus zoom, 0 shows the whole map.",
    },
    canvas,
    overlay,
    layer,
    tooltip,
    hint,
  );
  element.replaceChildren(surface);

  const camera = createCamera();
  const picker = createPicker(x, y);
  const byWebgl = createWebglPainter(canvas, x, y);
  if (!byWebgl) {
    const fresh = h("canvas", { "aria-hidden": true }); // one that was tried with WebGL has no other context
    canvas.replaceWith(fresh);
    canvas = fresh;
  }
  const painter = byWebgl ?? createCanvasPainter(canvas, x, y);
  surface.dataset.painter = byWebgl ? "webgl" : "canvas";
  const labels = createTags(layer, tags, (cluster) => handlers.cluster?.(cluster));
  let palette = ["#8a919c"];
  /** @type {ArrayLike<number>} */
  let colours = new Uint8Array(n);
  /** @type {Uint8Array | null} */
  let flags = null;
  let hovered = -1;
  let frame = 0;

  /** Smaller and paler points where there are many of them. */
  function style() {
    const small = Math.min(1, Math.max(0.7, Math.min(...camera.size()) / 560));
    const size = small * Math.min(9, Math.max(1.4, 6.4 * (2000 / n) ** 0.24));
    const solid = Math.min(0.9, Math.max(0.45, 0.9 * (4000 / n) ** 0.12));
    const faint = n > 50_000 ? 0.03 : n > 5000 ? 0.06 : 0.12;
    painter.style(palette, flags ? [faint, Math.max(solid, 0.8)] : [solid, solid], [size, flags ? size * 1.15 : size]);
  }
  function look() {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      painter.look(camera);
      labels.place(camera);
      showRing();
    });
  }
  function showRing() {
    ring.classList.toggle("shown", hovered >= 0);
    if (hovered < 0) return void (tooltip.hidden = true);
    const [sx, sy] = camera.toScreen(...picker.place(hovered));
    ring.setAttribute("cx", String(sx));
    ring.setAttribute("cy", String(sy));
    const right = sx < camera.size()[0] / 2;
    tooltip.style.transform = `translate(${sx + (right ? 14 : -14)}px, ${sy}px) translate(${right ? 0 : -100}%, -50%)`;
  }
  function hover(/** @type {number} */ point) {
    if (point === hovered) return;
    hovered = point;
    if (point >= 0) tooltip.replaceChildren(...(handlers.tell?.(point) ?? []));
    tooltip.hidden = point < 0 || !handlers.tell;
    showRing();
  }
  const pick = (/** @type {number} */ sx, /** @type {number} */ sy, /** @type {number} */ reach) =>
    picker.nearest(...camera.toMap(sx, sy), reach / camera.scale());
  const moved = (/** @type {() => void} */ move) => {
    move();
    look();
  };
  let hintTimer = 0;
  const gestures = listen(
    surface,
    {
      pan: (dx, dy) => moved(() => camera.pan(dx, dy)),
      magnify: (factor, sx, sy) => moved(() => camera.magnify(factor, sx, sy)),
      whole: () => moved(camera.reset),
      hover: (sx, sy, reach) => hover(pick(sx, sy, reach)),
      leave: () => hover(-1),
      click(sx, sy, reach) {
        const point = pick(sx, sy, reach);
        hover(point);
        if (point >= 0) handlers.points?.([point]);
      },
      clear: () => handlers.clear?.(),
      lassoMove(points) {
        hover(-1);
        path.setAttribute("d", `M${points.map((place) => place.map((part) => part.toFixed(1)).join(",")).join("L")}Z`);
      },
      lassoEnd(points) {
        path.setAttribute("d", "");
        if (points.length > 2) handlers.points?.(picker.inside(points.map(([sx, sy]) => camera.toMap(sx, sy))));
      },
      hint() {
        hint.classList.add("shown");
        clearTimeout(hintTimer);
        hintTimer = window.setTimeout(() => hint.classList.remove("shown"), 1200);
      },
    },
    ending.signal,
  );
  const watch = new ResizeObserver(([{ contentRect }]) => {
    camera.resize(contentRect.width, contentRect.height);
    style();
    look();
  });
  watch.observe(surface);

  return {
    element: surface,
    /** Colour point i as palette[values[i]]. Returns when it is drawn. */
    colour(/** @type {ArrayLike<number>} */ values, /** @type {string[]} */ newPalette) {
      [colours, palette] = [values, newPalette];
      style();
      return painter.draw(colours, flags);
    },
    /** Show points with a flag, the others faint; null for all alike. */
    highlight(/** @type {Uint8Array | null} */ newFlags) {
      if (!newFlags && !flags) return Promise.resolve();
      flags = newFlags;
      style();
      return painter.draw(colours, flags);
    },
    lasso: gestures.lasso,
    magnify: (/** @type {number} */ factor) => moved(() => camera.magnify(factor)),
    whole: () => moved(camera.reset),
    zoomTo: (/** @type {ArrayLike<number>} */ points) => moved(() => camera.fit(...picker.around(points))),
    /** The points that can be seen now. */
    inView() {
      const [width, height] = camera.size();
      const corners = [[0, 0], [width, 0], [width, height], [0, height]];
      return picker.inside(corners.map(([sx, sy]) => camera.toMap(sx, sy)));
    },
    /** Where a point is, in pixels of the element. */
    where: (/** @type {number} */ point) => camera.toScreen(...picker.place(point)),
    /** What is seen, with tags, for paper. */
    image() {
      const ratio = window.devicePixelRatio;
      const sheet = h("canvas", { width: canvas.width, height: canvas.height });
      const paper = sheet.getContext("2d");
      paper.drawImage(canvas, 0, 0);
      paper.scale(ratio, ratio);
      labels.drawOn(paper);
      return sheet.toDataURL("image/png");
    },
    destroy() {
      ending.abort();
      watch.disconnect();
      cancelAnimationFrame(frame);
      painter.destroy();
      element.replaceChildren();
    },
  };
}
