/** Who moved from step to step, and what happened to clusters. */
import { chip, figure, note, section, table } from "../charts.js";
import { h } from "../dom.js";
import { count, counted, percent } from "../format.js";
import { drawFlow, hidden, layers } from "./flow-drawing.js";

/** @returns {HTMLElement} */
export function flowSection(/** @type {import("../index.js").Page} */ page) {
  const { steps, flow, events, clusters, earlier_steps: earlier, opening_step: opening = 0 } = page.summary;
  const others = flow.flat().some((/** @type {any} */ move) => move.from < -1 || move.to < -1);
  const drawn = (/** @type {number} */ first, /** @type {string} */ note) => {
    const laid = layers(flow.slice(first));
    const shown = steps.slice(first);
    const few = hidden(laid);
    return figure({
      label: `Samples on their way through ${shown.length} steps, by cluster`,
      draw: (width) => [
        drawFlow(page, laid, shown, { width: Math.max(width, 110 * shown.length), height: Math.min(620, Math.max(300, 14 * clusters.length + 120)) }),
      ],
      note: [note, few > 0 && `Ribbons of less than 1 % of the samples are not drawn (${counted(few, "move")}).`].filter(Boolean).join(" "),
    });
  };
  return section(
    "flow",
    "From step to step",
    steps.length > 1
      ? drawn(
          opening,
          [
            "A column is the clusters after a step, a ribbon is samples on their way to the next, as high as they are many. Strong ribbons moved to another cluster, pale ones stayed, grey ones came in new.",
            others && " The largest clusters are shown on their own, the others together, in grey.",
            earlier > 0 && ` ${counted(earlier, "earlier step")} ${earlier === 1 ? "is" : "are"} not shown.`,
            opening > 0 && ` It begins where clusters begin to last: ${counted(opening, "step")} before ${opening === 1 ? "was" : "were"} too different.`,
          ].filter(Boolean).join(""),
        )
      : note("There was one step so far. From the second one on, this shows who moved from cluster to cluster."),
    opening > 0 && h("details", { class: "screen" }, h("summary", {}, "From the first step on"), drawn(0, "")),
    events.length > 0 && eventTable(page),
  );
}

/** Events, the latest first. */
function eventTable(/** @type {import("../index.js").Page} */ page) {
  const { events } = page.summary;
  const chips = (/** @type {number[]} */ numbers) => numbers.map((number) => chip(page, number, { name: false }));
  return table(
    "What happened to clusters",
    [["step"], ["event"], ["before"], ["after"], ["samples"], ["share"], ["what happened"]],
    events.map((/** @type {any} */ event) => ({
      attributes: { "data-cluster": [...new Set([...event.after, ...event.before])].join(" ") || null },
      cells: [event.step, event.kind, chips(event.before), chips(event.after), count(event.count), percent(event.share), event.text],
    })),
  );
}
