// Build the scripts of pages and widgets into tfviz/view/static: `npm run build`; with --check, fail where one is stale.

import { readFile, writeFile } from "node:fs/promises";
import { build, transform } from "esbuild";

const PAGES = ["attention", "charts", "engine", "interact", "maps", "studios"];
const WIDGETS = ["interact-widget", "maps-widget", "studios-widget"];
const OUT = "tfviz/view/static";

/** Style sheets are texts, minified as the scripts are. */
const styles = {
  name: "styles",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

const common = {
  bundle: true,
  tsconfigRaw: {}, // tsconfig.json is for tsc alone: "strict" there would change what is built
  minify: true,
  target: "es2022",
  charset: "utf8",
  outdir: OUT,
  write: false,
  plugins: [styles],
};
const entries = (names) => names.map((name) => `tfviz/view/js/entries/${name}.js`);
// In a page each script is a function that gives its exports: a view calls it, and a worker gets its text.
const wrapped = { format: "iife", globalName: "bundle", banner: { js: "()=>{" }, footer: { js: "return bundle}" } };
const built = await Promise.all([
  build({ ...common, ...wrapped, entryPoints: entries(PAGES) }),
  build({ ...common, format: "esm", entryPoints: entries(WIDGETS) }),
]);

for (const { path, text } of built.flatMap(({ outputFiles }) => outputFiles)) {
  if (!process.argv.includes("--check")) await writeFile(path, text);
  else if ((await readFile(path, "utf8").catch(() => "")) !== text) {
    console.error(`${path} is stale: npm run build`);
    process.exitCode = 1;
  }
}
