/** The server of `viewfold ui`: requests with the token, and work that takes a while. */

const KEY = "viewfold-token";
const TOKEN = /^[\w-]{40,}$/; // links to sections of the page leave a shorter word behind
const PAUSE = 300; // milliseconds between two looks at how far the work is

/** The token of the address, which is taken out of it; a page that is loaded again remembers it. */
export function takeToken() {
  const given = location.hash.slice(1);
  if (TOKEN.test(given)) {
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

/** What the server says is wrong. */
export class Refusal extends Error {
  constructor(/** @type {any} */ told) {
    super(told?.message ?? "The server gave no answer that can be read.");
    /** @type {string} */
    this.code = told?.code ?? "internal";
    /** @type {Record<string, any>} */
    this.options = told?.options ?? {};
  }
}

/** @typedef {ReturnType<typeof connect>} Api */

export function connect(/** @type {string} */ token) {
  const headers = { Authorization: `Bearer ${token}` };

  async function ask(/** @type {string} */ path, /** @type {RequestInit} */ request = {}) {
    const answer = await fetch(`api/${path}`, { ...request, headers: { ...headers, ...request.headers } });
    if (answer.ok) return answer;
    throw new Refusal((await answer.json().catch(() => ({}))).error);
  }
  const get = async (/** @type {string} */ path, /** @type {Record<string, any>} */ said = {}) =>
    (await ask(`${path}?${new URLSearchParams(said)}`)).json();
  const post = async (/** @type {string} */ path, /** @type {Record<string, any>} */ said = {}) =>
    (await ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(said) })).json();

  /** Follow work to its end; `tell` hears how far it is. */
  async function follow(/** @type {any} */ job, /** @type {(job: any) => void} */ tell) {
    while (job.state === "running") {
      tell(job);
      await new Promise((go) => setTimeout(go, PAUSE));
      const now = await get("job");
      if (now.job !== job.job) throw new Refusal({ code: "busy", message: "Something else was asked of this server meanwhile; what came of this is not known. Look at the page again." });
      job = now;
    }
    if (job.error) throw new Refusal(job.error);
    return { ...job.answer, notes: job.notes };
  }

  return {
    get,
    post,
    follow,
    work: async (/** @type {string} */ path, /** @type {Record<string, any>} */ said, /** @type {(job: any) => void} */ tell) => follow(await post(path, said), tell),
    stop: () => ask("job", { method: "DELETE" }),
    send: async (/** @type {File} */ file) => (await ask(`uploads?${new URLSearchParams({ name: file.name })}`, { method: "PUT", body: file })).json(),
    drop: (/** @type {string} */ upload) => ask(`uploads/${upload}`, { method: "DELETE" }).catch(() => null),
    /** A file of the server, offered as a download. */
    async save(/** @type {string} */ path, /** @type {string} */ name) {
      const address = URL.createObjectURL(await (await ask(path)).blob());
      const link = document.createElement("a");
      [link.href, link.download] = [address, name];
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    },
  };
}
