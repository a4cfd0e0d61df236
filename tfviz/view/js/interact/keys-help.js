// The list of keys in an instrument's help.

/** The keys to explain: [the kind of control, the key, what it does]. */
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
