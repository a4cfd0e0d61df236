// A function that decodes stored weights: float32, float16, int8 with a scale for each row, integers and booleans.

/** @import { Numbers, Tensor, WeightSpec } from "../types.js" */

const FLOAT16_VALUES = new Float32Array(65536); // the value of each float16, indexed by its bits (IEEE 754, binary16)
for (let bits = 0; bits < 65536; bits++) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) FLOAT16_VALUES[bits] = fraction ? NaN : sign * Infinity;
  else
    FLOAT16_VALUES[bits] =
      sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : (2 ** -14 * fraction) / 1024);
}

/** @type {Record<WeightSpec["stored"], (buffer: ArrayBuffer, scales: Float32Array, columns: number) => Numbers>} */
const DECODERS = {
  bool: (buffer) => new Uint8Array(buffer),
  int32: (buffer) => new Int32Array(buffer),
  float32: (buffer) => new Float32Array(buffer),
  float16(buffer) {
    const codes = new Uint16Array(buffer);
    const data = new Float32Array(codes.length);
    for (let i = 0; i < data.length; i++) data[i] = FLOAT16_VALUES[codes[i]];
    return data;
  },
  int8(buffer, scales, columns) {
    const codes = new Int8Array(buffer);
    const data = new Float32Array(codes.length);
    for (let row = 0; row < scales.length; row++)
      for (let i = row * columns; i < (row + 1) * columns; i++) data[i] = codes[i] * scales[row];
    return data;
  },
};

/** Decode a stored weight. @type {(weight: WeightSpec, bytes: Uint8Array) => Tensor} */
export function weightOf({ shape, dtype, stored, byte_range, scale }, bytes) {
  const bufferOf = ([start, length] = [0, 0]) => bytes.slice(start, start + length).buffer; // a copy is aligned
  const scales = new Float32Array(bufferOf(scale ?? undefined));
  return { shape, dtype, data: DECODERS[stored](bufferOf(byte_range), scales, shape[shape.length - 1]) };
}
