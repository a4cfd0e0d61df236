// The style and the help of an instrument.

export const INTERACT_CSS = `
.controls.knobs { flex-flow: column nowrap; align-items: stretch; gap: 10px }
.knobs .knobs { display: flex; min-width: 0; flex-wrap: wrap; align-items: flex-start; gap: 10px 28px }
.knobs label { min-height: 26px }
.results { gap: 16px 28px; align-items: flex-start }
.gear { display: inline-flex; flex-direction: column; align-items: flex-start; gap: 4px; color: var(--soft); max-width: 100%; min-width: 0 }
.gear output { color: var(--ink); font-variant-numeric: tabular-nums }
.plane { position: relative; touch-action: pan-x pan-y; overflow-x: clip }
.plane canvas { cursor: default }
.point { position: absolute; width: 26px; height: 26px; min-height: 0; margin: -13px 0 0 -13px; padding: 0; border: 0; border-radius: 50%; cursor: grab; touch-action: none }
.point:active { cursor: grabbing }
.dial { border-radius: 50%; cursor: grab; touch-action: none }
.dial:active { cursor: grabbing }
.typed { flex: 1 1 100%; white-space: normal } .typed textarea { flex: 1; min-width: 0; max-width: 52em; resize: vertical }
.order { display: flex; flex-wrap: wrap; gap: 6px }
.ordered { cursor: grab; touch-action: none; padding: 3px 10px; user-select: none; max-width: 100%; overflow-wrap: anywhere }
.ordered[aria-pressed="true"] { background: var(--ink); color: var(--page); border-color: var(--ink) }
.gear:has(.cells) { overflow-x: auto }
.cells td, .cells th { padding: 1px 3px; border: 0 } .cells th { text-align: center } .cells tbody th { text-align: right }
.cell { width: 5em; padding: 2px 6px; text-align: right; font-size: 12px; font-variant-numeric: tabular-nums; touch-action: pan-y; box-sizing: border-box; min-height: 26px }
.switch { width: 26px; height: 26px; min-height: 26px; padding: 0; touch-action: none; cursor: pointer; user-select: none; border-radius: 4px; font-size: 12px; color: var(--soft); background: var(--page) }
.switch[aria-pressed="true"] { background: var(--ink); color: var(--page); border-color: var(--ink) }
button.cell { cursor: ew-resize; user-select: none }
input.cell { border: 1px solid var(--focus); border-radius: 5px; background: var(--page) }
[inert] { opacity: 0.75 }
`;

// [kind of control that it is for, key, what it does]
export const KEYS_HELP = [
  ["slider", "left, right", "turn a slider; Home and End: all the way"],
  ["points", "arrows on a point", "move it; with Shift by ten steps"],
  ["cells", "arrows in the table", "go from number to number"],
  ["cells", "+ − on a number", "change it by a step; with Shift by ten"],
  ["cells", "digits, Enter", "type a number; Enter keeps it, Escape does not"],
  ["switches", "arrows in the table", "go from switch to switch"],
  ["switches", "Space, Enter", "turn it on or off; a mouse that is dragged turns all it meets"],
  ["order", "Alt with arrows", "move a word; or Space, arrows, Space"],
  ["angle", "arrows on a dial", "turn it by 5°; with Shift by 1°, Page up and down by 45°, Home to 0°"],
  ["", "arrows on a picture", "read its numbers one by one; Home, End: first, last"],
];
