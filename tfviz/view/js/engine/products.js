// Products of matrices of 32-bit floats: in WebAssembly (`products.wat`), or in plain JavaScript where it may not run.
// Both kernels have one signature and one memory of floats, so all that is below them is the same.

import { PRODUCTS } from "./compiled.js";

const PANEL = 8; // columns that a kernel computes together
const PAGE = 2 ** 14; // floats that a memory of WebAssembly grows by

export class Products {
  // kernel: its name; memory(count), an array of at least so many floats, which keeps what was written before;
  // product(...), as in `products.wat`
  constructor(kernel) {
    this.kernel = kernel;
    this.free();
  }

  // Where WebAssembly is missing, has no SIMD or is forbidden by the page's security policy, the plain kernel answers.
  static async make() {
    try {
      const bytes = Uint8Array.from(atob(PRODUCTS), (letter) => letter.charCodeAt(0));
      return new Products(compiledKernel(/** @type {any} */ ((await WebAssembly.instantiate(bytes)).instance.exports)));
    } catch {
      return new Products(plainKernel());
    }
  }

  // out[rows, columns] = a[rows, inner] @ b[inner, columns] (+ bias[columns]): Float32Arrays of exactly these lengths.
  // out may share memory with a or b.
  multiply(a, b, rows, inner, columns, out, bias = null) {
    this.batched(a, b, 1, rows, inner, columns, out, bias);
  }

  // out[batch, rows, columns] = a[batch, rows, inner] @ b[batch, inner, columns] (+ bias[columns]), such as one a head
  batched(a, b, batch, rows, inner, columns, out, bias = null) {
    expectSizes({ batch, rows, inner, columns });
    expectLength("b", b, batch * inner * columns);
    this.room(this.end + spaced(b.length)).set(b, this.end);
    const from = this.end + spaced(b.length);
    this.compute({ at: this.end, step: columns, panel: PANEL, inner, columns }, a, batch, rows, bias, out, from);
  }

  // Keeps a matrix [inner, columns] in the kernel's memory until `free`. Its Float32Array is not needed afterwards.
  store(matrix, inner, columns) {
    expectSizes({ inner, columns });
    expectLength("the matrix", matrix, inner * columns);
    const panels = Math.ceil(columns / PANEL);
    const size = panels * inner * PANEL;
    const kept = { at: this.end, step: PANEL, panel: inner * PANEL, inner, columns, round: this.round };
    const floats = this.room(this.end + spaced(size)).fill(0, this.end, this.end + size);
    for (let panel = 0, at = this.end; panel < panels; panel++) {
      const first = panel * PANEL;
      const count = Math.min(PANEL, columns - first);
      for (let row = 0; row < inner; row++, at += PANEL) {
        for (let i = 0; i < count; i++) floats[at + i] = matrix[row * columns + first + i];
      }
    }
    this.end += spaced(size);
    return kept;
  }

  // out[rows, columns] = a[rows, inner] @ the stored matrix (+ bias[columns])
  times(a, rows, kept, bias, out) {
    if (kept.round !== this.round) throw new Error("this matrix is not stored here: it was freed, or others keep it");
    expectSizes({ rows });
    this.compute(kept, a, 1, rows, bias, out, this.end);
  }

  // Forgets all stored matrices; their memory is used again.
  free() {
    this.end = 0; // behind the last stored matrix; what a call needs for itself lies after it
    this.round = {}; // of which stored matrices are
  }

  // All floats there are, at least so many. Those of before may be out of date: memory that grows is another array.
  room(count) {
    try {
      return this.kernel.memory(count);
    } catch (error) {
      throw new Error(`no memory for ${Math.ceil(count / 250_000)} MB of matrices`, { cause: error });
    }
  }

  // Copies a and the bias in behind b, and the products out.
  compute({ at, step, panel, inner, columns }, a, batch, rows, bias, out, from) {
    expectLength("a", a, batch * rows * inner);
    expectLength("out", out, batch * rows * columns);
    if (bias) expectLength("the bias", bias, columns);
    if (!out.length) return;
    const added = from + spaced(a.length);
    const result = added + spaced(columns);
    const floats = this.room(result + spaced(out.length));
    floats.set(a, from);
    if (bias) floats.set(bias, added);
    else floats.fill(0, added, added + columns);
    for (let i = 0; i < batch; i++) {
      const [left, right, to] = [from + i * rows * inner, at + i * inner * columns, result + i * rows * columns];
      this.kernel.product(left, right, added, to, rows, inner, columns, step, panel);
    }
    out.set(floats.subarray(result, result + out.length));
  }
}

function compiledKernel({ memory, product }) {
  let floats = new Float32Array(memory.buffer);
  return {
    name: "WebAssembly",
    product,
    memory(count) {
      if (count <= floats.length) return floats;
      memory.grow(Math.ceil((count - floats.length) / PAGE));
      floats = new Float32Array(memory.buffer);
      return floats;
    },
  };
}

function plainKernel() {
  let floats = new Float32Array(PAGE);
  return {
    name: "JavaScript",
    product: (...given) => plainProduct(floats, ...given),
    memory(count) {
      if (count <= floats.length) return floats;
      const before = floats;
      floats = new Float32Array(Math.max(count, 2 * before.length));
      floats.set(before);
      return floats;
    },
  };
}

// As in `products.wat`, but one row and four columns at a time: four sums stay in registers. They are sums of doubles.
function plainProduct(floats, a, b, bias, c, rows, inner, columns, step, panel) {
  for (let column = 4 * (Math.ceil(columns / 4) - 1); column >= 0; column -= 4) {
    const first = b + Math.floor(column / PANEL) * panel + (column % PANEL);
    const added = bias + column;
    let left = a;
    for (let to = c + column; to < c + rows * columns; to += columns) {
      let s0 = floats[added];
      let s1 = floats[added + 1];
      let s2 = floats[added + 2];
      let s3 = floats[added + 3];
      const end = left + inner;
      for (let right = first; left < end; left++, right += step) {
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

// So many floats and the eight that have to be there behind them, up to where the next matrix is aligned.
function spaced(count) {
  return (Math.ceil(count / PANEL) + 1) * PANEL;
}

function expectSizes(sizes) {
  for (const [name, size] of Object.entries(sizes)) {
    if (!Number.isInteger(size) || size < 0) throw new Error(`${name} is ${size}; it has to be 0, 1, 2, ...`);
  }
}

function expectLength(name, array, length) {
  if (array?.length === length) return;
  throw new Error(`${name} holds ${array?.length ?? "no"} numbers; it has to hold ${length}`);
}
