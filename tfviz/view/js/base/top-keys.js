// Heads of which the page has each query's strongest keys only, and what the others hold together.

const CELLS_SHOWN = 32e6; // of all heads of a part, that a sheet holds

export class TopKeys {
  heads = new Map();
  block = 1;

  // part: what `tfviz.view.page.strongest` describes; unpacked: from a piece's place to its bytes
  constructor({ rows, cols, blobs, top }, unpacked) {
    this.rows = rows;
    this.cols = cols;
    this.blobs = blobs;
    this.top = top;
    this.unpacked = unpacked;
    while ((rows.length * cols.length * blobs.length) / this.block ** 2 > CELLS_SHOWN) this.block *= 2;
  }

  head(at) {
    if (!this.heads.has(at)) this.heads.set(at, this.read(at));
    return this.heads.get(at);
  }

  async read(at) {
    const bytes = (await this.unpacked(this.blobs[at])).slice(); // at an even place
    const count = this.rows.length * this.top;
    const Numbers = this.cols.length <= 2 ** 16 ? Uint16Array : Uint32Array;
    const ends = count * Numbers.BYTES_PER_ELEMENT;
    const rest = Float32Array.from(bytes.subarray(ends + count), (code) => (code / 255) ** 2);
    return { places: new Numbers(bytes.buffer, 0, count), codes: bytes.subarray(ends, ends + count), rest };
  }

  // The codes of a range in blocks: 0 where nothing is known.
  async codes(at, { rows: [top, bottom], cols: [left, right], block }) {
    const { places, codes } = await this.head(at);
    const wide = Math.ceil((right - left) / block);
    const made = new Uint8Array(Math.ceil((bottom - top) / block) * wide);
    for (let row = top; row < bottom; row++) {
      const start = Math.floor((row - top) / block) * wide;
      for (let i = row * this.top; i < (row + 1) * this.top; i++) {
        if (places[i] < left || places[i] >= right) continue;
        const cell = start + Math.floor((places[i] - left) / block);
        made[cell] = Math.max(made[cell], codes[i]);
      }
    }
    return made;
  }
}
