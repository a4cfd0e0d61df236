// The heads of a page that stores only the strongest keys of each query, and the total weight of the other keys.

const MAX_SHEET_CELLS = 32e6; // of all heads in a sheet

/** The strongest keys of each query of the heads of one part, decoded when a head is first read. */
export class TopKeys {
  /** @type {Map<number, ReturnType<TopKeys["load"]>>} */
  heads = new Map();
  poolSize = 1;

  /**
   * @param {import("../documents.js").MapsPart} part
   * @param {(stored: import("../documents.js").HeadCodes) => Promise<Uint8Array>} unpacked gives the bytes of a head
   */
  constructor({ rows, columns, head_codes, top }, unpacked) {
    this.rows = rows;
    this.columns = columns;
    this.headCodes = head_codes;
    this.top = top ?? 0;
    this.unpacked = unpacked;
    while ((rows.length * columns.length * head_codes.length) / this.poolSize ** 2 > MAX_SHEET_CELLS)
      this.poolSize *= 2;
  }

  /** @param {number} at */
  head(at) {
    const head = this.heads.get(at) ?? this.load(at);
    this.heads.set(at, head);
    return head;
  }

  /** @param {number} at */
  async load(at) {
    const bytes = (await this.unpacked(this.headCodes[at])).slice(); // at an even offset
    const count = this.rows.length * this.top;
    const Numbers = this.columns.length <= 2 ** 16 ? Uint16Array : Uint32Array;
    const ends = count * Numbers.BYTES_PER_ELEMENT;
    const rest = Float32Array.from(bytes.subarray(ends + count), (code) => (code / 255) ** 2);
    return { columns: new Numbers(bytes.buffer, 0, count), codes: bytes.subarray(ends, ends + count), rest };
  }

  /**
   * Return the codes of a range in blocks: 0 where nothing is known.
   * @param {number} at
   * @param {import("../types.js").Range} where
   */
  async codes(at, { rows: [top, bottom], columns: [left, right], poolSize }) {
    const { columns, codes } = await this.head(at);
    const colCount = Math.ceil((right - left) / poolSize);
    const blocks = new Uint8Array(Math.ceil((bottom - top) / poolSize) * colCount);
    for (let row = top; row < bottom; row++) {
      const start = Math.floor((row - top) / poolSize) * colCount;
      for (let i = row * this.top; i < (row + 1) * this.top; i++) {
        if (columns[i] < left || columns[i] >= right) continue;
        const cell = start + Math.floor((columns[i] - left) / poolSize);
        blocks[cell] = Math.max(blocks[cell], codes[i]);
      }
    }
    return blocks;
  }
}
