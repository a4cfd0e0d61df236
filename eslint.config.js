import js from "@eslint/js";
import importX from "eslint-plugin-import-x";
import globals from "globals";
import { parser, plugin as typescript } from "typescript-eslint";

const VIEWS = "tfviz/view/js";

/** Modules of a folder import from these folders only. @param {string} folder @param {...string} folders */
const importsOnly = (folder, ...folders) => ({
  files: [`${VIEWS}/${folder}/**/*.js`],
  rules: { "no-restricted-imports": ["error", { patterns: [{ regex: `^\\.\\./(?!(${folders.join("|")})/)` }] }] },
});

export default [
  { ignores: [".venv/", "build/", "dist/", "runs/", "site/", "tfviz/view/static/", "tfviz/suite/static/"] },
  js.configs.recommended,
  {
    rules: {
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      complexity: ["error", 12],
      "max-depth": ["error", 4],
      "no-nested-ternary": "error",
    },
  },
  {
    files: ["tfviz/**/*.js"],
    languageOptions: { parser, parserOptions: { project: "./tsconfig.json" } },
    plugins: { typescript, "import-x": importX },
    rules: { "typescript/no-floating-promises": "error", "import-x/no-cycle": "error" },
  },
  { files: ["*.js", "tests/**/*.js"], languageOptions: { globals: globals.node } },
  { files: ["tfviz/suite/js/*.js"], languageOptions: { globals: globals.browser } },
  {
    files: [`${VIEWS}/**/*.js`],
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
  // base <- controls <- stages <- interact, studios; engine stands alone, text needs base
  importsOnly("base", "none"),
  importsOnly("text", "base"),
  importsOnly("engine", "none"),
  importsOnly("controls", "base"),
  importsOnly("stages", "base", "controls", "engine"),
  importsOnly("interact", "base", "controls", "stages", "engine", "text"),
  importsOnly("studios", "base", "controls", "stages", "engine", "text"),
];
