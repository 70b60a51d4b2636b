/** Where on the map one looks: a centre, and pixels per unit. The map is the square −1…1. */

const MOST = 400; // times that the whole map may be enlarged
const MARGIN = 0.93; // of the shorter side, for the square as a whole

export function createCamera() {
  let [width, height] = [1, 1];
  let [x, y, zoom] = [0, 0, 1];

  const scale = () => (zoom * MARGIN * Math.min(width, height)) / 2;
  const keep = () => {
    zoom = Math.min(MOST, Math.max(0.8, zoom));
    x = Math.min(1, Math.max(-1, x));
    y = Math.min(1, Math.max(-1, y));
  };
  return {
    resize(/** @type {number} */ w, /** @type {number} */ h) {
      [width, height] = [Math.max(1, w), Math.max(1, h)];
    },
    size: () => [width, height],
    zoom: () => zoom,
    /** Pixels of a unit. */
    scale,
    /** From the map to pixels of the element. @returns {[number, number]} */
    toScreen: (px, py) => [width / 2 + (px - x) * scale(), height / 2 - (py - y) * scale()],
    /** From pixels of the element to the map. @returns {[number, number]} */
    toMap: (sx, sy) => [x + (sx - width / 2) / scale(), y - (sy - height / 2) / scale()],
    /** Move by pixels. */
    pan(/** @type {number} */ dx, /** @type {number} */ dy) {
      x -= dx / scale();
      y += dy / scale();
      keep();
    },
    /** Enlarge around a pixel, which stays where it is. */
    magnify(/** @type {number} */ factor, sx = width / 2, sy = height / 2) {
      const [mx, my] = this.toMap(sx, sy);
      zoom *= factor;
      keep();
      const [nx, ny] = this.toMap(sx, sy);
      x += mx - nx;
      y += my - ny;
      keep();
    },
    /** Look at a rectangle of the map, with some room around it. */
    fit(/** @type {number} */ x0, /** @type {number} */ y0, /** @type {number} */ x1, /** @type {number} */ y1) {
      x = (x0 + x1) / 2;
      y = (y0 + y1) / 2;
      const unit = Math.min(width, height) * MARGIN;
      zoom = Math.min(width / unit / Math.max(0.06, (x1 - x0) * 0.62), height / unit / Math.max(0.06, (y1 - y0) * 0.62));
      keep();
    },
    reset() {
      [x, y, zoom] = [0, 0, 1];
    },
    /** The matrix that regl-scatterplot has for its camera: heights are −1…1, widths follow. */
    matrix() {
      const k = (2 * scale()) / height;
      return new Float32Array([k, 0, 0, 0, 0, k, 0, 0, 0, 0, 1, 0, -x * k, -y * k, 0, 1]);
    },
  };
}
