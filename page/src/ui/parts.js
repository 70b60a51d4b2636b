/** Parts that panels are made of: fields, buttons, progress, problems. */
import { h, uniqueId } from "../dom.js";

/** A field with its name before it. */
export function field(/** @type {string} */ name, /** @type {any} */ input, /** @type {string} */ hint = "") {
  const id = (input.id ||= uniqueId("field"));
  const about = hint ? h("small", { id: `${id}-hint` }, hint) : null;
  if (about) input.setAttribute("aria-describedby", about.id);
  return h("div", { class: "field" }, h("label", { for: id }, name), input, about);
}

/** A box to tick. */
export function tick(/** @type {string} */ name, /** @type {any} */ input) {
  return h("label", { class: "tick" }, input, ` ${name}`);
}

export function choice(/** @type {[string, string][]} */ options, /** @type {string} */ chosen = "") {
  return h("select", {}, options.map(([value, words]) => h("option", { value, selected: value === chosen }, words)));
}

export function button(/** @type {string} */ words, /** @type {() => any} */ press, /** @type {Record<string, any>} */ more = {}) {
  return h("button", { type: "button", ...more, onclick: press }, words);
}

/** What is wrong, said at once to those who listen. */
export const problem = (/** @type {string} */ words) => h("p", { class: "problem", role: "alert" }, words);

export const notes = (/** @type {string[] | undefined} */ said) => (said?.length ? h("ul", { class: "noted" }, said.map((one) => h("li", {}, one))) : null);

/** A table of two columns: what, and how it is. Rows without a value are left out. */
export function factTable(/** @type {[string, any][]} */ rows) {
  const there = rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return h("table", { class: "facts-of" }, h("tbody", {}, there.map(([word, value]) => h("tr", {}, h("th", { scope: "row" }, word), h("td", {}, value)))));
}

/** How far work is: `tell(job)` shows it. */
export function progress(/** @type {string} */ doing, /** @type {(() => any) | null} */ stop) {
  const bar = h("progress", { "aria-label": "How far it is" });
  const words = h("p", { class: "said", role: "status" }, doing);
  const element = h("div", { class: "progress" }, words, bar, stop && button("Stop", stop));
  return {
    element,
    tell(/** @type {any} */ job) {
      const share = job.share;
      if (share === null) bar.removeAttribute("value");
      else bar.value = share;
      const part = share === null ? "" : `, ${Math.round(100 * share)} %`;
      words.textContent = `${job.doing[0].toUpperCase()}${job.doing.slice(1)}${part} · ${job.seconds.toFixed(0)} s`;
    },
  };
}
