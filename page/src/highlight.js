/** What shows a cluster carries `data-cluster`; this says which of it is chosen, which is not. */

/**
 * Keep the classes `on` and `dim` of all marks below an element as the store has it, and let
 * clicks on marks choose. A mark may show several clusters: their numbers, with spaces.
 *
 * @param {HTMLElement} root
 * @param {import("./store.js").Store} store
 */
export function highlight(root, store) {
  const words = () => {
    const { clusters } = store.get();
    return clusters && new Set([...clusters].map(String));
  };
  store.subscribe(() => {
    const chosen = words();
    for (const mark of root.querySelectorAll("[data-cluster]")) paint(mark, chosen);
  });
  root.addEventListener("click", (event) => {
    const mark = /** @type {Element} */ (event.target).closest("[data-cluster]");
    if (!mark || mark.closest("[data-own-click]")) return;
    const [cluster] = /** @type {HTMLElement} */ (mark).dataset.cluster?.split(" ") ?? [];
    if (cluster) store.toggle(Number(cluster));
  });
  // Figures that are drawn later, or again for another width, show the same choice.
  new MutationObserver((changes) => {
    const chosen = words();
    if (!chosen) return;
    for (const node of changes.flatMap(({ addedNodes }) => [...addedNodes])) {
      if (!(node instanceof Element)) continue;
      if (node.matches("[data-cluster]")) paint(node, chosen);
      for (const mark of node.querySelectorAll("[data-cluster]")) paint(mark, chosen);
    }
  }).observe(root, { childList: true, subtree: true });
}

/** Mark one element as chosen, as another, or as neither where nothing is chosen. */
function paint(/** @type {any} */ mark, /** @type {Set<string> | null} */ chosen) {
  const own = chosen !== null && mark.dataset.cluster.split(" ").some((/** @type {string} */ word) => chosen.has(word));
  mark.classList.toggle("on", own);
  mark.classList.toggle("dim", chosen !== null && !own);
  if (mark.hasAttribute("aria-pressed")) mark.setAttribute("aria-pressed", String(own));
}
