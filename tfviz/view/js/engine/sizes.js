// Sizes that depend on the lengths of the inputs: a number, a name, or [operator, size, ...].

/** @type {Record<string, (...parts: number[]) => number>} */
const OPERATORS = {
  "+": (...parts) => parts.reduce((sum, part) => sum + part),
  "*": (...parts) => parts.reduce((product, part) => product * part),
  "-": (left, right) => left - right,
  "//": (left, right) => Math.floor(left / right),
  "%": (left, right) => left - right * Math.floor(left / right),
  max: Math.max,
  min: Math.min,
};

/** @type {(size: Size, lengths: Lengths) => number} */
export function sized(size, lengths) {
  if (typeof size === "number") return size;
  if (typeof size === "string") return lengths[size];
  return OPERATORS[size[0]](...size.slice(1).map((part) => sized(part, lengths)));
}

/**
 * The lengths that the inputs have.
 * @param {{ inputs: { name: string, shape: (number | string)[] }[], lengths: Record<string, [number, number | null]> }} described
 * @param {{ shape: number[] }[]} given
 * @returns {Lengths}
 * @throws {Error} where an input does not fit
 */
export function bind(described, given) {
  /** @type {Lengths} */
  const lengths = {};
  described.inputs.forEach(({ name, shape }, place) => {
    const actual = given[place].shape;
    const fits =
      actual.length === shape.length &&
      shape.every((size, axis) => {
        if (typeof size === "number") return size === actual[axis];
        lengths[size] ??= actual[axis];
        return lengths[size] === actual[axis];
      });
    if (!fits) throw new Error(`${name} has the shape [${actual}]; this program was made for [${shape}]`);
  });
  for (const [name, [least, most]] of Object.entries(described.lengths))
    if (lengths[name] < least || (most !== null && lengths[name] > most))
      throw new Error(
        `there are ${lengths[name]} ${name}; this model takes ${least} to ${most ?? "any number of"} ${name}`,
      );
  return lengths;
}
