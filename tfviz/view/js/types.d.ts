// Types that modules share, for JSDoc.

import type { ByteRange } from "./documents.js";
import type { Interpreter } from "./engine/interpreter.js";

// The engine, and programs as `tfviz/portable` writes them.

interface Arrays {
  float32: Float32Array;
  int64: Int32Array;
  bool: Uint8Array;
}
export type Dtype = keyof Arrays;
export type Numbers = Arrays[Dtype];

/** Numbers in row-major order. */
export interface Tensor<D extends Dtype = Dtype> {
  shape: number[];
  dtype: D;
  data: Arrays[D];
}

/** An operation of aten, with all arguments of its schema in order; it returns a tensor, or several. */
export type Operation = (interpreter: Interpreter, ...args: any[]) => any;

/** A weight as it travels; int8 has a scale for each row. */
export interface WeightSpec {
  shape: number[];
  dtype: Dtype;
  stored: "float32" | "float16" | "int8" | "int32" | "bool";
  byte_range: ByteRange;
  scale?: ByteRange | null;
}

/** An argument of an operation: a value by its number, a size, or a float that JSON lacks, beside plain values. */
export type Argument =
  | null
  | boolean
  | number
  | string
  | Argument[]
  | { value: number }
  | { size: Size }
  | { float: "inf" | "-inf" | "nan" };

export interface ProgramNode {
  op: string;
  args: Argument[];
  out: Size[][];
  dtype: Dtype[];
  /** The site of the attention that this step is. */
  site?: string;
}

/** A program; its values are numbered: inputs, weights, then the results of the nodes in order. */
export interface ProgramSpec {
  inputs: { name: string; shape: (number | string)[]; dtype: Dtype }[];
  weights: WeightSpec[];
  nodes: ProgramNode[];
  outputs: { name: string; value: number }[];
  lengths: Record<string, [min: number, max: number | null]>;
}

/** A captured attention: weights, and 1 where the query may look at the key. */
export interface Pattern {
  shape: number[];
  data: Float32Array;
  allowed: Uint8Array;
}

export interface RunOptions {
  edits?: Edit[];
  /** Which sites come back: all, or these. */
  capture?: boolean | string[];
  /** Outputs whose names begin so ("keys" for "keys.0") stay in the engine, as inputs of the next run. */
  cache?: string[];
}

/** A number, the name of a length, or an operator and what it is applied to. */
export type Size = number | string | Term;
export interface Term extends Array<Size> {
  0: string;
}

/** Lengths by name. */
export type Lengths = Record<string, number>;

/** A change of an attention; see `engine/edits.js`. */
export interface Edit {
  site: string;
  head?: number | null;
  kind: "zero" | "uniform" | "hide" | "pin";
  cells?: [query: number | null, key: number | null][];
  weight?: number;
}

/** The factory in an engine's bundle; its `serve` attaches the engine to a worker, or to the page. */
export type EngineModule = () => { serve(endpoint: Endpoint): void };

/** Where requests arrive and replies leave: a worker's `self`, or an object of this form. */
export interface Endpoint {
  onmessage: ((event: { data: any }) => void) | null;
  postMessage(message: any, transfer?: Transferable[]): void;
}

/** The other end of an engine: a worker, the page itself, or a kernel. */
export interface Port {
  post(message: any): void;
  listen(listener: (message: any) => void): void;
  close(): void;
}

/** Text to ids and back, exactly as in Python. */
export interface Tokenizer {
  size: number;
  /** The ids of pad, unk, bos, eos, cls, sep and mask, of those that there are. */
  special: Record<string, number>;
  encode(text: string): number[];
  decode(ids: Iterable<number>): string;
  /** One visible sign for each id. */
  tokens(ids: Iterable<number>): string[];
  /** How tokens become a text, of subwords. */
  joiner?: { kind: string };
  /** Encode texts in Python; resolves to whether any was new. */
  preloadEncodings?(texts: string[]): Promise<boolean>;
}

// Elements.

type Attribute = string | number | boolean | null | undefined;

/** A property as it may be set: a number stands for its text, and a style is given as text. */
type Settable<Value> = Value extends string ? Value | number : Value extends CSSStyleDeclaration ? string : Value;

/** What `h` makes an element with: its properties and listeners, and attributes. */
export type Properties<E extends Element> = { [Name in keyof E]?: Settable<E[Name]> | null } & {
  class?: string;
  charset?: string;
  [name: `aria-${string}` | `data-${string}`]: Attribute;
};

// Pictures.

/** Pixels, or cells [row, column]. */
export type Point = number[];

/** A cell, [row, column]; null for a coordinate that lies on the other axis's words. */
export type Cell = [row: number | null, col: number | null];

/** Left, top, width and height, in pixels. */
export type Box = number[];

/** The part of a grid that is shown, in cells. */
export interface Window {
  x: number;
  y: number;
  width: number;
  height: number;
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
  prediction: string;
}

/** A drawing of known size, which a canvas or an SVG pen draws. */
export interface Drawing {
  width: number;
  height: number;
  draw(pen: Pen): void;
}

/** Draws on a canvas or makes SVG; see `base/pen.js`. */
export interface Pen {
  /** Pixels of the device for one of the page. */
  ratio: number;
  /** Draw with the origin moved, from where it is now. */
  drawAt(x: number, y: number, draw: () => void): void;
  rect(x: number, y: number, width: number, height: number, style?: RectStyle): void;
  dot(x: number, y: number, radius: number, style: { fill: string; alpha?: number }): void;
  text(x: number, y: number, string: string, style: TextStyle): void;
  line(x1: number, y1: number, x2: number, y2: number, style: LineStyle): void;
  image(data: ImageData, x: number, y: number): void;
}

export interface RectStyle {
  fill?: string | null;
  stroke?: string | null;
  lineWidth?: number;
  radius?: number;
  alpha?: number;
}

export interface TextStyle {
  fill: string;
  size?: number;
  align?: "left" | "center" | "right";
  bold?: boolean;
  /** Rotated by a quarter, to read from below. */
  rotated?: boolean;
}

export interface LineStyle {
  stroke: string;
  lineWidth?: number;
  alpha?: number;
  /** How far it leaves and arrives level, as a share of its width. */
  bend?: number;
}

/** Queries or keys. */
export type Side = "rows" | "columns";

/** The numbers of one heatmap, all of them or in parts of different resolution. */
export type AnyGrid = import("./base/grid.js").Grid | import("./base/tiled-grid.js").TiledGrid;

/** A grid with its name, and the names of its rows and columns. */
export interface GridPanel<G = AnyGrid> {
  name: string;
  grid: G;
  axes?: string[];
  /** what is written into each cell */
  texts?: string[][];
  /** whether cells show their numbers */
  numbered?: boolean;
}

/** A range of rows and columns of a head, in blocks of cells. */
export interface Range {
  rows: [from: number, to: number];
  columns: [from: number, to: number];
  poolSize: number;
}

/** What a reader has chosen, in a page or in a widget. */
export interface Choices<State> {
  get<Name extends keyof State>(name: Name): State[Name];
  set(changes: Partial<State>): void;
  on(listener: () => void): () => void;
}

/** The rows and columns that a reader has locked. */
export interface Locked {
  rows: number[];
  columns: number[];
}

/** What a view calls back when the reader points, locks or leaves. */
export interface Handlers {
  lock(side: Side, index: number): void;
  leave(): void;
  announce(text: string): void;
}

/** Options that the host, a page or a widget, gives to a view. */
export interface ViewOptions {
  /** The view as a page of its own. */
  page?(): Promise<Blob>;
  /** What registers the bundle of its worker. */
  worker?: EngineModule;
  /** Whether the page's address can hold what is chosen; else a kernel holds it. */
  addressed?: boolean;
  /** Label of the export buttons. */
  saveCaption?: string;
  /** Draw the map larger than the default. */
  large?: boolean;
}
