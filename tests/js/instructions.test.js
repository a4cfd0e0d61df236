// What an instrument says of its use: the line above the controls, its title, the shortcuts.

import assert from "node:assert/strict";
import test from "node:test";
import { purposeText, shortcutsOf, titleParts } from "../../tfviz/view/js/interact/instructions.js";

/** A document with controls of some kinds. @param {string[]} kinds @returns {any} */
const documentOf = (kinds, title = "Softmax", purpose = "") => ({
  title,
  purpose,
  controls: Object.fromEntries(kinds.map((kind, i) => [`control ${i}`, { kind }])),
});

test("a title ends at its question mark or colon, unless the author wrote a purpose", () => {
  assert.deepEqual(titleParts(documentOf([], "What is rotated? two keys")), {
    main: "What is rotated?",
    subtitle: "two keys",
  });
  assert.deepEqual(titleParts(documentOf([], "Rotary: two keys: one query")), {
    main: "Rotary",
    subtitle: "two keys: one query",
  });
  const whole = { main: "Rotary: two keys", subtitle: "" };
  assert.deepEqual(titleParts(documentOf([], "Rotary: two keys", "Turn it.")), whole);
});

test("the purpose is the author's, or the end of the title, or names each kind of control once", () => {
  assert.equal(purposeText(documentOf(["slider"], "Rotary: two keys", "Turn it.")), "Turn it.");
  assert.equal(purposeText(documentOf(["slider"], "Rotary: two keys")), "Two keys");
  assert.equal(purposeText(documentOf(["slider", "slider"])), "Drag a slider: the results follow.");
  const three = documentOf(["slider", "menu", "slider", "switch"]);
  assert.equal(purposeText(three), "Drag a slider, choose from the list or tick the box: the results follow.");
});

test("shortcuts are those of the kinds of controls, and of pictures", () => {
  const keys = (/** @type {string[]} */ kinds) => shortcutsOf(documentOf(kinds)).map(([key]) => key);
  assert.deepEqual(keys(["menu"]), ["arrows on a picture"]);
  assert.deepEqual(keys(["switches", "slider"]), [
    "left, right",
    "arrows in the table",
    "Space, Enter",
    "arrows on a picture",
  ]);
});
