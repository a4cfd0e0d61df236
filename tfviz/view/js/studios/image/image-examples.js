// Guided experiments of the image classifier's studio, such as finding the patches that matter most.

import { topPatches } from "./image-summary.js";

/** @import { ClassifyImageStudio } from "./classify-image-studio.js" */

const TOP_PATCHES = 4;

/** Make the experiments of the image classifier's studio. @param {ClassifyImageStudio} studio */
export function imageExamples(studio) {
  const { store } = studio;
  const all = [...Array(studio.patchCount).keys()];
  const { columns } = studio.viewDocument.patches;
  const untouched = { ablated_heads: [], hidden_patches: [] };
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
    {
      name: "Switch off the head that matters most",
      act: async () => {
        await begin();
        const head = await studio.importance.findStrongest();
        if (head) studio.heads.toggleHead(head);
      },
    },
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
