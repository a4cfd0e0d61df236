// The shapes of what a program holds, as `tfviz/portable` writes it.

/** A number, the name of a length, or an operator and what it is applied to. */
export type Size = number | string | Term;
export interface Term extends Array<Size> {
  0: string;
}

/** Lengths by name. */
export type Lengths = Record<string, number>;
