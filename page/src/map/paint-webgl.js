/**
 * Points by WebGL: regl-scatterplot draws, and nothing else. Where one looks and what is chosen is
 * decided in map.js, so that touch, keyboard and a canvas without WebGL behave the same.
 */
import createRegl from "regl";
import createScatterplot, { createSpatialIndex } from "regl-scatterplot";
import { pause } from "../source.js";

const NEEDED = ["OES_texture_float", "OES_element_index_uint", "WEBGL_color_buffer_float", "EXT_float_blend"];
const CHUNK = 100_000; // points between pauses

/** The context to draw by; null where this browser has none that will do. */
function contextOf(/** @type {HTMLCanvasElement} */ canvas) {
  const gl = canvas.getContext("webgl", { antialias: false, preserveDrawingBuffer: true });
  if (!gl) return null;
  const fine = NEEDED.every((name) => gl.getExtension(name)) && gl.getParameter(gl.MAX_VERTEX_TEXTURE_IMAGE_UNITS) > 2;
  if (!fine) gl.getExtension("WEBGL_lose_context")?.loseContext();
  return fine ? gl : null;
}

/**
 * Draw straight to the canvas that is seen. The library's own way is by a buffer as large as the
 * window and a copy of it, which is slow where there is no GPU.
 */
function createRenderer(/** @type {HTMLCanvasElement} */ canvas, /** @type {WebGLRenderingContext} */ gl) {
  const regl = createRegl({ gl, extensions: NEEDED });
  /** @type {Set<() => void>} */
  const works = new Set();
  const frame = regl.frame(() => works.forEach((work) => work()));
  return {
    canvas,
    regl,
    gamma: 1,
    isSupported: true,
    isDestroyed: false,
    render(/** @type {() => void} */ draw) {
      regl.clear({ color: [0, 0, 0, 0], depth: 1 });
      draw();
    },
    onFrame(/** @type {() => void} */ work) {
      works.add(work);
      return () => works.delete(work);
    },
    refresh: () => regl.poll(),
    destroy() {
      frame.cancel();
      regl.destroy();
    },
  };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Uint16Array} x
 * @param {Uint16Array} y
 * @returns Null where there is no WebGL.
 */
export function createWebglPainter(canvas, x, y) {
  const gl = contextOf(canvas);
  if (!gl) return null;
  const renderer = createRenderer(canvas, gl);
  const plot = createScatterplot({
    canvas,
    renderer,
    cameraIsFixed: true,
    actionKeyMap: {},
    deselectOnDblClick: false,
    deselectOnEscape: false,
    colorBy: "valueZ",
    opacityBy: "valueW",
    sizeBy: "valueW",
    pointColor: ["#888888", "#888888"],
    spatialIndexUseWorker: false,
  });
  /** @type {number[][] | null} x, y, colour, chosen: one list for each point, kept and changed. */
  let points = null;
  /** @type {[ArrayLike<number>, Uint8Array | null] | null} */
  let wanted = null;
  /** @type {Promise<void> | null} */
  let working = null;
  let ended = false;

  /** Fill the points in, with pauses; false if something else is wanted by then. */
  async function fill(/** @type {ArrayLike<number>} */ colours, /** @type {Uint8Array | null} */ flags) {
    const fresh = points ?? new Array(x.length);
    for (let start = 0; start < x.length; start += CHUNK) {
      const end = Math.min(x.length, start + CHUNK);
      for (let i = start; i < end; i++) {
        if (points) {
          points[i][2] = colours[i];
          points[i][3] = flags ? flags[i] : 1;
        } else fresh[i] = [x[i] / 32767.5 - 1, y[i] / 32767.5 - 1, colours[i], flags ? flags[i] : 1];
      }
      if (end < x.length) await pause();
      if (wanted || ended) return false;
    }
    points = fresh;
    return true;
  }
  /** Draw what is wanted last; the library does not take a drawing while it is at another. */
  async function work() {
    // An index of no points: picking is ours, and sorting a million of them would take a second.
    const spatialIndex = await createSpatialIndex([], false);
    while (wanted && !ended) {
      const [colours, flags] = wanted;
      wanted = null;
      if (!(await fill(colours, flags))) continue;
      await plot.draw(points, { zDataType: "categorical", wDataType: "categorical", spatialIndex });
    }
    working = null;
  }
  /** Colours and flags are parts of the points: they are handed over again. */
  function draw(/** @type {ArrayLike<number>} */ colours, /** @type {Uint8Array | null} */ flags) {
    wanted = [colours, flags];
    return (working ??= work());
  }
  return {
    draw,
    style(/** @type {string[]} */ palette, /** @type {[number, number]} */ opacity, /** @type {[number, number]} */ size) {
      // One colour alone would be taken for a single colour of all points.
      plot.set({ pointColor: palette.length > 1 ? palette : [...palette, ...palette], opacity, pointSize: size });
    },
    look: (/** @type {ReturnType<typeof import("./camera.js").createCamera>} */ camera) => plot.view(camera.matrix(), { preventEvent: true }),
    destroy() {
      ended = true;
      plot.destroy();
      renderer.destroy();
    },
  };
}
