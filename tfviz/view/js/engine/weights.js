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
  if (stored === "float16") return { shape, dtype, data: Float32Array.from(new Uint16Array(piece), (bits) => HALVES[bits]) };
  const scales = new Float32Array(bytes.slice(scale[0], scale[0] + scale[1]).buffer);
  const width = shape[shape.length - 1];
  return { shape, dtype, data: Float32Array.from(new Int8Array(piece), (value, i) => value * scales[Math.floor(i / width)]) };
}
