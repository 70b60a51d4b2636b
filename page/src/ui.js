/**
 * The page of `viewfold ui`: what a file cannot do. Drop a file, see what was understood of it,
 * fold it, see what moved; another number of clusters, names, undo, forget, export.
 *
 * @typedef {object} Ui  What every panel gets.
 * @property {import("./ui/api.js").Api} api
 * @property {any} status  What the state holds, as the page shows it.
 * @property {(title: string, body: HTMLElement, onClose?: () => any) => {close(): void, focus(): void, title(words: string): void}} open
 * @property {(busy: boolean) => void} working
 * @property {() => Promise<void>} refresh
 * @property {() => void} choose
 * @property {() => void} undo
 */
import { h, uniqueId } from "./dom.js";
import { counted, shorten } from "./format.js";
import { connect, takeToken } from "./ui/api.js";
import { foldPanel } from "./ui/fold.js";
import { clustersPanel, exportPanel, forgetPanel, undoPanel } from "./ui/panels.js";
import { button } from "./ui/parts.js";

const EVERY = 2500; // milliseconds between two looks at the state

/** @type {any} */
const viewfold = /** @type {any} */ (globalThis).viewfold;
const token = takeToken();
const api = connect(token);
const root = /** @type {HTMLElement} */ (document.getElementById("root"));
const place = /** @type {HTMLElement} */ (document.getElementById("ui"));
const bar = h("div", { class: "bar" });
const banner = h("div", { class: "banner", role: "status" });
const panels = h("div", { class: "panels" });
const picker = h("input", { type: "file", class: "hidden", tabindex: -1, "aria-hidden": "true" });
const zone = h("div", { class: "zone" }, h("p", {}, "Drop a file here"), h("p", { class: "note" }, "CSV, Excel, Parquet, Arrow, JSON lines, NumPy, MATLAB, AnnData, MuData or Matrix Market"), button("Choose a file", choose, { class: "primary" }));
place.classList.add("viewfold");
place.append(bar, banner, panels, zone, picker);

let busy = 0; // pieces of work that this page waits for
/** @type {any} */
let page = null;

/** @type {Ui} */
const ui = {
  api,
  status: null,
  open,
  working: (/** @type {boolean} */ now) => {
    busy += now ? 1 : -1;
    document.body.classList.toggle("at-work", busy > 0);
  },
  refresh,
  choose,
  undo: () => void undoPanel(ui),
};

/** Open a panel in the place of any other. */
function open(/** @type {string} */ title, /** @type {HTMLElement} */ body, /** @type {() => any} */ onClose = () => {}) {
  closing();
  const from = document.activeElement;
  const id = uniqueId("panel");
  const head = h("h2", { id, tabindex: -1 }, title);
  const close = () => {
    if (!element.isConnected) return;
    element.remove();
    closing = () => {};
    zone.hidden = ui.status?.samples > 0;
    onClose();
    if (from instanceof HTMLElement && from.isConnected) from.focus();
  };
  const element = h("section", { class: "panel", "aria-labelledby": id }, h("div", { class: "head" }, head, button("×", () => close(), { class: "quiet", "aria-label": "Close" })), body);
  element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    close();
  });
  zone.hidden = true;
  panels.replaceChildren(element);
  closing = close;
  const focus = () => {
    if (!element.isConnected) return;
    head.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  };
  focus();
  return { close, focus, title: (/** @type {string} */ words) => (head.textContent = words) };
}
let closing = () => {};

// -- what there is

function showBar() {
  const { status } = ui;
  const there = status.samples > 0;
  const said = there ? `${counted(status.samples, "sample")} · ${counted(status.views.length, "view")} · ${counted(status.clusters, "cluster")}` : status.exists ? "no view yet" : "a new state";
  const last = status.last && h("span", { class: "last", title: status.last.said }, `last: ${shorten(status.last.said.split(":")[0], 60)}, ${clock(status.last.time)}`);
  document.title = `${status.file} – viewfold`;
  bar.replaceChildren(
    h("div", {}, h("strong", {}, status.file), h("span", { class: "said" }, said, last)),
    h("div", { class: "group", role: "group", "aria-label": "What can be done" },
      button("Add a file", choose, { class: "primary" }),
      there && button("Clusters …", () => clustersPanel(ui)),
      status.last && button("Undo …", ui.undo),
      there && button("Export …", () => exportPanel(ui))),
  );
  if (!panels.children.length) zone.hidden = there;
}

const clock = (/** @type {string} */ time) => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Show the state of now; nobody has to wait until all of it is drawn. */
async function refresh() {
  ui.status = await api.get("status");
  showBar();
  tell(null);
  draw().catch((error) => tell(error.message, button("Try again", refresh)));
}

async function draw() {
  if (!ui.status.samples) {
    root.replaceChildren();
    page = null;
  } else if (page) await page.refresh();
  else {
    page = viewfold.start(root, dimmed(viewfold.served("api/", token)), { actions });
    await page.ready;
  }
}

/** A source that lets the page fade while it shows what was there before. */
function dimmed(/** @type {import("./source.js").Source} */ source) {
  const summary = async () => {
    root.classList.add("stale");
    root.setAttribute("aria-busy", "true");
    try {
      return await source.summary();
    } finally {
      root.classList.remove("stale");
      root.removeAttribute("aria-busy");
    }
  };
  return { ...source, summary };
}

const actions = {
  async rename(/** @type {number} */ cluster, /** @type {string} */ name) {
    await api.post("rename", { cluster, name, entry: ui.status.entry });
    await refresh();
  },
  explain: (/** @type {string} */ id) => api.get("explain", { id }),
  async forget(/** @type {string[]} */ ids) {
    forgetPanel(ui, ids);
  },
};

/** Say something above the page; null for nothing. */
function tell(/** @type {string | null} */ words, /** @type {any[]} */ ...more) {
  if (banner.dataset.words === (words ?? "")) return;
  banner.dataset.words = words ?? "";
  banner.replaceChildren(...(words === null ? [] : [h("p", {}, words), ...more]));
}

/** Look whether somebody else changed the state, or is about to. */
async function look() {
  if (busy || document.hidden) return;
  let status;
  try {
    status = await api.get("status", { entry: ui.status.entry });
  } catch (error) {
    tell(error instanceof TypeError ? "The server does not answer. Was it ended?" : /** @type {Error} */ (error).message);
    return;
  }
  if (busy) return;
  const { file, since, job } = status;
  // Another file in its place may have as many entries: they are of another time.
  const same = status.entry === ui.status.entry && status.last?.time === ui.status.last?.time;
  if (!status.exists && ui.status.exists) tell(`${file} is not there any more. This page shows what was there before.`, button("Show it as it is now", refresh, { class: "primary" }));
  else if (!same || status.exists !== ui.status.exists) {
    const done = since.map((/** @type {any} */ one) => `${one.said} (${clock(one.time)})`).join("; ");
    const who = since.length && since.every((/** @type {any} */ one) => one.here) ? "another window" : "another program";
    const now = status.written_elsewhere ? " Another program is writing it now." : "";
    tell(`${file} was changed by ${who}${done ? `: ${done}` : ""}. This page shows what was there before.${now}`, button("Show it as it is now", refresh, { class: "primary" }));
  } else if (job) tell(`Another window is at work: ${job.doing}.`);
  else if (status.written_elsewhere) tell(`Another program is writing ${file}. What you change waits for it.`);
  else tell(null);
}

// -- files

function choose() {
  picker.value = "";
  picker.click();
}

function take(/** @type {FileList | null | undefined} */ files) {
  if (!files?.length) return;
  if (busy) tell("Something is being done. Drop the file when it is.");
  else if (files.length > 1) tell("One file at a time, please: each is a view, or several.");
  else foldPanel(ui, files[0]);
}

picker.addEventListener("change", () => take(picker.files));
const holdsFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
addEventListener("dragover", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dragging");
});
addEventListener("drop", (event) => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  document.body.classList.remove("dragging");
  take(event.dataTransfer?.files);
});

refresh().then(
  () => setInterval(look, EVERY),
  (error) => {
    zone.hidden = true;
    banner.replaceChildren(h("p", { class: "problem" }, error.message));
  },
);
