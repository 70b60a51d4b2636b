/**
 * Numbers and names of clusters over the map: what colour says, said once more. Where tags would
 * cover each other, the smaller cluster loses its name, then its tag, until one looks closer.
 *
 * @typedef {{cluster: number, name: string | null, colour: string, x: number, y: number}} Tag
 */
import { h } from "../dom.js";
import { shorten, wide } from "../format.js";

const HEIGHT = 20;
const MANY = 24; // tags; beyond, names are seen from near only

/**
 * @param {HTMLElement} layer
 * @param {Tag[]} tags  The most important first.
 * @param {(cluster: number) => void} choose
 */
export function createTags(layer, tags, choose) {
  const room = (/** @type {string} */ text) => wide(text, 12, 600) + 14;
  const made = tags.map((tag) => {
    const number = String(tag.cluster);
    const name = tag.name ? shorten(tag.name, 18) : "";
    const element = h(
      "button",
      {
        type: "button",
        class: "tag",
        tabindex: -1,
        "data-cluster": tag.cluster,
        title: tag.name ? `${number} ${tag.name}` : `Cluster ${number}`,
        style: { borderColor: tag.colour },
        onclick: () => choose(tag.cluster),
      },
      number,
      name && h("span", {}, ` ${name}`),
    );
    return { tag, element, forms: name ? [room(`${number} ${name}`), room(number)] : [room(number)] };
  });
  layer.replaceChildren(...made.map(({ element }) => element));

  /** @type {{x: number, y: number, across: number, text: string, colour: string}[]} */
  let shown = [];
  return {
    /** Draw the tags that are shown now, as on white paper. */
    drawOn(/** @type {CanvasRenderingContext2D} */ paper) {
      paper.font = "600 12px system-ui, -apple-system, sans-serif";
      paper.textAlign = "center";
      paper.textBaseline = "middle";
      paper.lineWidth = 1.5;
      for (const { x, y, across, text, colour } of shown) {
        paper.beginPath();
        paper.roundRect(x - across / 2, y - HEIGHT / 2 + 1, across, HEIGHT - 2, 4);
        paper.fillStyle = "#ffffffe0";
        paper.fill();
        paper.strokeStyle = colour;
        paper.stroke();
        paper.fillStyle = "#000000";
        paper.fillText(text, x, y + 0.5);
      }
    },
    /** Put every tag where its cluster is now. */
    place(/** @type {ReturnType<typeof import("./camera.js").createCamera>} */ camera) {
      const [width, height] = camera.size();
      /** @type {number[][]} */
      const taken = [];
      shown = [];
      for (const { tag, element, forms } of made) {
        const [x, y] = camera.toScreen(tag.x, tag.y);
        const inside = x > 0 && y > 0 && x < width && y < height;
        const short = made.length > MANY && camera.zoom() < 1.6 ? forms.slice(-1) : forms;
        const found = inside ? freePlace(taken, short, x, y, width) : null;
        element.classList.toggle("away", !found);
        element.classList.toggle("plain", short.length < forms.length || Boolean(found?.form));
        if (!inside) continue;
        const [tx, ty] = found ? found.at : [x, y];
        const named = short.length > 1 && found?.form === 0;
        const text = named ? `${tag.cluster} ${shorten(tag.name ?? "", 18)}` : String(tag.cluster);
        if (found) shown.push({ x: tx, y: ty, across: short[found.form], text, colour: tag.colour });
        element.style.transform = `translate(${tx.toFixed(1)}px, ${ty.toFixed(1)}px) translate(-50%, -50%)`;
      }
    },
  };
}

/** The first form and place, near its own, that covers no other tag; the place is taken. */
function freePlace(/** @type {number[][]} */ taken, /** @type {number[]} */ forms, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ width) {
  for (const [form, across] of forms.entries()) {
    const half = across / 2;
    const inner = Math.min(width - half - 2, Math.max(half + 2, x)); // a name is not cut at the edge
    for (const shift of [0, -HEIGHT, HEIGHT]) {
      const box = [inner - half, y + shift - HEIGHT / 2, inner + half, y + shift + HEIGHT / 2];
      const free = taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
      if (!free) continue;
      taken.push(box);
      return { form, at: [inner, y + shift] };
    }
  }
  return null;
}
