// All operations that a program may use, by their names in aten without "aten." and ".default". Each is called as
// `operation(interpreter, ...all arguments of its schema)` and returns a tensor, or several.

/** @import { Operation } from "../types.js" */

import { REARRANGING } from "./rearranging.js";
import { ATTENTION } from "./attention.js";
import { BINARY } from "./binary.js";
import { CONVOLUTION } from "./convolution.js";
import { CREATION } from "./creation.js";
import { INDEXING } from "./indexing.js";
import { MATMUL } from "./matmul.js";
import { NORMALIZATION } from "./normalization.js";
import { RECURRENT } from "./recurrent.js";
import { REDUCING } from "./reducing.js";
import { SCANNING } from "./scanning.js";
import { RESHAPING } from "./reshaping.js";
import { SLICING } from "./slicing.js";
import { UNARY } from "./unary.js";
import { formatShape } from "./shape-utils.js";
import { isTensor } from "./tensors.js";

const TABLES = [
  REARRANGING,
  ATTENTION,
  BINARY,
  CONVOLUTION,
  CREATION,
  INDEXING,
  MATMUL,
  NORMALIZATION,
  RECURRENT,
  REDUCING,
  SCANNING,
  RESHAPING,
  SLICING,
  UNARY,
];

/**
 * Add the names of the operation and the shapes of its tensors to errors.
 * @type {(name: string, operation: Operation) => Operation}
 */
function withContext(name, operation) {
  return (interpreter, ...args) => {
    try {
      return operation(interpreter, ...args);
    } catch (error) {
      const shapes = args
        .flat()
        .filter(isTensor)
        .map(({ shape }) => formatShape(shape));
      const { message } = /** @type {Error} */ (error);
      throw new Error(`${name} of ${shapes.join(", ") || "no tensors"}: ${message}`, { cause: error });
    }
  };
}

/** @type {Record<string, Operation>} */
export const SUPPORTED_OPERATORS = Object.fromEntries(
  TABLES.flatMap((table) => Object.entries(table)).map(([name, operation]) => [name, withContext(name, operation)]),
);
