// Products of float32 matrices, computed in WebAssembly (`products.wat`), or in JavaScript where WebAssembly is not
// allowed. Both kernels have the same signature and one memory of floats, so that callers need not distinguish them.

import { COMPILED_PRODUCTS } from "./products-wasm.js";

/**
 * A matrix [inner, columns] in a kernel's memory; offset and strides (from row to row, panel to panel) in floats.
 * @typedef {{ offset: number, rowStride: number, panelStride: number, inner: number, columns: number }} Matrix
 */
/** @typedef {Matrix & { generation: symbol }} StoredMatrix */
/** @typedef {{ batch?: number, rows: number, inner: number, columns: number }} Sizes */
/**
 * `memory(count)` is an array of at least so many floats, which keeps what was written before.
 * @typedef {{ name: string, memory(count: number): Float32Array, product(...numbers: number[]): void }} Kernel
 */

const PANEL_COLUMNS = 8; // columns that the kernel computes together
const PAGE_FLOATS = 2 ** 14; // floats in a page of WebAssembly memory

/** A kernel for matrix products with its memory. */
export class MatmulKernel {
  end = 0; // end of the stored matrices, in floats; scratch memory follows
  generation = Symbol(); // that of the matrices stored since the last `free`

  /** @param {Kernel} kernel */
  constructor(kernel) {
    this.kernel = kernel;
  }

  /** Use JavaScript where WebAssembly is missing, has no SIMD or is forbidden by the page's security policy. */
  static async make() {
    try {
      const bytes = Uint8Array.from(atob(COMPILED_PRODUCTS), (letter) => letter.charCodeAt(0));
      const { instance } = await WebAssembly.instantiate(bytes);
      return new MatmulKernel(compiledKernel(/** @type {any} */ (instance.exports)));
    } catch {
      return new MatmulKernel(scriptKernel());
    }
  }

  /**
   * out[batch, rows, columns] = a[batch, rows, inner] @ b[batch, inner, columns] + bias[columns]. `out` may be a or b.
   * @param {Float32Array} a
   * @param {Float32Array} b
   * @param {Sizes} sizes
   * @param {Float32Array} out
   * @param {Float32Array | null} [bias]
   */
  matmul(a, b, { batch = 1, rows, inner, columns }, out, bias = null) {
    checkSizes({ batch, rows, inner, columns });
    checkLength("b", b, batch * inner * columns);
    const scratch = this.end + padded(b.length);
    this.memory(scratch).set(b, this.end);
    const matrix = { offset: this.end, rowStride: columns, panelStride: PANEL_COLUMNS, inner, columns };
    this.compute(a, matrix, batch, rows, out, bias, scratch);
  }

  /**
   * Copy a weight [columns, inner], as torch.nn.Linear has it, to the kernel's memory, where it stays until `free`.
   * @param {Float32Array} weight
   * @param {number} columns
   * @param {number} inner
   * @returns {StoredMatrix}
   */
  store(weight, columns, inner) {
    checkSizes({ columns, inner });
    checkLength("the weight", weight, columns * inner);
    const [offset, panelStride] = [this.end, inner * PANEL_COLUMNS];
    const size = Math.ceil(columns / PANEL_COLUMNS) * panelStride;
    const floats = this.memory(offset + padded(size)).fill(0, offset, offset + size);
    for (let column = 0, from = 0; column < columns; column++) {
      let to = offset + Math.floor(column / PANEL_COLUMNS) * panelStride + (column % PANEL_COLUMNS);
      for (let i = 0; i < inner; i++, to += PANEL_COLUMNS) floats[to] = weight[from++];
    }
    this.end += padded(size);
    return { offset, rowStride: PANEL_COLUMNS, panelStride, inner, columns, generation: this.generation };
  }

  /**
   * out[rows, columns] = a[rows, inner] @ weight.T + bias[columns], for a weight that `store` returned.
   * @param {Float32Array} a
   * @param {number} rows
   * @param {StoredMatrix} weight
   * @param {Float32Array} out
   * @param {Float32Array | null} [bias]
   */
  linear(a, rows, weight, out, bias = null) {
    if (weight.generation !== this.generation)
      throw new Error("this weight is not stored here: it was freed, or belongs to other products");
    checkSizes({ rows });
    this.compute(a, weight, 1, rows, out, bias, this.end);
  }

  /** Free the memory of all stored matrices. */
  free() {
    this.end = 0;
    this.generation = Symbol();
  }

  /** @param {number} count floats at least; arrays of earlier calls are out of date, since memory moves as it grows */
  memory(count) {
    try {
      return this.kernel.memory(count);
    } catch (error) {
      throw new Error(`no memory for ${Math.ceil(count / 250_000)} MB of matrices`, { cause: error });
    }
  }

  /**
   * Copy a and the bias to the scratch memory, and the products out.
   * @param {Float32Array} a
   * @param {Matrix} matrix
   * @param {number} batch
   * @param {number} rows
   * @param {Float32Array} out
   * @param {Float32Array | null} bias
   * @param {number} scratch
   */
  compute(a, { offset, rowStride, panelStride, inner, columns }, batch, rows, out, bias, scratch) {
    checkLength("a", a, batch * rows * inner);
    checkLength("out", out, batch * rows * columns);
    if (bias) checkLength("the bias", bias, columns);
    if (!out.length) return;
    const added = scratch + padded(a.length);
    const result = added + padded(columns);
    const floats = this.memory(result + padded(out.length));
    floats.set(a, scratch);
    if (bias) floats.set(bias, added);
    else floats.fill(0, added, added + columns);
    for (let i = 0; i < batch; i++) {
      const [left, right] = [scratch + i * rows * inner, offset + i * inner * columns];
      const to = result + i * rows * columns;
      this.kernel.product(left, right, added, to, rows, inner, columns, rowStride, panelStride);
    }
    out.set(floats.subarray(result, result + out.length));
  }
}

/** @type {(exports: { memory: WebAssembly.Memory, product: Kernel["product"] }) => Kernel} */
function compiledKernel({ memory, product }) {
  let floats = new Float32Array(memory.buffer);
  return {
    name: "WebAssembly",
    product,
    memory(count) {
      if (count > floats.length) {
        memory.grow(Math.ceil((count - floats.length) / PAGE_FLOATS));
        floats = new Float32Array(memory.buffer);
      }
      return floats;
    },
  };
}

/** @type {() => Kernel} */
function scriptKernel() {
  let floats = new Float32Array(PAGE_FLOATS);
  return {
    name: "JavaScript",
    product: (...args) => product(floats, ...args),
    memory(count) {
      if (count > floats.length) {
        const before = floats;
        floats = new Float32Array(Math.max(count, 2 * before.length));
        floats.set(before);
      }
      return floats;
    },
  };
}

/**
 * Compute a product as `products.wat` does, but one row and four columns at a time: four sums, of doubles, stay in registers.
 * @param {Float32Array} floats
 * @param {number[]} args of the kernel
 */
function product(floats, ...[a, b, bias, c, rows, inner, columns, rowStride, panelStride]) {
  for (let column = 4 * (Math.ceil(columns / 4) - 1); column >= 0; column -= 4) {
    const first = b + Math.floor(column / PANEL_COLUMNS) * panelStride + (column % PANEL_COLUMNS);
    const added = bias + column;
    let left = a;
    for (let to = c + column; to < c + rows * columns; to += columns) {
      let s0 = floats[added];
      let s1 = floats[added + 1];
      let s2 = floats[added + 2];
      let s3 = floats[added + 3];
      const end = left + inner;
      for (let right = first; left < end; left++, right += rowStride) {
        const x = floats[left];
        s0 += x * floats[right];
        s1 += x * floats[right + 1];
        s2 += x * floats[right + 2];
        s3 += x * floats[right + 3];
      }
      floats[to] = s0;
      floats[to + 1] = s1;
      floats[to + 2] = s2;
      floats[to + 3] = s3;
    }
  }
}

/** @type {(count: number) => number} Floats to reserve: kernels touch eight behind the last, and panels are aligned. */
const padded = (count) => (Math.ceil(count / PANEL_COLUMNS) + 1) * PANEL_COLUMNS;

/** @type {(sizes: Record<string, number>) => void} */
function checkSizes(sizes) {
  for (const [name, size] of Object.entries(sizes))
    if (!Number.isInteger(size) || size < 0) throw new Error(`${name} is ${size}; it must be 0, 1, 2, ...`);
}

/** @type {(name: string, array: Float32Array | null, length: number) => void} */
function checkLength(name, array, length) {
  if (array?.length !== length)
    throw new Error(`${name} holds ${array?.length ?? "no"} numbers; it must hold ${length}`);
}
