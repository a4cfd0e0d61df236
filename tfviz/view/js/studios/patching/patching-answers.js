// The answers that are compared, and the next tokens: each can be made the answer to one of the texts.

import { focusedIn, h, tabs } from "../../base/elements.js";
import { label } from "../../base/visible-text.js";
import { softmax, topK } from "../logits.js";
import { joinPresent } from "../small-elements.js";
import { bars, probabilitiesDrawing, probabilitiesPanel } from "../probability-bars.js";

/** @import { Theme } from "../../base/theme.js" */
/** @import { PatchState } from "../../documents.js" */
/** @import { Choices, Drawing, Tokenizer } from "../../types.js" */
/** @import { ProbabilityRow } from "../probability-bars.js" */
/** @typedef {"clean_answer_id" | "corrupt_answer_id"} Role of the clean text, of the corrupt text */

/** @type {Role[]} */
const ROLES = ["clean_answer_id", "corrupt_answer_id"];
const TEXTS = { clean_answer_id: "clean", corrupt_answer_id: "corrupt" };
const NAMES = { clean_answer_id: "Clean answer", corrupt_answer_id: "Corrupt answer" };
const LIKELIEST = 8; // next tokens of the run that is shown
const NOTE = "Bar: the corrupt run";

/** Fields for two answers, and bars of the next tokens. */
export class PatchingAnswers {
  /** @type {Role} which answer a bar becomes that is pressed */
  role = "clean_answer_id";
  /** @type {ProbabilityRow[]} */
  rows = [];
  /** @type {number[]} the ids of both answers */
  answers = [];

  /**
   * @param {Tokenizer} tokenizer
   * @param {Choices<PatchState>} store
   * @param {{ announce(text: string): void, preload(texts: string[]): Promise<boolean | null> }} studio shows a
   *   message; encodes texts in Python where the page cannot, null if that failed
   */
  constructor(tokenizer, store, { announce, preload }) {
    this.tokenizer = tokenizer;
    this.store = store;
    this.announce = announce;
    this.preload = preload;
    this.fields = ROLES.map((role) =>
      h("input", { type: "text", spellcheck: false, onchange: () => void this.type(role) }),
    );
    const labels = ROLES.map((role, i) =>
      h("label", { class: `answer ${TEXTS[role]}` }, h("span", {}, NAMES[role]), this.fields[i]),
    );
    this.choice = h("div", { class: "answers" }, ...labels);
    this.note = h("small", {});
    this.list = h("div", {
      class: "bar-list",
      role: "group",
      "aria-label": "Next token: press one to make it an answer",
    });
    const choose = (/** @type {Role} */ role) => {
      this.role = role;
      this.tabs.show(role);
    };
    this.tabs = tabs(
      "A bar that is pressed becomes the answer to",
      ROLES.map((role) => /** @type {[Role, string]} */ ([role, TEXTS[role]])),
      this.role,
      choose,
    );
    const pressed = h(
      "div",
      { class: "more" },
      h("span", { class: "cut-by" }, "Click a bar to set", this.tabs.element),
    );
    this.element = h("div", {}, this.note, this.list, pressed);
  }

  /**
   * Make a token the answer to a text; the other answer stays what it is, or they change places.
   * @param {Role} role
   * @param {number} id
   */
  choose(role, id) {
    const [clean, corrupt] = this.answers;
    const swapped = id === (role === "clean_answer_id" ? corrupt : clean);
    this.store.set(
      swapped
        ? { clean_answer_id: corrupt, corrupt_answer_id: clean }
        : { clean_answer_id: clean, corrupt_answer_id: corrupt, [role]: id },
    );
  }

  /** Take a typed answer, which must be one token. @param {Role} role */
  async type(role) {
    const text = this.fields[ROLES.indexOf(role)].value.replaceAll("␣", " ").replaceAll("⏎", "\n");
    if (text && (await this.preload([text])) === null) return undefined;
    try {
      const ids = text ? this.tokenizer.encode(text) : [-1];
      if (ids.length === 1) return this.choose(role, ids[0]);
      const pieces = this.tokenizer
        .tokens(ids)
        .map((word) => label(word))
        .join(" · ");
      this.announce(`an answer is one token, and this is ${ids.length}: ${pieces}`);
    } catch (error) {
      this.announce(/** @type {Error} */ (error).message);
    }
    return undefined;
  }

  /**
   * Show both answers and the likeliest next tokens.
   * @param {{ clean: Float32Array, corrupt: Float32Array, patched: Float32Array | null }} logits
   * @param {number[]} answers
   */
  show({ clean, corrupt, patched }, answers) {
    this.answers = answers;
    this.fields.forEach((field, i) => {
      if (focusedIn(field) !== field) field.value = label(this.tokenizer.tokens([answers[i]])[0], 40);
    });
    const [was, baseline, now] = [clean, corrupt, patched ?? corrupt].map((logits) => softmax(logits));
    const likeliest = [...topK(now, LIKELIEST), ...topK(was, 2)].filter((id) => !answers.includes(id));
    const ids = [...answers, ...[...new Set(likeliest)].sort((a, b) => now[b] - now[a])]; // the answers come first
    this.note.textContent = `${NOTE}${patched ? " with the patch; line: without it" : ""}; pale beyond it: the clean run`;
    this.rows = ids.map((id) => {
      const role = ROLES[answers.indexOf(id)];
      return {
        name: label(this.tokenizer.tokens([id])[0], 14),
        probability: now[id],
        pale: was[id],
        baseline: patched ? baseline[id] : null,
        kind: joinPresent([role && `answer-to-${TEXTS[role]}`]),
        title: role ? `the answer to the ${TEXTS[role]} text` : "press to make it an answer",
        onclick: () => this.choose(this.role, id),
      };
    });
    const focused = [...this.list.children].indexOf(focusedIn(this.list));
    this.list.replaceChildren(...bars(this.rows, "without the patch"));
    if (focused >= 0) /** @type {HTMLElement} */ (this.list.children[focused] ?? this.list.firstChild)?.focus();
  }

  get panels() {
    return [
      probabilitiesPanel("Next token of the corrupt run", "next token", this.rows, ["patched", "without the patch"]),
    ];
  }

  /** @param {Theme} theme @returns {Drawing} */
  drawing(theme) {
    return probabilitiesDrawing(theme, this.rows);
  }
}
