import js from "@eslint/js";
import importX from "eslint-plugin-import-x";
import globals from "globals";
import { configs, parser } from "typescript-eslint";

const SCRIPTS = "tfviz/view/js";

/** What the modules of a folder of scripts import besides their own: an import that runs back fails. */
const LAYERS = {
  base: [],
  text: ["base"],
  engine: [],
  controls: ["base"],
  views: ["base", "controls", "engine"],
  interact: ["base", "controls", "views", "engine", "text"],
  studios: ["base", "controls", "views", "engine", "text"],
};
const zones = Object.entries(LAYERS).map(([folder, lower]) => ({
  target: `${SCRIPTS}/${folder}`,
  from: SCRIPTS,
  except: [folder, ...lower].map((name) => `./${name}`),
}));

/** Rules that are off. @param {...string} names */
const allows = (...names) => Object.fromEntries(names.map((name) => [`@typescript-eslint/${name}`, "off"]));

export default [
  { ignores: [".venv/", "build/", "dist/", "runs/", "site/", "tfviz/view/bundles/", "tfviz/lessons/bundles/"] },
  js.configs.recommended,
  {
    rules: {
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      complexity: ["error", 12],
      "max-depth": ["error", 4],
      "no-nested-ternary": "error",
      eqeqeq: "error",
    },
  },
  ...configs.recommendedTypeCheckedOnly.map((config) => ({ ...config, files: ["tfviz/**/*.js"] })),
  {
    files: ["tfviz/**/*.js"],
    languageOptions: { parser, parserOptions: { project: "./tsconfig.json" } },
    plugins: { "import-x": importX },
    rules: {
      "import-x/no-cycle": "error",
      "import-x/no-restricted-paths": ["error", { zones }],
      ...allows(
        // what a notebook or a page passes in is `any`
        ...["no-unsafe-argument", "no-unsafe-assignment", "no-unsafe-call"],
        ...["no-unsafe-member-access", "no-unsafe-return"],
        // functions among options are declared as methods, and callers may not wait for what is returned
        ...["unbound-method", "require-await", "await-thenable"],
        // arrays of numbers are keys of caches
        "restrict-template-expressions",
      ),
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
    },
  },
  { files: ["*.mjs", "tests/**/*.js"], languageOptions: { globals: globals.node } },
  { files: ["tfviz/lessons/js/*.js"], languageOptions: { globals: globals.browser } },
  {
    files: [`${SCRIPTS}/**/*.js`],
    languageOptions: { globals: globals.browser },
    rules: {
      // A view touches nothing outside its own element, so that nothing is left of one that is removed.
      "no-restricted-syntax": [
        "error",
        {
          selector:
            "CallExpression[callee.object.name=/^(window|document|globalThis)$/][callee.property.name='addEventListener']",
          message: "Listen inside the view only.",
        },
        {
          selector: "AssignmentExpression[left.object.name=/^(window|document|globalThis)$/][left.property.name=/^on/]",
          message: "Listen inside the view only.",
        },
        { selector: "MemberExpression[property.name='innerHTML']", message: "Words are texts, not HTML." },
      ],
    },
  },
];
