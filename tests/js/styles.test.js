// The style sheets of views.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const ROOT = new URL("../../tfviz/view/js/", import.meta.url);
const files = readdirSync(ROOT, { recursive: true, encoding: "utf8" });
const text = (/** @type {string} */ ending) =>
  files
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(new URL(name, ROOT), "utf8"))
    .join("\n");

test("every variable that a style sheet reads is set by a style sheet or a script", () => {
  const styles = text(".css");
  const scripts = text(".js");
  const colours = /CSS_COLOURS = \[([^\]]*)\]/.exec(scripts)?.[1].match(/\w+/g) ?? [];
  const read = new Set([...styles.matchAll(/var\((--[\w-]+)\)/g)].map(([, name]) => name));
  const set = new Set([...`${styles}\n${scripts}`.matchAll(/(--[\w-]+)(?:"|: )/g)].map(([, name]) => name));
  colours.forEach((name) => set.add(`--${name}`));
  assert.deepEqual(
    [...read].filter((name) => !set.has(name)),
    [],
  );
});
