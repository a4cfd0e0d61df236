// Guided experiments of the studios of texts. Each does something that the reader could do, and Undo reverts it.

import { NO_LOCKS } from "../base/locks.js";
import { formatCount, formatFixed } from "../base/numbers.js";
import { prefersNoMotion } from "./animation.js";
import { countKinds } from "../views/head-summary.js";
import { PREDICTED_LABEL, isLabel } from "./classify/word-effects.js";

/** @import { Example } from "../controls/example-buttons.js" */
/** @import { ClassifyStudio } from "./classify/classify-studio.js" */
/** @import { FillStudio } from "./fill/fill-studio.js" */
/** @import { Studio } from "./studio.js" */
/** @import { TranslateStudio } from "./translate/translate-studio.js" */
/** @import { WriteStudio } from "./write/write-studio.js" */

const SCAN_INTERVAL = 90; // milliseconds for which a search shows each head
const MAX_NEW_TOKENS = 60;
const MAX_TOKENS_TO_LOOP = 5 * MAX_NEW_TOKENS; // within which a greedy text is to loop
const MIN_LOOP = 24; // tokens that must repeat, so that a word said twice is no loop

/**
 * Return the head whose strongest keys are of a kind most often, and how often.
 * @param {Studio<any>} studio
 * @param {string} kind
 */
function bestHead(studio, kind) {
  const scored = studio.heads.addresses
    .filter((address) => !studio.heads.isAblated(address))
    .map((address) => {
      const counts = countKinds(studio.heads.grid(address), studio.idsOf(address.part));
      const { count, of } = counts.filter((one) => one.kind === kind)[0];
      return { address, share: of ? count / of : 0 };
    });
  return scored.sort((a, b) => b.share - a.share)[0] ?? null;
}

/**
 * Select one head after the other, and stop at the one that fits best.
 * @param {Studio<any>} studio
 * @param {string} kind
 */
async function findHead(studio, kind) {
  const best = bestHead(studio, kind);
  if (!best) return;
  for (const address of prefersNoMotion() ? [] : studio.heads.addresses.slice(0, 24)) {
    studio.heads.select(address);
    await new Promise((done) => setTimeout(done, SCAN_INTERVAL));
  }
  studio.heads.select(best.address);
}

/** Make the experiments of the writing studio. @param {WriteStudio} studio */
export function writeExamples(studio) {
  const { unit, store, loop } = studio;
  const { temperature, top_k, top_p } = studio.viewDocument.state;
  const begin = async (more = {}) => {
    loop.running = false;
    await loop.lastWrite;
    store.set({ ablated_heads: [], temperature, top_k, top_p, ...more });
    await studio.whenIdle();
  };
  return [
    { name: "Let it write", act: () => begin().then(() => loop.toggle(MAX_NEW_TOKENS)) },
    { name: `Find the head that looks one ${unit} back`, act: () => begin().then(() => findHead(studio, "at -1")) },
    {
      name: "… and switch it off",
      act: async () => {
        await begin();
        const best = bestHead(studio, "at -1");
        if (!best) return;
        studio.heads.select(best.address);
        studio.heads.toggle(studio.heads.siteOf(best.address), [best.address.head]);
        await studio.whenIdle();
        studio.announce("Now press Write on: this is how it writes without this head.");
      },
    },
    {
      name: "Temperature 0: does it loop?",
      act: async () => {
        await begin({ temperature: 0, tree: [], node: -1 });
        await loop.toggle(MAX_TOKENS_TO_LOOP, () => loopLength(studio.path.tokens) > 0);
        await studio.whenIdle();
        studio.announce(loopSentence(studio.path.tokens, unit));
      },
    },
    {
      name: "Write the same line twice",
      act: async () => {
        await begin();
        const line = store.get("prompt").trimEnd().split("\n").at(-1);
        studio.beginWith(`${line}\n${line}`);
        await studio.whenIdle();
        const best = bestHead(studio, "induction");
        if (best) studio.heads.select(best.address);
        await studio.whenIdle();
        const { answer, textLoss: textLoss } = studio;
        const losses = answer && textLoss.lossesOf(answer)?.now;
        if (answer && losses) studio.announce(repeatSentence(answer.ids, losses, unit));
      },
    },
  ];
}

/**
 * Compare the losses of a line in a text of that line twice, in words; empty if the text is another.
 * @param {number[]} ids of the line, a line feed, and the line
 * @param {ArrayLike<number>} losses of all tokens but the first
 * @param {string} unit
 */
export function repeatSentence(ids, losses, unit) {
  const length = Math.floor(ids.length / 2);
  const isRepeated = ids.slice(0, length).every((id, i) => id === ids[length + 1 + i]);
  if (length < 2 || ids.length !== 2 * length + 1 || !isRepeated) return "";
  // the first token of the text has no loss, so that of the second line is left out, too
  const mean = (/** @type {number} */ start) =>
    Array.from({ length: length - 1 }, (_, i) => losses[start + i]).reduce((sum, loss) => sum + loss, 0) / (length - 1);
  const [first, second] = [mean(0), mean(length + 1)].map((loss) => formatFixed(loss, 2));
  return `The line costs ${first} nats a ${unit} the first time, ${second} the second.`;
}

/**
 * Return the period of the loop that ends a text (three repeats, or over MIN_LOOP tokens); 0 if there is none.
 * @param {number[]} tokens
 */
export function loopLength(tokens) {
  const lengths = Array.from({ length: Math.floor(tokens.length / 2) }, (_, i) => i + 1);
  const repeats = (/** @type {number} */ period) =>
    tokens
      .slice(-Math.max(2 * period, MIN_LOOP))
      .every((id, i, end) => id === tokens[tokens.length - end.length + i - period]);
  return lengths.find(repeats) ?? 0;
}

/**
 * Return whether a text ends in a loop, in words.
 * @param {number[]} tokens
 * @param {string} unit
 */
export function loopSentence(tokens, unit) {
  const length = loopLength(tokens);
  if (!length) return `It does not loop within ${formatCount(tokens.length, unit)}.`;
  if (length === 1) return `It loops: the last ${unit} is the one before it, again and again.`;
  return `It loops: the last ${formatCount(length, unit)} repeat those before.`;
}

/** Make the experiments of the classifier's studio. @param {ClassifyStudio} studio */
export function classifyExamples(studio) {
  const { store } = studio;
  const strongest = () => {
    const strength = (/** @type {number} */ i) => Math.abs(studio.effects.of(i, studio.label) ?? 0);
    return [...studio.effects.answers.keys()].sort((a, b) => strength(b) - strength(a))[0] ?? null;
  };
  return [
    {
      name: "Strike out the word that counts most",
      act: async () => {
        store.set({ ablated_heads: [] });
        studio.change({ ...studio.initialState, ...(isLabel(studio.label) ? {} : { label: PREDICTED_LABEL }) });
        await studio.whenIdle();
        const i = strongest();
        if (i !== null) studio.change({ deleted: [i] });
      },
    },
    {
      name: "Turn the words around",
      act: () =>
        studio.change({
          ablated_heads: [],
          text: store.get("text").trim().split(/\s+/).reverse().join(" "),
          ...studio.initialState,
        }),
    },
    importantHead(studio),
    allHeadsOff(studio),
  ];
}

/** Make the experiments of the masked language model's studio. @param {FillStudio} studio */
export function fillExamples(studio) {
  return [
    {
      name: "Hide the last word",
      act: () =>
        studio.change({
          ablated_heads: [],
          masked: studio.segments.slice(-1).flatMap((segment) => studio.positionsOf(segment)),
          filled: [],
        }),
    },
    {
      name: "Hide every other word",
      act: () =>
        studio.change({
          ablated_heads: [],
          masked: studio.segments.filter((_, i) => i % 2).flatMap((segment) => studio.positionsOf(segment)),
          filled: [],
        }),
    },
    importantHead(studio),
    allHeadsOff(studio),
  ];
}

/** Make the experiments of the translation studio. @param {TranslateStudio} studio */
export function translateExamples(studio) {
  const { store, viewDocument } = studio;
  const { num_beams, length_penalty } = viewDocument.state;
  const from = { ablated_heads: [], node: null, ...NO_LOCKS, prefix: [], num_beams, length_penalty };
  return [
    { name: "Translate it", act: () => store.set({ ...from, steps: viewDocument.max_new_tokens }) },
    { name: "One word at a time", act: () => store.set({ ...from, steps: 1 }) },
    {
      name: "A beam of four",
      act: () =>
        store.set({ ...from, num_beams: Math.min(4, viewDocument.max_num_beams), steps: viewDocument.max_new_tokens }),
    },
    {
      name: "Force the second likeliest first word",
      act: async () => {
        store.set({ ...from, steps: viewDocument.max_new_tokens });
        await studio.whenIdle();
        const unforced = studio.current?.text.tokens ?? [];
        store.set({ steps: 0 });
        await studio.whenIdle();
        studio.force(studio.view.next.words[1].id);
        store.set({ steps: viewDocument.max_new_tokens });
        await studio.whenIdle();
        studio.announce(`Left to itself it writes ${studio.view.texts.quote(unforced)}`);
      },
    },
    allHeadsOff(studio),
  ];
}

/** @param {Studio<any>} studio @returns {Example} */
const importantHead = (studio) => ({
  name: "Find the head that matters most",
  act: async () => {
    studio.store.set({ ablated_heads: [] });
    const head = await studio.importance.findStrongest();
    if (head) studio.heads.select(head);
  },
});

/** @param {Studio<any>} studio @returns {Example} */
const allHeadsOff = ({ heads }) => ({ name: "Switch all heads off", act: () => heads.ablateAll() });
