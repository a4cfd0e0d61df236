// Build the scripts of pages, widgets and the site into `bundles`, and the engine's WebAssembly before them: `npm run
// build`. With --check, fail where one is stale or too large. With --watch, build anew at each change, readable and with source maps.

import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { build, context, transform } from "esbuild";
import makeWabt from "wabt";

/** @import { BuildOptions, Metafile, Plugin } from "esbuild" */

const SOURCES = "tfviz/view/js";
const OUT = "tfviz/view/bundles";
const PAGES = ["attention", "charts", "engine", "interact", "maps", "neurons", "patching", "studios"];
const WIDGETS = ["interact-widget", "maps-widget", "patching-widget", "studios-widget"];
const WASM_TEXT = `${SOURCES}/engine/products.wat`;
const WASM = `${SOURCES}/engine/products-wasm.js`;
const SITE_OUT = "tfviz/lessons/bundles"; // scripts of lessons' pages and of the site's search
const LICENSES = "THIRD_PARTY_LICENSES.txt";
const MINISEARCH =
  "/* with MiniSearch 7.2.0, copyright 2022 Luca Ongaro, MIT licence: github.com/lucaong/minisearch */";

/** The most bytes that a bundle may have: every notebook output carries its own copy. Raise one where that is worth it. @type {Record<string, number>} */
const LIMITS = {
  "attention.js": 7_900,
  "charts.js": 68_800,
  "engine.js": 47_300,
  "interact-widget.js": 125_700,
  "interact.js": 128_300,
  "lesson.js": 1_400,
  "maps-widget.js": 113_200,
  "maps.js": 116_300,
  "neurons.js": 55_400,
  "page.css": 250,
  "patching-widget.js": 199_200,
  "patching.js": 198_800,
  "site-search.js": 22_600,
  "studios-widget.js": 272_000,
  "studios.js": 271_600,
};

/** Style sheets are texts, minified as the scripts are. @type {Plugin} */
const styles = {
  name: "styles",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

/** Return the module that holds the matrix kernel, compiled: a page cannot fetch a second file. */
async function compiledKernel() {
  const wabt = await makeWabt();
  const { buffer } = wabt.parseWat(WASM_TEXT, await readFile(WASM_TEXT, "utf8")).toBinary({});
  const bytes = Buffer.from(buffer).toString("base64");
  return `// The bytes of \`products.wat\`, compiled by \`npm run build\`.\nexport const COMPILED_PRODUCTS =\n  "${bytes}";\n`;
}

/** @typedef {BuildOptions & { write: false, metafile: true }} Options */
/** @type {Options} */
const common = {
  bundle: true,
  tsconfigRaw: {}, // tsconfig.json is for tsc alone: "strict" there would change what is built
  minify: true,
  target: "es2022",
  charset: "utf8",
  outdir: OUT,
  write: false,
  metafile: true,
};
/** @param {string[]} names */
const entries = (names) => names.map((name) => `${SOURCES}/entries/${name}.js`);
/** @type {Options[]} */
const builds = [
  {
    ...common,
    plugins: [styles],
    entryPoints: entries(PAGES),
    // In a page each script is a function that returns its exports: a view calls it, and a worker gets its text.
    format: "iife",
    globalName: "bundle",
    banner: { js: "()=>{" },
    footer: { js: "return bundle}" },
  },
  { ...common, plugins: [styles], entryPoints: entries(WIDGETS), format: "esm" },
  { ...common, entryPoints: [`${SOURCES}/base/page.css`] }, // Python puts it into the pages that it writes
  { ...common, format: "iife", outdir: SITE_OUT, entryPoints: ["tfviz/lessons/js/lesson.js"] },
  {
    ...common,
    format: "iife",
    outdir: SITE_OUT,
    entryPoints: ["tfviz/lessons/js/site-search.js"],
    banner: { js: MINISEARCH },
  },
];

async function watch() {
  /** @type {BuildOptions} */
  const readable = { minify: false, sourcemap: "inline", write: true, logLevel: "info" };
  for (const options of builds) await (await context({ ...options, ...readable })).watch();
}

/** @param {string} problem */
function fail(problem) {
  console.error(problem);
  process.exitCode = 1;
}

/** Compare a file with what it would be now. @param {string} path @param {string} text */
async function check(path, text) {
  if ((await readFile(path, "utf8").catch(() => "")) !== text) fail(`${path} is stale: npm run build`);
}

/** @param {string} path @param {string} text */
function checkSize(path, text) {
  const [name, size] = [basename(path), Buffer.byteLength(text)];
  if (!(size <= LIMITS[name]))
    fail(`${path} has ${size} bytes, more than its limit of ${LIMITS[name]} (LIMITS in esbuild.config.mjs)`);
}

/** Name the packages whose code is in a bundle, such as "minisearch 7.2.0". @param {Metafile[]} metafiles */
async function bundledPackages(metafiles) {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = new Set(inputs.map((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]));
  folders.delete(undefined);
  const packages = [...folders].map(async (folder) => JSON.parse(await readFile(`${folder}/package.json`, "utf8")));
  return (await Promise.all(packages)).map(({ name, version }) => `${name} ${version}`);
}

/** @param {Metafile[]} metafiles */
async function checkLicenses(metafiles) {
  const licences = (await readFile(LICENSES, "utf8")).toLowerCase();
  const missing = (await bundledPackages(metafiles)).filter((name) => !licences.includes(name));
  for (const name of missing) fail(`${name} is in a bundle, and not in ${LICENSES}`);
}

async function main() {
  if (process.argv.includes("--watch")) return watch();
  const output = process.argv.includes("--check") ? check : writeFile;
  await output(WASM, await compiledKernel()); // it is part of the bundles
  const built = await Promise.all(builds.map((options) => build(options)));
  await checkLicenses(built.map(({ metafile }) => metafile));
  const files = built.flatMap(({ outputFiles }) => outputFiles);
  for (const { path, text } of files) checkSize(path, text);
  await Promise.all(files.map(({ path, text }) => output(path, text)));
}

await main();
