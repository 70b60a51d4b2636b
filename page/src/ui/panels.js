/** Panels other than that of a file: the number of clusters, taking back, forgetting, export. */
import { h } from "../dom.js";
import { counted, shorten, visible } from "../format.js";
import { changesOf } from "./changes.js";
import { button, choice, field, notes, problem, progress } from "./parts.js";

const LISTED = 20;

/** Do something and show how far it is, in a place of a panel. */
async function run(/** @type {import("../ui.js").Ui} */ ui, /** @type {HTMLElement} */ place, /** @type {string} */ doing, /** @type {(tell: (job: any) => void) => Promise<any>} */ work) {
  const shown = progress(doing, null);
  place.replaceChildren(shown.element);
  ui.working(true);
  try {
    place.replaceChildren(...[await work(shown.tell)].flat().filter(Boolean));
  } catch (error) {
    place.replaceChildren(problem(/** @type {Error} */ (error).message));
  } finally {
    ui.working(false);
  }
}

export function clustersPanel(/** @type {import("../ui.js").Ui} */ ui) {
  const number = h("input", { type: "number", min: 1, value: ui.status.clusters });
  const place = h("div", { class: "place" });
  const scores = h("div", { class: "place" });
  const suggest = () =>
    run(ui, scores, "Looking at numbers of clusters", async (tell) => {
      const found = await ui.api.work("suggest", {}, tell);
      number.value = found.suggested;
      const most = Math.max(...found.scores.map((/** @type {any} */ one) => one.score), 1e-9);
      return [
        h("p", {}, found.evidence),
        h("ul", { class: "scores" }, found.scores.map((/** @type {any} */ one) =>
          h("li", {}, button(String(one.clusters), () => (number.value = one.clusters), { class: one.suggested ? "primary" : "", "aria-label": `${one.clusters} clusters, score ${one.score}` }),
            h("i", { style: { height: `${Math.max(2, (100 * Math.max(0, one.score)) / most)}%` } })))),
      ];
    });
  const find = () =>
    run(ui, place, "Finding clusters", async (tell) => {
      const done = await ui.api.work("recluster", { clusters: Number(number.value), entry: ui.status.entry }, tell);
      await ui.refresh();
      return [h("p", {}, done.before === done.clusters ? `There are ${done.clusters} clusters, as before.` : `There are ${done.clusters} clusters now; there were ${done.before}.`), notes(done.notes), changesOf(done.changes)];
    });
  ui.open("Another number of clusters", h("div", { class: "body" },
    h("p", { class: "note" }, "The embedding stays as it is, and clusters that stay keep their numbers. It can be taken back."),
    h("div", { class: "fields" }, field("clusters", number)),
    h("p", { class: "row" }, button("Find clusters", find, { class: "primary" }), button("Which number stands out?", suggest)),
    scores, place));
}

export async function undoPanel(/** @type {import("../ui.js").Ui} */ ui) {
  const body = h("div", { class: "body" }, h("p", { class: "note" }, "…"));
  const panel = ui.open("Take back the last change", body);
  let would;
  try {
    would = await ui.api.get("undo");
  } catch (error) {
    body.replaceChildren(problem(/** @type {Error} */ (error).message), h("p", { class: "row" }, button("Close", () => panel.close())));
    return;
  }
  const undo = () =>
    run(ui, body, "Taking back", async () => {
      const done = await ui.api.post("undo", { entry: would.entry });
      await ui.refresh();
      const left = done.views.length ? `the views ${done.views.join(", ")}` : "no view";
      return [h("p", {}, `Took back ${would.said}. There are ${counted(done.samples, "sample")} and ${left} now.`), h("p", { class: "row" }, button("Done", () => panel.close(), { class: "primary" }))];
    });
  body.replaceChildren(
    h("p", {}, "This takes back ", h("strong", {}, would.said), "."),
    h("p", { class: "note" }, "What was taken back is gone; fold the file again to have it."),
    h("p", { class: "row" }, button("Take it back", undo, { class: "primary" }), button("Leave it", () => panel.close())));
  panel.focus();
}

/** Ask before samples are removed for good; the promise ends when it was done, or was not wanted. */
export function forgetPanel(/** @type {import("../ui.js").Ui} */ ui, /** @type {string[]} */ ids) {
  const body = h("div", { class: "body" });
  const panel = ui.open(`Forget ${counted(ids.length, "sample")}`, body);
  const forget = () =>
    run(ui, body, "Forgetting", async () => {
      const done = await ui.api.post("forget", { ids });
      await ui.refresh();
      return [h("p", {}, `${counted(done.forgotten, "sample")} forgotten; ${counted(done.samples, "sample")} left.`), notes(done.notes), h("p", { class: "row" }, button("Done", () => panel.close(), { class: "primary" }))];
    });
  body.replaceChildren(
    h("p", {}, h("strong", {}, "This cannot be undone. "), "The samples are removed from the state, from its history, and from all it can be returned to."),
    h("p", { class: "ids" }, ids.slice(0, LISTED).map((id) => shorten(visible(id), 60)).join(", "), ids.length > LISTED && ` … and ${counted(ids.length - LISTED, "more sample")}`),
    h("p", { class: "row" }, button(`Forget ${counted(ids.length, "sample")} for good`, forget, { class: "danger" }), button("Keep them", () => panel.close())));
  panel.focus();
}

export function exportPanel(/** @type {import("../ui.js").Ui} */ ui) {
  const kinds = /** @type {[string, string][]} */ ([["csv", "CSV"], ["xlsx", "Excel"], ["parquet", "Parquet"], ["jsonl", "JSON lines"], ["tsv", "TSV"], ["arrow", "Arrow"]]);
  const kind = choice(kinds);
  const place = h("div", { class: "place" });
  const save = () =>
    run(ui, place, "Writing", async () => {
      const stem = ui.status.file.replace(/\.vfd?$/, "");
      await ui.api.save(`export?format=${kind.value}`, `${stem}-clusters.${kind.value}`);
      return h("p", { role: "status" }, "Your browser has the file.");
    });
  ui.open("Export", h("div", { class: "body" },
    h("p", { class: "note" }, "The cluster of every sample, with its confidence and the number of its views."),
    h("div", { class: "fields" }, field("format", kind)),
    h("p", { class: "row" }, button("Download", save, { class: "primary" })), place));
}
