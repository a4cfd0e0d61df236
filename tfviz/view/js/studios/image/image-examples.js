// Guided experiments of the image classifier's studio, such as finding the patches that matter most.

import { topPatches } from "./image-summary.js";
import { logOdds } from "../logits.js";

/** @import { ClassifyImageStudio } from "./classify-image-studio.js" */
/** @import { HeadAddress } from "../model-pane.js" */

const TOP_PATCHES = 4;

/** Make the experiments of the image classifier's studio. @param {ClassifyImageStudio} studio */
export function imageExamples(studio) {
  const { store } = studio;
  const all = [...Array(studio.patchCount).keys()];
  const { columns } = studio.viewDocument.patches;
  const untouched = { off: [], hidden_patches: [] };
  const begin = () => {
    store.set(untouched);
    return studio.whenIdle();
  };
  return [
    {
      name: "Hide the patch that matters most",
      act: async () => {
        store.set({ ...untouched, shade: "effect" });
        await studio.whenIdle();
        const patch = studio.effects.topPatch;
        if (patch !== null) studio.hide([patch]);
      },
    },
    { name: "Switch off the head that matters most", act: () => begin().then(() => switchOffStrongest(studio)) },
    {
      name: `Show only the ${TOP_PATCHES} patches this head looks at most`,
      act: async () => {
        await begin();
        const strongest = topPatches(
          studio.attention.of(studio.heads.selected).values,
          studio.viewDocument.patches,
          TOP_PATCHES,
        );
        studio.hide(all.filter((patch) => !strongest.includes(patch)));
      },
    },
    {
      name: "Hide every other patch",
      act: async () => {
        await begin();
        studio.hide(all.filter((patch) => (Math.floor(patch / columns) + patch) % 2));
      },
    },
  ];
}

/** Switch off the head without which the log-odds of the followed label fall most. @param {ClassifyImageStudio} studio */
async function switchOffStrongest(studio) {
  /** @type {{ address: HeadAddress | null, odds: number }} */
  let worst = { address: null, odds: Infinity };
  for (const address of studio.heads.addresses.filter((one) => !studio.heads.isOff(one))) {
    const site = studio.heads.siteOf(address);
    const edits = [...studio.edits, { site, head: address.head, do: /** @type {const} */ ("zero") }];
    const answer = await studio.ask("measure", studio.hidden, { edits });
    if (!answer) return;
    const odds = logOdds(answer.logits, studio.label);
    if (odds < worst.odds) worst = { address, odds };
  }
  if (!worst.address) return;
  studio.heads.select(worst.address);
  studio.heads.toggle(studio.heads.siteOf(worst.address), [worst.address.head]);
}
