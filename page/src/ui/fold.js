/** A file becomes a view: what was understood, what to correct, a try, the fold, what moved. */
import { h, uniqueId } from "../dom.js";
import { harmless } from "../format.js";
import { changesOf } from "./changes.js";
import { inspectionTable } from "./inspection.js";
import { button, choice, field, notes, problem, progress, tick } from "./parts.js";

const names = (/** @type {string} */ text) => text.split(",").map((one) => one.trim()).filter(Boolean);

/**
 * The panel of one file, from its arrival to its fold.
 *
 * @param {import("../ui.js").Ui} ui
 * @param {File} file
 */
export function foldPanel(ui, file) {
  const body = h("div", { class: "body" });
  const panel = ui.open(`Add ${file.name}`, body, () => upload && ui.api.drop(upload));
  /** @type {string} */
  let upload = "";

  /** Do something that takes a while; show how far it is, and what is wrong. */
  async function run(/** @type {string} */ doing, /** @type {(tell: (job: any) => void) => Promise<void>} */ work, stop = true) {
    const shown = progress(doing, stop ? () => ui.api.stop() : null);
    const form = [...body.children].filter((one) => !one.matches(".problem, .progress, .again"));
    body.replaceChildren(shown.element);
    ui.working(true);
    try {
      await work(shown.tell);
    } catch (error) {
      body.replaceChildren(problem(/** @type {Error} */ (error).message), ...form);
      if (upload && !form.length) body.append(h("p", { class: "row again" }, button("Try again", () => inspect({}))));
      suggest(/** @type {any} */ (error).options ?? {});
    } finally {
      ui.working(false);
    }
  }
  /** @type {(options: Record<string, any>) => void} */
  let suggest = () => {};

  const inspect = (/** @type {Record<string, any>} */ said) =>
    run(`Reading ${file.name}`, async (tell) => {
      const found = await ui.api.work("inspect", { upload, ...said }, tell);
      show(found.views);
    });

  function show(/** @type {any[]} */ views) {
    const form = options(ui, views);
    suggest = form.suggest;
    const refused = views.every((one) => one.refused);
    const act = (/** @type {boolean} */ dry) => run(dry ? "Trying" : "Folding", (tell) => fold({ ...form.read(), dry_run: dry }, tell, views));
    body.replaceChildren(
      h("p", { class: "note" }, "This is what was understood. Nothing has been changed yet."),
      ...views.map(inspectionTable),
      form.element,
      h("p", { class: "row" },
        button("Fold it", () => act(false), { class: "primary", disabled: refused }),
        button("Try it, change nothing", () => act(true), { disabled: refused }),
        button("Look again", () => inspect(form.readOfFile())),
        button("Leave it", () => panel.close())),
    );
    panel.focus();
  }

  async function fold(/** @type {Record<string, any>} */ said, /** @type {(job: any) => void} */ tell, /** @type {any[]} */ views) {
    const done = await ui.api.work("fold", { upload, ...said }, tell);
    const told = [
      ...done.lines.map((/** @type {string} */ line) => h("p", {}, line)),
      done.evidence && h("p", {}, done.evidence),
      notes(done.notes),
      changesOf(done.changes),
    ].filter(Boolean);
    if (said.dry_run) {
      body.replaceChildren(h("h3", {}, "What would happen"), ...told, h("p", { class: "row" },
        button("Fold it", () => run("Folding", (again) => fold({ ...said, dry_run: false }, again, views)), { class: "primary" }),
        button("Back", () => show(views))));
      return;
    }
    upload = "";
    body.replaceChildren(...told, h("p", { class: "row" },
      button("Done", () => panel.close(), { class: "primary" }),
      button("Take it back …", () => ui.undo()),
      button("Add another file", () => ui.choose())));
    panel.title(`${harmless(file.name)} is folded`);
    panel.focus();
    await ui.refresh();
  }

  run(`Sending ${file.name}`, async () => {
    upload = (await ui.api.send(file)).upload;
    await inspect({});
  }, false);
}

/** Fields to correct what was understood. */
function options(/** @type {import("../ui.js").Ui} */ ui, /** @type {any[]} */ views) {
  const [first] = views;
  const several = views.length > 1;
  const { samples } = ui.status;
  const view = several
    ? choice([["", "all of them"], ...views.map((one) => /** @type {[string, string]} */ ([one.view, one.view]))])
    : h("input", { value: first.view });
  const listed = uniqueId("columns");
  const id = h("input", { value: first.ids.column ?? "", list: listed, placeholder: first.ids.given ? "as the file has them" : "none" });
  const none = h("input", { type: "checkbox", checked: !first.ids.given });
  const lock = () => (id.disabled = none.checked);
  none.addEventListener("change", lock);
  lock();
  const number = h("input", { inputmode: "numeric", placeholder: samples ? `${ui.status.clusters}, as before` : "auto", size: 8 });
  /** @type {Record<string, any>} What was proposed, or said before. */
  const base = Object.assign({}, ...views.map((one) => one.options).reverse());
  const before = (/** @type {string} */ name) => [base[name] ?? ""].flat().join(", ");
  const similar = choice([["refuse", "refuse them"], ["match", "they are the same samples"], ["new", "they are other samples"]], base.similar_ids);
  const more = {
    drop: h("input", { placeholder: "A, B", value: before("drop") }),
    categories: h("input", { placeholder: "A, B", value: before("categories") }),
    empty_markers: h("input", { placeholder: "NA, -9", value: before("empty_markers") }),
    decimal: choice([["", "as it seems"], [".", "1.5"], [",", "1,5"]], base.decimal),
    thousands: choice([["", "as it seems"], [",", "1,000"], [".", "1.000"], ["'", "1'000"], [" ", "1 000"]], base.thousands),
    encoding: h("input", { placeholder: "utf-8", value: before("encoding") }),
  };
  const lists = ["drop", "categories", "empty_markers"];
  const nearly = "similar_ids" in base || views.some((one) => one.samples?.nearly_known);

  function readOfFile() {
    /** @type {Record<string, any>} */
    const said = { ...base, view: view.value.trim() || null };
    if (none.checked) said.no_id = true;
    else said.id_column = id.value.trim() || null;
    for (const [name, input] of Object.entries(more)) {
      const value = name === "thousands" ? input.value : input.value.trim();
      said[name] = !value ? null : lists.includes(name) ? names(value) : value;
    }
    if (nearly) said.similar_ids = similar.value;
    return said;
  }
  function read() {
    const k = number.value.trim();
    const auto = k === "auto" || (!k && !samples);
    return { ...readOfFile(), clusters: auto ? "auto" : k ? Number(k) : null };
  }
  const fields = h("div", { class: "fields" },
    field(several ? "views" : "view", view, several ? "" : samples ? "called like a known view, its rows are added to it" : "what the view is called"),
    h("div", { class: "field" }, field("id column", id), tick("no ids: row numbers count", none), h("datalist", { id: listed }, first.ids.candidates.map((/** @type {string} */ name) => h("option", { value: name })))),
    field("clusters", number, samples ? "leave it empty to keep the number" : "a number, or auto: the one that stands out"),
    nearly && field("ids that are almost the same", similar));
  const said = Object.keys(more).some((name) => name in base);
  const rest = h("details", { open: said }, h("summary", {}, "More about the file"),
    h("div", { class: "fields" },
      field("columns to leave out", more.drop), field("columns that are categories", more.categories),
      field("what stands for a missing cell", more.empty_markers), field("decimal sign", more.decimal), field("thousands", more.thousands), field("encoding of text", more.encoding)));
  return {
    element: h("form", { onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, fields, rest),
    read,
    readOfFile,
    /** Fill in what an error says would help. */
    suggest(/** @type {Record<string, any>} */ said) {
      if (typeof said.ids === "string") [id.value, none.checked] = [said.ids, false];
      lock();
      for (const [name, input] of Object.entries(more)) {
        if (name in said) [input.value, rest.open] = [[said[name]].flat().join(", "), true];
      }
    },
  };
}
