// Sums of products that letters tell: torch.einsum.

import { expanded, gathered, permuted, reshaped, formatShape, sizeOf, stridesOf } from "./tensors.js";
import { matmul } from "./matmul.js";
import { REDUCING } from "./reducing.js";

// The letters of each operand and of the result; the axes of "..." get capital signs of their own.
function lettersOf(equation, tensors) {
  const [left, right] = equation.replaceAll(" ", "").split("->");
  const wide = (letters, tensor) => {
    const more = tensor ? tensor.shape.length - letters.replace("...", "").length : most;
    return letters.replace(
      "...",
      Array.from({ length: more }, (_, i) => String.fromCharCode(512 + most - more + i)).join(""),
    );
  };
  const lefts = left.split(",");
  if (lefts.length !== tensors.length)
    throw new Error(`${equation} is about ${lefts.length} tensors, not ${tensors.length}`);
  const spare = lefts.map((letters, i) => (letters.includes("...") ? tensors[i].shape.length - letters.length + 3 : 0));
  const most = Math.max(...spare);
  const terms = lefts.map((letters, i) => wide(letters, tensors[i]));
  const all = [...terms.join("")];
  const alone = all.filter((letter) => all.indexOf(letter) === all.lastIndexOf(letter)).sort();
  return { terms, result: right === undefined ? alone.join("") : wide(right) };
}

// A letter twice in one term stands for the diagonal of these axes.
function withoutTwins(machine, tensor, letters) {
  const own = [...new Set(letters)];
  if (letters.length !== tensor.shape.length)
    throw new Error(`${letters} does not name the axes of ${formatShape(tensor.shape)}`);
  const strides = stridesOf(tensor.shape);
  const steps = own.map((letter) =>
    [...letters].reduce((sum, one, axis) => sum + (one === letter ? strides[axis] : 0), 0),
  );
  const shape = own.map((letter) => tensor.shape[letters.indexOf(letter)]);
  const whole = own.length === letters.length ? tensor : gathered(machine, tensor, shape, steps);
  return { tensor: whole, letters: own };
}

// Letters that nothing asks for any more are summed over.
function summed(machine, { tensor, letters }, wanted) {
  const axes = [...letters.keys()].filter((axis) => !wanted.has(letters[axis]));
  if (axes.length === 0) return { tensor, letters };
  return {
    tensor: REDUCING["sum.dim_IntList"](machine, tensor, axes),
    letters: letters.filter((one) => wanted.has(one)),
  };
}

// Two operands as matrices: letters of both that stay are many matrices, letters of both that go are summed over.
function contracted(machine, one, other, wanted) {
  const lengths = {};
  for (const { tensor, letters } of [one, other]) {
    letters.forEach((letter, axis) => {
      const known = lengths[letter] ?? 1;
      if (known !== 1 && tensor.shape[axis] !== 1 && known !== tensor.shape[axis]) {
        throw new Error(`the letter ${letter} stands for ${known} and for ${tensor.shape[axis]}`);
      }
      lengths[letter] = known === 1 ? tensor.shape[axis] : known;
    });
  }
  const common = one.letters.filter((letter) => other.letters.includes(letter));
  const many = common.filter((letter) => wanted.has(letter));
  const gone = common.filter((letter) => !wanted.has(letter));
  const left = one.letters.filter((letter) => !common.includes(letter));
  const right = other.letters.filter((letter) => !common.includes(letter));
  const sizes = (letters) => letters.map((letter) => lengths[letter]);
  const matrices = ({ tensor, letters }, ...groups) => {
    const order = groups.flat().map((letter) => letters.indexOf(letter));
    const whole = expanded(machine, permuted(machine, tensor, order), sizes(groups.flat()));
    return reshaped(
      whole,
      groups.map((group) => sizeOf(sizes(group))),
    );
  };
  const made = matmul(machine, matrices(one, many, left, gone), matrices(other, many, gone, right));
  const letters = [...many, ...left, ...right];
  return { tensor: reshaped(made, sizes(letters)), letters };
}

function einsum(machine, equation, tensors) {
  const { terms, result } = lettersOf(equation, tensors);
  const operands = terms.map((letters, i) => withoutTwins(machine, tensors[i], letters));
  const wantedAfter = (i) => new Set([...result, ...operands.slice(i + 1).flatMap(({ letters }) => letters)]);
  let made = summed(machine, operands[0], wantedAfter(0));
  for (let i = 1; i < operands.length; i++) {
    const wanted = wantedAfter(i);
    const next = summed(machine, operands[i], new Set([...wanted, ...made.letters]));
    made = contracted(machine, summed(machine, made, new Set([...wanted, ...next.letters])), next, wanted);
  }
  return permuted(
    machine,
    made.tensor,
    [...result].map((letter) => made.letters.indexOf(letter)),
  );
}

export const SUMS = { einsum };
