// The style and the help of an instrument.

export const INTERACT_CSS = `
.knobs { align-items: flex-start; gap: 10px 24px }
.knobs > label { min-height: 26px }
.results { gap: 16px 24px; align-items: flex-start }
`;

// [kind of control that it is for, key, what it does]
export const KEYS_HELP = [
  ["slider", "left, right", "turn a slider; Home, End: all the way"],
  ["", "arrows on a picture", "read its numbers one by one"],
];
