/**
 * What is chosen: one cluster, or a set of points of the map. Whatever shows clusters or points
 * subscribes here, so that a choice made anywhere is seen everywhere.
 *
 * @typedef {object} Selection
 * @property {number | null} cluster  The chosen cluster.
 * @property {Uint32Array | null} points  The chosen points, by their positions.
 * @property {ReadonlySet<number> | null} clusters  The chosen cluster, or those of the points.
 * @typedef {ReturnType<typeof createStore>} Store
 */

/** @type {Selection} */
const NOTHING = Object.freeze({ cluster: null, points: null, clusters: null });

export function createStore() {
  /** @type {Selection} */
  let now = NOTHING;
  /** @type {Set<(selection: Selection) => void>} */
  const listeners = new Set();

  const set = (/** @type {Selection} */ next) => {
    if (next === now || (next.cluster !== null && next.cluster === now.cluster)) return;
    now = next;
    for (const listener of listeners) listener(now);
  };
  const one = (/** @type {number} */ cluster) => ({ cluster, points: null, clusters: new Set([cluster]) });
  return {
    get: () => now,
    /** Choose a cluster; null for none. @param {number | null} cluster */
    cluster: (cluster) => set(cluster === null ? NOTHING : one(cluster)),
    /** Choose a cluster, or let go of it where it is chosen. @param {number} cluster */
    toggle: (cluster) => set(now.cluster === cluster ? NOTHING : one(cluster)),
    /**
     * Choose points of the map by their positions.
     *
     * @param {ArrayLike<number>} points
     * @param {Iterable<number>} clusters The clusters that they are in.
     */
    points: (points, clusters) =>
      set(points.length ? { cluster: null, points: Uint32Array.from(points), clusters: new Set(clusters) } : NOTHING),
    clear: () => set(NOTHING),
    /** Call on every change; returns how to stop. @param {(selection: Selection) => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
