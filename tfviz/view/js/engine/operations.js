// All operations that a program may use, by aten's names without "aten." and ".default". Each is called as
// `operation(machine, ...all arguments of its schema)` and gives a tensor, or several.

import { ARRANGING } from "./arranging.js";
import { ATTENTION } from "./attention.js";
import { PAIRS } from "./elementwise.js";
import { FUNCTIONS } from "./functions.js";
import { INDEXING } from "./indexing.js";
import { LAYERS } from "./layers.js";
import { MAKING } from "./creation.js";
import { MULTIPLYING } from "./matmul.js";
import { MEASURING } from "./norms.js";
import { PIECES } from "./slicing.js";
import { RECURRENT } from "./recurrent.js";
import { REDUCING } from "./reducing.js";
import { SCANNING } from "./scanning.js";
import { SHAPING } from "./shaping.js";
import { WINDOWS } from "./convolution.js";
import { isTensor, formatShape } from "./tensors.js";

/** @type {Record<string, (machine: any, ...given: any[]) => any>[]} */
const TABLES = [ARRANGING, ATTENTION, PAIRS, FUNCTIONS, INDEXING, LAYERS, MAKING, MULTIPLYING, PIECES];
TABLES.push(MEASURING, RECURRENT, REDUCING, SCANNING, SHAPING, WINDOWS);

// An error names the operation, and the shapes of the tensors that it was given.
function withContext(name, operation) {
  return (machine, ...given) => {
    try {
      return operation(machine, ...given);
    } catch (error) {
      const shapes = given
        .flat()
        .filter(isTensor)
        .map((tensor) => formatShape(tensor.shape));
      throw new Error(`${name} of ${shapes.join(", ") || "no tensors"}: ${error.message}`, { cause: error });
    }
  };
}

export const OPERATIONS = Object.fromEntries(
  TABLES.flatMap((table) => Object.entries(table)).map(([name, operation]) => [name, withContext(name, operation)]),
);
