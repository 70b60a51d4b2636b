/**
 * Pointer, wheel and keys over the map, for mouse, pen and touch alike: drag moves, two fingers or
 * wheel zoom, shift-drag (or drag while the lasso is on) draws a lasso, a click chooses.
 *
 * @typedef {object} Does
 * @property {(dx: number, dy: number) => void} pan
 * @property {(factor: number, x?: number, y?: number) => void} magnify
 * @property {() => void} whole
 * @property {(x: number, y: number, reach: number) => void} hover
 * @property {() => void} leave
 * @property {(x: number, y: number, reach: number) => void} click
 * @property {() => void} clear
 * @property {(path: [number, number][]) => void} lassoMove
 * @property {(path: [number, number][]) => void} lassoEnd
 * @property {() => void} hint  The wheel turned over a map that nobody has clicked on.
 */

const STEP = 60; // pixels that an arrow key moves
const CLICK = 4; // pixels that a click may wander

/**
 * @param {HTMLElement} element
 * @param {Does} does
 * @param {AbortSignal} signal  Ends all of it.
 */
export function listen(element, does, signal) {
  /** @type {Map<number, [number, number]>} */
  const down = new Map();
  /** @type {[number, number][] | null} */
  let lasso = null;
  let lassoOn = false;
  let [wander, pressed] = [0, false];

  const at = (/** @type {PointerEvent | WheelEvent | MouseEvent} */ event) => {
    const box = element.getBoundingClientRect();
    return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
  };
  const reach = (/** @type {PointerEvent} */ event) => (event.pointerType === "touch" ? 18 : 9);
  const on = (/** @type {string} */ name, /** @type {any} */ work, options = {}) =>
    element.addEventListener(name, work, { signal, ...options });

  on("pointerdown", (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0 || /** @type {Element} */ (event.target).closest("button")) return;
    element.setPointerCapture(event.pointerId);
    down.set(event.pointerId, at(event));
    [wander, pressed] = [0, true];
    if (down.size === 1 && (lassoOn || event.shiftKey)) lasso = [at(event)];
    else lasso = null;
  });
  on("pointermove", (/** @type {PointerEvent} */ event) => {
    const now = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") does.hover(...now, reach(event));
      return;
    }
    wander += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (lasso) {
      lasso.push(now);
      does.lassoMove(lasso);
    } else if (down.size === 2) {
      const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const spread = (/** @type {[number, number]} */ place) => Math.hypot(place[0] - other[0], place[1] - other[1]) || 1;
      does.magnify(spread(now) / spread(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      does.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    } else if (wander > CLICK) {
      does.leave();
      does.pan(now[0] - before[0], now[1] - before[1]);
    }
    down.set(event.pointerId, now);
  });
  const up = (/** @type {PointerEvent} */ event) => {
    if (!down.delete(event.pointerId)) return;
    if (lasso) {
      const path = lasso;
      lasso = null;
      does.lassoEnd(event.type === "pointerup" ? path : []);
    } else if (event.type === "pointerup" && pressed && wander <= CLICK) does.click(...at(event), reach(event));
    pressed = down.size > 0 && pressed;
  };
  on("pointerup", up);
  on("pointercancel", up);
  on("pointerleave", does.leave);
  on("dblclick", (/** @type {MouseEvent} */ event) => {
    event.preventDefault();
    does.clear();
  });
  on(
    "wheel",
    (/** @type {WheelEvent} */ event) => {
      // A page that scrolls should not be caught by a map on the way.
      if (!event.ctrlKey && !event.metaKey && !element.contains(document.activeElement)) return does.hint();
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 30 : 1;
      does.magnify(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * lines)) / 300), ...at(event));
    },
    { passive: false },
  );
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowLeft: () => does.pan(STEP, 0),
    ArrowRight: () => does.pan(-STEP, 0),
    ArrowUp: () => does.pan(0, STEP),
    ArrowDown: () => does.pan(0, -STEP),
    "+": () => does.magnify(1.4),
    "=": () => does.magnify(1.4),
    "-": () => does.magnify(1 / 1.4),
    0: () => does.whole(),
  };
  on("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== element || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  return {
    /** Let a plain drag draw a lasso, too. */
    lasso(/** @type {boolean} */ wanted) {
      lassoOn = wanted;
      element.classList.toggle("lassoing", wanted);
    },
  };
}
