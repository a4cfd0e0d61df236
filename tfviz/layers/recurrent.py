"""Recurrence: a state that is carried from word to word, by a cell that is the same at every word."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import what
from tfviz.layers import sizes
from tfviz.shapes import Bool, Float

State = tuple[Tensor, ...]  # first the hidden state, batch hidden; an LSTM adds its memory, of the same shape


class RNN(nn.Module):
    """A simple recurrent cell, h' = tanh(W x + U h + b) (Elman 1990, figure 2).

    Elman's units are logistic; tanh, which is centred on 0, has become the custom.

    Args:
        dim: width of the input.
        hidden: width of the state.

    >>> cell, x = RNN(dim=2, hidden=3), torch.zeros(5, 2)
    >>> (state,) = cell(x, cell.start(x))
    >>> state.shape
    torch.Size([5, 3])
    """

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        bounds.affordable(dim=dim, hidden=hidden)
        bounds.affordable(hidden=hidden, rows=4 * hidden)
        self.hidden = hidden
        self.of_input = nn.Linear(dim, hidden)
        self.of_state = nn.Linear(hidden, hidden, bias=False)

    def start(self, x: Float[Tensor, "batch ..."]) -> State:
        """The state before the first word: zeros, of the batch, type and device of `x`."""
        return (x.new_zeros(len(x), self.hidden),)

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """The state after the word `x`."""
        sizes.words(self.of_input, self.hidden, x, state, 1)
        (hidden,) = state
        return (torch.tanh(self.of_input(x) + self.of_state(hidden)),)


class LSTM(nn.Module):
    """A cell whose memory c is changed by gates only (Hochreiter & Schmidhuber 1997; forget gate: Gers et al. 2000).

        i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b), each with weights of its own
        c' = f c + i g
        h' = o tanh(c')

    Each gate is a module, so that it can be seen at work. The forget gate's bias starts at 1: at first, more is kept
    than lost (Gers et al. 2000 start it positive, Jozefowicz et al. 2015 measure that 1 does well).

    Args:
        dim: width of the input.
        hidden: width of the state and of the memory.
    """

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        bounds.affordable(dim=dim, hidden=hidden)
        bounds.affordable(hidden=hidden, rows=4 * hidden)
        self.hidden = hidden
        self.of_input = nn.Linear(dim, 4 * hidden)  # rows in the order of torch.nn.LSTM: i, f, g, o
        self.of_state = nn.Linear(hidden, 4 * hidden, bias=False)
        self.input_gate, self.forget_gate, self.output_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Sigmoid()
        self.candidate = nn.Tanh()
        nn.init.ones_(self.of_input.bias[hidden : 2 * hidden])

    def start(self, x: Float[Tensor, "batch ..."]) -> State:
        """Hidden state and memory before the first word: zeros, of the batch, type and device of `x`."""
        return x.new_zeros(len(x), self.hidden), x.new_zeros(len(x), self.hidden)

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """Hidden state and memory after the word `x`."""
        sizes.words(self.of_input, self.hidden, x, state, 2)
        hidden, memory = state
        write, keep, content, show = (self.of_input(x) + self.of_state(hidden)).chunk(4, dim=-1)
        memory = self.forget_gate(keep) * memory + self.input_gate(write) * self.candidate(content)
        return self.output_gate(show) * torch.tanh(memory), memory


class Recurrent(nn.Module):
    """A cell along a sequence: several layers, each reading the states of the one below, in one direction or both.

    `cells`, like the states, stand in the order layer by layer, forward before backward (Schuster & Paliwal 1997).

    Args:
        cell: `RNN` or `LSTM`.
        dim: width of the input.
        hidden: width of each cell's state.
        bidirectional: a second cell in each layer reads from the right; the output holds the states of both.
        dropout: share of the input of every layer but the first set to zero in training.

    >>> both = Recurrent(LSTM, dim=3, hidden=5, layers=2, bidirectional=True)
    >>> outputs, states = both(torch.zeros(2, 7, 3))
    >>> outputs.shape, len(states), states[0][0].shape
    (torch.Size([2, 7, 10]), 4, torch.Size([2, 5]))
    """

    def __init__(
        self,
        cell: type[RNN] | type[LSTM],
        dim: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        bounds.at_least(1, layers=layers, dim=dim, hidden=hidden)
        bounds.affordable(layers=layers, weights=max(hidden * hidden, 10_000))
        bounds.between(0, 1, dropout=dropout)
        self.directions = 2 if bidirectional else 1
        widths = [dim] + (layers - 1) * [self.directions * hidden]
        self.cells = nn.ModuleList(cell(width, hidden) for width in widths for _ in range(self.directions))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch position dim"],
        states: Sequence[State] = (),
        mask: Bool[Tensor, "batch position"] | None = None,
    ) -> tuple[Float[Tensor, "batch position out"], list[State]]:
        """The hidden states of the last layer at every position, and each cell's state after its last word.

        Args:
            states: where each cell starts, one for each of `cells`; zeros if none are given.
            mask: True where a word stands, False at padding, which leaves the state as it was: there the output
                repeats the state before it.
        """
        self._check(x, states, mask)
        starts = list(states) or [cell.start(x) for cell in self.cells]  # type: ignore[operator]
        numbers, ends = range(len(self.cells)), []
        for first in numbers[:: self.directions]:
            x = self.dropout(x) if first else x
            layer = numbers[first : first + self.directions]
            read = [_along(self.cells[n], x, starts[n], mask, backward=n > first) for n in layer]
            x = torch.cat([hidden for hidden, _ in read], dim=-1)
            ends += [state for _, state in read]
        return x, ends

    def _check(self, x: Tensor, states: Sequence[State], mask: Tensor | None) -> None:
        if torch.compiler.is_compiling():
            return
        sizes.batch(self.cells[0].of_input.in_features, self.cells[0].of_input, x=x)  # type: ignore[arg-type, union-attr]
        if not x.shape[1]:
            raise ValueError("the text is empty; a recurrent network needs at least one position")
        if not isinstance(states, list | tuple):
            raise TypeError(f"states are {what(states)}; give one for each of {len(self.cells)} cells, or none")
        if states and len(states) != len(self.cells):
            raise ValueError(
                f"{len(states)} states were given for {len(self.cells)} cells; "
                "give one for each layer and direction, forward before backward, or none"
            )
        for cell, state in zip(self.cells, states):
            new = cell.start(x)  # type: ignore[operator]
            if not isinstance(state, tuple | list) or len(state) != len(new) or not all(map(_continues, state, new)):
                asked = ", ".join(str(list(one.shape)) for one in new)
                raise ValueError(f"a state is {what(state)}; it must be a tuple of {asked} here, as cell.start(x)")
        if mask is not None and (not isinstance(mask, Tensor) or mask.shape != x.shape[:2] or mask.dtype != torch.bool):
            kind = f"{mask.dtype} {list(mask.shape)}" if isinstance(mask, Tensor) else what(mask)
            raise ValueError(f"the mask is {kind}; it must be bool {list(x.shape[:2])}, batch position, as the words")


def _continues(kept: object, new: Tensor) -> bool:
    """Whether it can stand where a new state stands; a tape may have grown."""
    return sizes.alike(kept, new, 0, -1)


def _along(
    cell: nn.Module, x: Tensor, state: State, mask: Tensor | None, backward: bool
) -> tuple[Float[Tensor, "batch position hidden"], State]:
    """One cell over all positions; the outputs stand in the order of the text, whichever way it was read."""
    real = [None] * x.shape[1] if mask is None else mask.unsqueeze(-1).unbind(1)
    steps = list(zip(x.unbind(1), real))
    outputs = []
    for word, is_word in reversed(steps) if backward else steps:
        after = cell(word, state)
        state = after if is_word is None else tuple(torch.where(is_word, *pair) for pair in zip(after, state))
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backward else outputs, dim=1), state
