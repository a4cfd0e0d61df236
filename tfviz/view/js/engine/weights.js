// Weights as they travel: float32, float16, or int8 with a scale for each row; whole numbers and truth values.

const HALVES = new Float32Array(65536); // the value of each float16, by its bits (IEEE 754, binary16)
for (let bits = 0; bits < 65536; bits++) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) HALVES[bits] = fraction ? NaN : sign * Infinity;
  else HALVES[bits] = sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : (2 ** -14 * fraction) / 1024);
}

// The tensor of a weight; `bytes` is all that travelled.
export function weightOf({ shape, dtype, stored, at: [start, length], scale }, bytes) {
  const piece = bytes.slice(start, start + length).buffer; // begins where a typed array may
  if (stored === "bool") return { shape, dtype, data: new Uint8Array(piece) };
  if (stored === "int32") return { shape, dtype, data: new Int32Array(piece) };
  if (stored === "float32") return { shape, dtype, data: new Float32Array(piece) };
  const scales = scale && new Float32Array(bytes.slice(scale[0], scale[0] + scale[1]).buffer);
  return {
    shape,
    dtype,
    data: stored === "float16" ? halves(new Uint16Array(piece)) : scaled(new Int8Array(piece), scales, shape.at(-1)),
  };
}

function halves(given) {
  const made = new Float32Array(given.length);
  for (let i = 0; i < made.length; i++) made[i] = HALVES[given[i]];
  return made;
}

// Rows of `width` numbers, each with its scale.
function scaled(given, scales, width) {
  const made = new Float32Array(given.length);
  for (let row = 0; row < scales.length; row++)
    for (let i = row * width; i < (row + 1) * width; i++) made[i] = given[i] * scales[row];
  return made;
}
