// A component that shows the loss of a text under a language model, in nats per token: of each token, of the whole text
// now, with all heads on, and without the selected head.

import { h } from "../../base/elements.js";
import { formatCount, formatFixed, formatNumber } from "../../base/numbers.js";
import { capital } from "../../base/visible-text.js";
import { cutTo } from "./language-model-reader.js";
import { LossBars } from "./loss-bars.js";
import { tokenLosses } from "../logits.js";

/** @import { Answer } from "./language-model-reader.js" */
/** @import { AblationQuery } from "../head-ablation.js" */
/** @import { WriteStudio } from "./write-studio.js" */

const GENERATED_NOTE = " (It wrote part of the text itself, and what it writes is likely to it, good or bad.)";
const MAX_READING_TIME = 800; // milliseconds; a slower model does not read the whole text at each step

/**
 * Return the mean loss in nats a token, of a text of two tokens or more.
 * @param {Float32Array} logits
 * @param {Pick<Answer, "ids" | "vocabSize">} answer
 */
const meanLoss = (logits, { ids, vocabSize }) =>
  tokenLosses(logits, ids, vocabSize).reduce((a, b) => a + b) / (ids.length - 1);

/** The perplexity in words: the number of equally likely tokens among which a guess would cost as much. @param {number} loss */
const perplexity = (loss) => formatNumber(Number(Math.exp(loss).toPrecision(2)));

/**
 * Say among how many equally likely tokens a guess would cost as much; no guess among all costs more than their logarithm.
 * @param {number} loss nats a token
 * @param {number} vocabSize
 * @param {string} unit
 */
export function perplexityText(loss, vocabSize, unit) {
  const all = formatCount(vocabSize, unit);
  if (loss > Math.log(vocabSize)) return `worse than guessing among all ${all}`;
  return `like guessing among ${perplexity(loss)} of ${all}`;
}

/**
 * Compare two losses as `perplexityText` does, after a colon; empty if one is worse than a guess among all.
 * @param {number} loss
 * @param {number} other
 * @param {number} vocabSize
 * @param {string} unit
 */
export function perplexityComparison(loss, other, vocabSize, unit) {
  if (Math.max(loss, other) > Math.log(vocabSize)) return "";
  return `: like guessing among ${perplexity(loss)} ${unit}s instead of ${perplexity(other)}`;
}

/** @param {string} unit */
const lossHelp = (unit) =>
  `of the whole text so far: the mean of −ln(the probability that the model gave each ${unit}, at temperature 1 whatever the slider says); less is better; e to its power is the perplexity, the number of equally likely ${unit}s among which a guess would cost as much`;

/** A line that describes the loss of a text, and bars of its tokens. */
export class TextLoss {
  /** The duration of the last reading in milliseconds. */
  readingTime = 0;

  /** @param {WriteStudio} studio */
  constructor(studio) {
    this.studio = studio;
    const { unit } = studio;
    this.line = h("small", { class: "metric", title: lossHelp(unit) });
    this.bars = new LossBars(unit);
  }

  /** Show the loss of an answer's text. @param {Answer} answer @param {number} ablatedHeadCount */
  show(answer, ablatedHeadCount) {
    this.line.textContent = this.describe(answer, ablatedHeadCount);
    this.bars.show(this.lossesOf(answer));
    this.bars.describe(this.studio.row);
  }

  /** The loss of each token; null of a kernel's answer, which has the logits of the last token alone. @param {Answer} answer */
  lossesOf(answer) {
    const { ids, logits, baseline, vocabSize } = answer;
    if (logits.length !== ids.length * vocabSize) return null;
    const words = this.studio.tokenizer.tokens(ids);
    answer.losses ??= tokenLosses(logits, ids, vocabSize);
    const baselineLosses = baseline && (answer.baselineLosses ??= tokenLosses(baseline, ids, vocabSize));
    return { words, now: answer.losses, baseline: baselineLosses, evenGuess: Math.log(vocabSize) };
  }

  /** @param {number} loss */
  words(loss) {
    return `${formatFixed(loss, 2)} nats a ${this.studio.unit}`;
  }

  /** Describe the loss of the text. @param {Answer} answer @param {number} ablatedHeadCount */
  describe(answer, ablatedHeadCount) {
    const { ids, logits, baseline, vocabSize } = answer;
    if (ids.length < 2) return "";
    const loss = (answer.loss ??= meanLoss(logits, answer));
    if (!baseline) return `${capital(perplexityText(loss, vocabSize, this.studio.unit))} (${this.words(loss)})`;
    const baselineLoss = (answer.baselineLoss ??= meanLoss(baseline, answer));
    return `${this.words(loss)} without ${formatCount(ablatedHeadCount, "head")}, ${formatFixed(baselineLoss, 2)} with all`;
  }

  /**
   * The loss of the text as a measure of heads; null of a text that would take too long to read again.
   * @param {Answer} answer
   * @returns {AblationQuery | null}
   */
  ablationQuery(answer) {
    const { studio } = this;
    const { ids, vocabSize } = answer;
    if (ids.length < 2 || studio.loop.running || this.readingTime > MAX_READING_TIME) return null;
    const value = (answer.loss ??= meanLoss(answer.logits, answer));
    return {
      key: String(ids),
      value,
      measure: async (edits) => {
        const inputs = { ids: { shape: [1, ids.length], data: ids } };
        const result = await studio.run("ablation", "read", inputs, { edits });
        return result && meanLoss(cutTo(result.outputs.logits, vocabSize).data, answer);
      },
      describe: (other, isAblated) => this.compare(value, other, vocabSize, isAblated),
      loss: (loss) => loss,
      unit: `nats a ${studio.unit}`,
    };
  }

  /**
   * Compare the loss of the text now with that of a toggled head.
   * @param {number} now
   * @param {number} other
   * @param {number} vocabSize
   * @param {boolean} isAblated
   */
  compare(now, other, vocabSize, isAblated) {
    const { unit } = this.studio;
    if (!isAblated)
      return `With this head off the text costs ${this.words(other)} instead of ${formatFixed(now, 2)}${perplexityComparison(other, now, vocabSize, unit)}.`;
    const note = this.studio.path.tokens.length > 0 && now < other ? GENERATED_NOTE : "";
    return `The text costs ${this.words(now)} instead of ${formatFixed(other, 2)}${perplexityComparison(now, other, vocabSize, unit)}.${note}`;
  }
}
