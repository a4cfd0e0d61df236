// Shapes that modules share, for JSDoc.

// The engine, as `tfviz/portable` writes its programs.

/** Numbers in row-major order. */
export interface Tensor {
  shape: number[];
  dtype: "float32" | "int64" | "bool";
  data: Float32Array | Int32Array | Uint8Array;
}

export type Dtype = Tensor["dtype"];

/** What an operation works with: memory, matrix products, and the step of the program that it is. */
export interface Machine {
  products: any;
  /** The step at hand; null where an operation is called by itself. */
  node: { dtype?: Dtype[]; pattern?: string } | null;
  empty(shape: number[], dtype?: Dtype): Tensor;
  /** A weight as the products keep it, or null. */
  kept(weight: Tensor): any;
  /** Attention weights go by, to be seen and changed. */
  pattern(weights: Tensor, allowed?: Tensor | null): Tensor;
  /** Take back the memory of tensors that nobody needs any more. */
  done?(...tensors: Tensor[]): void;
}

/** An operation of aten, with all arguments of its schema in order; it gives a tensor, or several. */
export type Operation = (machine: Machine, ...args: any[]) => any;

/** A number, the name of a length, or an operator and what it is applied to. */
export type Size = number | string | Term;
export interface Term extends Array<Size> {
  0: string;
}

/** Lengths by name. */
export type Lengths = Record<string, number>;

/** What a reader changes of an attention; see `engine/edits.js`. */
export interface Edit {
  site: string;
  head?: number | null;
  do: "zero" | "even" | "hide" | "pin";
  cells?: [query: number | null, key: number | null][];
  to?: number;
}

/** The other end of an engine: a worker, the page itself, or a kernel. */
export interface Port {
  post(message: any): void;
  hear(listener: (message: any) => void): void;
  close(): void;
}

/** Text to ids and back, exactly as in Python. */
export interface Vocabulary {
  size: number;
  /** The ids of pad, unknown, begin, end, classification, separator and mask, of those that there are. */
  special: Record<string, number>;
  encode(text: string): number[];
  decode(ids: Iterable<number>): string;
  /** One visible sign for each id. */
  words(ids: Iterable<number>): string[];
}

// Pictures.

/** Pixels, or cells [row, column]. */
export type Point = number[];

/** Left, top, width and height, in pixels. */
export type Box = number[];

/** The part of a grid that is shown, in cells. */
export interface Window {
  x: number;
  y: number;
  wide: number;
  tall: number;
}

/** The colours of a theme by what they are for (`base/spec.json`). */
export interface Inks {
  ink: string;
  soft: string;
  line: string;
  hatch: string;
  heads: string[];
  ramp: string;
  low: string;
  high: string;
  focus: string;
  mark: string;
  faint: string;
}

/** What a view has: a canvas or SVG pen draws it. */
export interface Drawing {
  width: number;
  height: number;
  draw(pen: any): void;
}

/** What the reader has chosen, in a page or in a widget. */
export interface Choices {
  get(name: string): any;
  set(changes: Record<string, any>): void;
  on(listener: () => void): () => void;
}

/** What a view calls back when the reader points, locks or leaves. */
export interface Handlers {
  lock(side: "rows" | "cols", index: number): void;
  leave(): void;
  says(text: string): void;
}

/** A view as Python describes it (`tfviz/view/page`); each kind has members of its own. */
export interface Described {
  kind: string;
  title: string;
  note: string;
  parts: any[];
  state: Record<string, any>;
  [member: string]: any;
}
