// Builds what src/viewfold/web/static holds, from the sources here: `npm run build`.
//
// Each built file starts with a digest of all sources, which a test of Python recomputes.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "viewfold", "web", "static");
const sources = join(here, "src");

/** Every file below a folder. */
function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

/** The digest over names and contents of the sources, in the order of their names. */
function digest() {
  const hash = createHash("sha256");
  const named = [...files(sources), ...["build.mjs", "package.json", "package-lock.json"].map((name) => join(here, name))]
    .map((path) => [relative(here, path).split(sep).join("/"), path])
    .sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [name, path] of named) {
    hash.update(name).update("\0").update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex");
}

// regl-scatterplot comes as one file with the code of its dependencies in it, and has copies of
// parts of these two in its sources. They are installed for the texts of their licences.
const COPIED = ["kdbush", "simplify-js"];

/** A package and all it depends on. */
function family(name) {
  const { dependencies = {} } = JSON.parse(readFileSync(join(here, "node_modules", name, "package.json"), "utf8"));
  return [name, ...Object.keys(dependencies).flatMap(family)];
}

/** Licences of the packages whose code is in the bundles. */
function licences(metafiles) {
  const packages = new Set([...COPIED, ...family("regl-scatterplot")]);
  for (const path of metafiles.flatMap((meta) => Object.keys(meta.inputs))) {
    const found = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (found) packages.add(found[1]);
  }
  const parts = [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(folder, file), "utf8").trim() : "";
    return `${name} ${about.version} (${about.license})\n${"-".repeat(60)}\n${text}\n`;
  });
  return ["page.js, ui.js and widget.js have code of these packages in them.\n", ...parts].join("\n\n");
}

const banner = `/*! viewfold page, built from sources with sha256 ${digest()}; licences: LICENSES.txt */`;
const shared = {
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  target: "es2022",
  absWorkingDir: here,
  banner: { js: banner, css: banner },
  loader: { ".css": "text" },
  logLevel: "warning",
};
const bundles = [
  { entryPoints: ["src/index.js"], outfile: join(target, "page.js"), format: "iife", globalName: "viewfold" },
  { entryPoints: ["src/widget.js"], outfile: join(target, "widget.js"), format: "esm" },
  { entryPoints: ["src/page.css"], outfile: join(target, "page.css"), loader: { ".css": "css" } },
  { entryPoints: ["src/ui.js"], outfile: join(target, "ui.js"), format: "iife" },
  { entryPoints: ["src/ui.css"], outfile: join(target, "ui.css"), loader: { ".css": "css" } },
].filter(({ entryPoints: [path] }) => existsSync(join(here, path)));

mkdirSync(target, { recursive: true });
const built = [];
for (const bundle of bundles) built.push((await build({ ...shared, ...bundle })).metafile);
writeFileSync(join(target, "LICENSES.txt"), licences(built));
