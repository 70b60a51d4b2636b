/**
 * Where a page gets its data: from the HTML file it stands in, from the server of `viewfold ui`,
 * or from what a notebook holds. Columns are read when somebody asks for them, once.
 *
 * @typedef {Uint8Array | Uint16Array | string} Column
 * @typedef {{summary(): Promise<any>, column(name: string): Promise<Column>}} Source
 */

const CHUNK = 1 << 20; // base64 digits that are decoded at a time: some milliseconds

/** Let the browser answer before work goes on. */
export const pause = () => new Promise((go) => setTimeout(go));

const PATIENCE = 3000; // milliseconds to wait for a paint; a browser that just starts takes its time

const atMost = (/** @type {Promise<any>} */ work) =>
  document.hidden ? pause() : Promise.race([work, new Promise((go) => setTimeout(go, PATIENCE))]);

/** Let the browser paint before work goes on; a page that is not seen paints nothing. */
export const painted = () => atMost(new Promise((go) => requestAnimationFrame(() => setTimeout(go))));

/**
 * Wait until something was really seen. A frame that is asked for is not shown yet, and work for
 * the GPU that begins in between is done first.
 */
export const firstPaint = () =>
  atMost(
    new Promise((/** @type {(_: void) => void} */ go) => {
      if (performance.getEntriesByName("first-contentful-paint").length) return go();
      const watch = new PerformanceObserver((found) => {
        if (!found.getEntriesByName("first-contentful-paint").length) return;
        watch.disconnect();
        go();
      });
      watch.observe({ type: "paint", buffered: true });
    }),
  );

/** Bytes as what the summary says a column is. @returns {Column} */
function typed(/** @type {Uint8Array} */ bytes, /** @type {string} */ kind) {
  if (kind === "text") return new TextDecoder().decode(bytes);
  if (kind === "uint8") return bytes;
  if (bytes.byteOffset % 2) bytes = bytes.slice();
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
}

/** Columns that were asked for, each read once. */
function once(/** @type {(name: string) => Promise<Column>} */ read) {
  /** @type {Map<string, Promise<Column>>} */
  const known = new Map();
  return (/** @type {string} */ name) => {
    let column = known.get(name);
    if (!column) known.set(name, (column = read(name)));
    return column;
  };
}

/** Decode base64 of gzip, with pauses. */
async function inflate(/** @type {string} */ text) {
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const written = (async () => {
    for (let start = 0; start < text.length; start += CHUNK) {
      const binary = atob(text.slice(start, start + CHUNK));
      const bytes = new Uint8Array(binary.length);
      for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
      await writer.write(bytes);
      await pause();
    }
    await writer.close();
  })();
  const [buffer] = await Promise.all([new Response(stream.readable).arrayBuffer(), written]);
  return new Uint8Array(buffer);
}

/**
 * The data of an HTML file. Columns stand behind the script that starts the page, so that the
 * first paint need not wait for them: they are complete when the file is.
 *
 * @param {Document} document
 * @returns {Source}
 */
export function embedded(document) {
  const complete = () =>
    document.readyState === "loading"
      ? new Promise((go) => document.addEventListener("DOMContentLoaded", go, { once: true }))
      : Promise.resolve();
  const summary = JSON.parse(document.getElementById("summary")?.textContent ?? "null");
  return {
    summary: async () => summary,
    column: once(async (name) => {
      await complete();
      const text = document.getElementById(`column-${name}`)?.textContent ?? "";
      return typed(await inflate(text.trim()), summary.columns[name]);
    }),
  };
}

/**
 * The data of a server.
 *
 * @param {string} base Address of the API, as "api/".
 * @param {string} token Sent with every request.
 * @returns {Source}
 */
export function served(base, token) {
  const get = async (/** @type {string} */ path) => {
    const answer = await fetch(base + path, { headers: { Authorization: `Bearer ${token}` } });
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => null);
    throw new Error(told?.error?.message ?? `${path}: ${answer.status} ${answer.statusText}`);
  };
  let column = once(() => Promise.reject(new Error("the summary comes first")));
  return {
    // A summary is asked for again after a fold: columns are others then.
    summary: async () => {
      const summary = await (await get("summary")).json();
      const bytes = async (/** @type {string} */ name) => (await get(`columns/${name}?entry=${summary.entry}`)).arrayBuffer();
      column = once(async (name) => typed(new Uint8Array(await bytes(name)), summary.columns[name]));
      return summary;
    },
    column: (name) => column(name),
  };
}

/**
 * Data that are there: a summary, and columns as bytes.
 *
 * @param {any} summary
 * @param {Record<string, DataView>} columns
 * @returns {Source}
 */
export function held(summary, columns) {
  return {
    summary: async () => summary,
    column: once(async (name) => {
      const view = columns[name];
      return typed(new Uint8Array(view.buffer, view.byteOffset, view.byteLength), summary.columns[name]);
    }),
  };
}
