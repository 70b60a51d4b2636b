/** Which point is under the pointer, which are inside a lasso. One code for WebGL and canvas. */

const UNIT = 65535 / 2;
const CELLS = 256;

/**
 * @param {Uint16Array} x
 * @param {Uint16Array} y 0…65535 over −1…1.
 */
export function createPicker(x, y) {
  const n = x.length;
  /** @type {{starts: Uint32Array, order: Uint32Array} | null} */
  let grid = null;

  /** Points by cell of a grid, made when first asked for. */
  function cells() {
    if (grid) return grid;
    const starts = new Uint32Array(CELLS * CELLS + 1);
    for (let i = 0; i < n; i++) starts[(y[i] >> 8) * CELLS + (x[i] >> 8) + 1]++;
    for (let c = 0; c < CELLS * CELLS; c++) starts[c + 1] += starts[c];
    const next = starts.slice();
    const order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[next[(y[i] >> 8) * CELLS + (x[i] >> 8)]++] = i;
    return (grid = { starts, order });
  }

  const column = (/** @type {number} */ value) => Math.min(CELLS - 1, Math.max(0, Math.floor((value + 1) * UNIT) >> 8));
  return {
    /** The point next to a place of the map, or −1 if none is within the radius. */
    nearest(/** @type {number} */ px, /** @type {number} */ py, /** @type {number} */ radius) {
      const { starts, order } = cells();
      let [best, distance] = [-1, radius * radius];
      for (let row = column(py - radius); row <= column(py + radius); row++) {
        const first = starts[row * CELLS + column(px - radius)];
        const last = starts[row * CELLS + column(px + radius) + 1];
        for (let at = first; at < last; at++) {
          const i = order[at];
          const d = (x[i] / UNIT - 1 - px) ** 2 + (y[i] / UNIT - 1 - py) ** 2;
          if (d <= distance) [best, distance] = [i, d];
        }
      }
      return best;
    },
    /** The points inside a polygon of the map. */
    inside(/** @type {[number, number][]} */ polygon) {
      const corners = polygon.map(([px, py]) => [(px + 1) * UNIT, (py + 1) * UNIT]);
      const [xs, ys] = [corners.map((c) => c[0]), corners.map((c) => c[1])];
      const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
      const [y0, y1] = [Math.min(...ys), Math.max(...ys)];
      const found = [];
      for (let i = 0; i < n; i++) {
        if (x[i] < x0 || x[i] > x1 || y[i] < y0 || y[i] > y1) continue;
        let odd = false; // crossings of the ray to the right
        for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
          if (ys[a] > y[i] !== ys[b] > y[i] && x[i] < ((xs[b] - xs[a]) * (y[i] - ys[a])) / (ys[b] - ys[a]) + xs[a]) odd = !odd;
        }
        if (odd) found.push(i);
      }
      return found;
    },
    /** The rectangle of the map around points. @returns {[number, number, number, number]} */
    around(/** @type {ArrayLike<number>} */ points) {
      let [x0, y0, x1, y1] = [65535, 65535, 0, 0];
      for (let at = 0; at < points.length; at++) {
        const i = points[at];
        x0 = Math.min(x0, x[i]);
        x1 = Math.max(x1, x[i]);
        y0 = Math.min(y0, y[i]);
        y1 = Math.max(y1, y[i]);
      }
      return [x0 / UNIT - 1, y0 / UNIT - 1, x1 / UNIT - 1, y1 / UNIT - 1];
    },
    /** Where a point is. @returns {[number, number]} */
    place: (/** @type {number} */ i) => [x[i] / UNIT - 1, y[i] / UNIT - 1],
  };
}
