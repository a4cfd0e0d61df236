// Shapes that modules share, for JSDoc.

// The engine, as `tfviz/portable` writes its programs.

/** Numbers in row-major order. */
export interface Tensor {
  shape: number[];
  dtype: "float32" | "int64" | "bool";
  data: Float32Array | Int32Array | Uint8Array;
}

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
