/** Elements from data, as text only: nothing that comes from users is ever read as markup. */

import { harmless } from "./format.js";

/**
 * Make an element. Attributes that are null, undefined or false are left out; `on…` are listeners;
 * children that are null or false are left out, others that are no nodes become text.
 *
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "title" || name === "aria-label") element.setAttribute(name, harmless(String(value)));
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  const there = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...there.map((child) => (child instanceof Node ? child : harmless(String(child)))));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** Make an element of SVG. */
export function svg(/** @type {string} */ tag, /** @type {Record<string, any>} */ attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

let made = 0;
/** An id that no other element of this page has. */
export const uniqueId = (/** @type {string} */ word) => `${word}-${++made}`;

/** Offer a text as a file. */
export function download(/** @type {string} */ name, /** @type {string} */ text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** A CSV from rows; cells that spreadsheets would take for formulas are kept from it. */
export function csv(/** @type {any[][]} */ rows) {
  const cell = (/** @type {any} */ value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (/^[=+\-@\t\r]/.test(text) && typeof value === "string") text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}
