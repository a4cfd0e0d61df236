// Shapes that modules share, for JSDoc.

import type { Machine } from "./engine/machine.js";

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
export type Operation = (machine: Machine, ...args: any[]) => any;

/** Where something lies in the bytes of a document. */
export type Span = [start: number, length: number];

/** A weight as it travels; int8 has a scale for each row. */
export interface WeightSpec {
  shape: number[];
  dtype: Dtype;
  stored: "float32" | "float16" | "int8" | "int32" | "bool";
  at: Span;
  scale?: Span | null;
}

/** An argument of an operation: a value by its number, a size, or a float that JSON lacks, beside plain values. */
export type Argument =
  null | boolean | number | string | Argument[] | { t: number } | { s: Size } | { f: "inf" | "-inf" | "nan" };

export interface ProgramNode {
  op: string;
  args: Argument[];
  out: Size[][];
  dtype: Dtype[];
  /** The site of the attention that this step is. */
  pattern?: string;
}

/** A program; its values are numbered: inputs, weights, then the results of the nodes in order. */
export interface ProgramSpec {
  inputs: { name: string; shape: (number | string)[]; dtype: Dtype }[];
  weights: WeightSpec[];
  nodes: ProgramNode[];
  outputs: { name: string; t: number }[];
  lengths: Record<string, [least: number, most: number | null]>;
}

/** An attention that was watched: weights, and 1 where the query may look at the key. */
export interface Pattern {
  shape: number[];
  data: Float32Array;
  open: Uint8Array;
}

export interface RunOptions {
  edits?: Edit[];
  /** Which sites come back: all, or these. */
  watch?: boolean | string[];
  /** Outputs whose names begin so ("keys" for "keys.0") stay in the engine, as inputs of the next run. */
  carry?: string[];
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
  do: "zero" | "even" | "hide" | "pin";
  cells?: [query: number | null, key: number | null][];
  to?: number;
}

/** What an engine's text makes in a worker or in the page. */
export type EngineModule = () => { serve(endpoint: Endpoint): void };

/** Where requests arrive and replies leave: a worker's `self`, or an object of this form. */
export interface Endpoint {
  onmessage: ((event: { data: any }) => void) | null;
  postMessage(message: any, transfer?: Transferable[]): void;
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
