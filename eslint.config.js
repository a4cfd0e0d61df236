import js from "@eslint/js";
import globals from "globals";

const BY_PYTHON = { PALETTE: "readonly", CSS: "readonly", PAGE_STYLE: "readonly", ENGINE: "readonly" }; // see page/bundle.py

export default [
  { ignores: [".venv/", "build/", "dist/", "runs/", "site/"] },
  js.configs.recommended,
  { files: ["tfviz/view/js/**/*.js"], languageOptions: { globals: { ...globals.browser, ...BY_PYTHON } } },
  { files: ["eslint.config.js", "tests/**/*.js"], languageOptions: { globals: globals.node } },
  {
    rules: {
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      complexity: ["warn", 12],
      "max-depth": ["warn", 4],
      "no-nested-ternary": "warn",
    },
  },
];
