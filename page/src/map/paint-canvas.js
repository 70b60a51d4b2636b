/** Points by a plain canvas, where there is no WebGL: pixels are mixed here, a disc for each point. */

/** How much of each pixel a disc covers, around its centre. */
function disc(/** @type {number} */ diameter) {
  const radius = diameter / 2;
  const reach = Math.ceil(radius);
  const pixels = [];
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) {
      const cover = Math.min(1, Math.max(0, radius + 0.5 - Math.hypot(dx, dy)));
      if (cover > 0.02) pixels.push([dx, dy, cover]);
    }
  }
  return pixels;
}

const bytes = (/** @type {string} */ hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Uint16Array} x
 * @param {Uint16Array} y
 */
export function createCanvasPainter(canvas, x, y) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  /** @type {ArrayLike<number>} */
  let colours = [];
  /** @type {Uint8Array | null} */
  let flags = null;
  /** @type {ReturnType<typeof import("./camera.js").createCamera> | null} */
  let camera = null;
  let rgb = [[136, 136, 136]];
  let [opacity, size] = [[1, 1], [4, 4]];
  let waiting = 0;

  function paint() {
    waiting = 0;
    if (!camera || !colours.length) return;
    const ratio = window.devicePixelRatio;
    const [width, height] = camera.size().map((side) => Math.max(1, Math.floor(side * ratio)));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const image = context.createImageData(width, height);
    const near = (2 * camera.scale()) / camera.size()[1];
    const grown = near > 1 ? Math.asinh(near) / Math.asinh(1) : near;
    const discs = size.map((one) => disc(Math.max(1, one * grown * ratio)));
    const [left, top] = camera.toScreen(-1, 1).map((value) => value * ratio);
    const step = (camera.scale() * ratio) / 32767.5;
    for (const turn of flags ? [0, 1] : [1]) {
      for (let i = 0; i < x.length; i++) {
        if (flags && flags[i] !== turn) continue;
        const px = Math.round(left + x[i] * step);
        const py = Math.round(top + (65535 - y[i]) * step);
        if (px < -9 || py < -9 || px > width + 9 || py > height + 9) continue;
        blend(image, px, py, rgb[Math.min(colours[i], rgb.length - 1)], discs[turn], opacity[turn]);
      }
    }
    context.putImageData(image, 0, 0);
  }
  const later = () => {
    waiting ||= requestAnimationFrame(paint);
  };
  return {
    async draw(/** @type {ArrayLike<number>} */ newColours, /** @type {Uint8Array | null} */ newFlags) {
      [colours, flags] = [newColours, newFlags];
      later();
    },
    style(/** @type {string[]} */ palette, /** @type {[number, number]} */ newOpacity, /** @type {[number, number]} */ newSize) {
      [rgb, opacity, size] = [palette.map(bytes), newOpacity, newSize];
      later();
    },
    look(/** @type {ReturnType<typeof import("./camera.js").createCamera>} */ newCamera) {
      camera = newCamera;
      later();
    },
    destroy: () => cancelAnimationFrame(waiting),
  };
}

/** Mix a disc into an image: colours over what is there. */
function blend(/** @type {ImageData} */ { data, width, height }, px, py, colour, pixels, opacity) {
  for (const [dx, dy, cover] of pixels) {
    const [cx, cy] = [px + dx, py + dy];
    if (cx < 0 || cy < 0 || cx >= width || cy >= height) continue;
    const at = 4 * (cy * width + cx);
    const alpha = cover * opacity;
    const under = (data[at + 3] / 255) * (1 - alpha);
    const all = alpha + under;
    for (let part = 0; part < 3; part++) data[at + part] = (colour[part] * alpha + data[at + part] * under) / all;
    data[at + 3] = 255 * all;
  }
}
