"""Recurrent networks: RNN and LSTM cells, and stacks of recurrent layers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers.cache import check_entries
from tfviz.shapes import Bool, Float

State = tuple[Tensor, ...]  # the hidden state, [batch, hidden]; in an LSTM also the memory, of the same shape


class Cell(nn.Module):
    """Base class of recurrent cells, with linear layers for the input and the state; the initial state is zero.

    Args:
        dim: width of the input.
        hidden: width of the state.
    """

    gates = 1  # number of gate pre-activations, each [batch, hidden]
    state_size = 1  # number of tensors in the state

    def __init__(self, dim: int, hidden: int):
        super().__init__()
        checks.fits_memory(dim=dim, hidden=hidden)
        checks.fits_memory(hidden=hidden, rows=4 * hidden)
        self.hidden = hidden
        self.of_input = nn.Linear(dim, self.gates * hidden)
        self.of_state = nn.Linear(hidden, self.gates * hidden, bias=False)

    def initial_state(self, x: Float[Tensor, "batch ..."]) -> State:
        """Return the state before the first token: zeros, with the batch size, dtype and device of `x`."""
        return tuple(x.new_zeros(len(x), self.hidden) for _ in range(self.state_size))

    def preactivations(self, x: Float[Tensor, "batch dim"], hidden: Float[Tensor, "batch hidden"]) -> Tensor:
        """Return the pre-activations of the gates, W x + U h + b, `[batch, gates * hidden]`.

        Raises:
            ValueError: `x` and `hidden` have different batch sizes.
        """
        if x.shape[0] != hidden.shape[0]:
            raise ValueError(
                f"x has {x.shape[0]} texts, the state has {hidden.shape[0]}; begin with cell.initial_state(x)"
            )
        return self.of_input(x) + self.of_state(hidden)


class RNN(Cell):
    """A simple recurrent cell, h' = tanh(W x + U h + b) (Elman 1990, figure 2).

    Elman's units are logistic; tanh, which is centred on 0, is now usual.

    >>> cell, x = RNN(dim=2, hidden=3), torch.zeros(5, 2)
    >>> (state,) = cell(x, cell.initial_state(x))
    >>> state.shape
    torch.Size([5, 3])
    """

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """Return the state after the token with the vector `x`."""
        (hidden,) = state
        return (torch.tanh(self.preactivations(x, hidden)),)


class LSTM(Cell):
    """A long short-term memory cell (Hochreiter & Schmidhuber 1997), with a forget gate (Gers et al. 2000).

        i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b), each with weights of its own
        c' = f c + i g
        h' = o tanh(c')

    Each gate is a module, so that it can be captured. The bias of the forget gate is initialized to 1, so that an
    untrained cell mostly keeps its memory (Gers et al. 2000; Jozefowicz et al. 2015 find that 1 works well).
    """

    gates, state_size = 4, 2

    def __init__(self, dim: int, hidden: int):
        super().__init__(dim, hidden)  # rows of its weights in the order of torch.nn.LSTM: i, f, g, o
        self.input_gate, self.forget_gate, self.output_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Sigmoid()
        self.candidate = nn.Tanh()
        nn.init.ones_(self.of_input.bias[hidden : 2 * hidden])

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """Return the hidden state and the memory after the token with the vector `x`."""
        hidden, memory = state
        i, f, g, o = self.preactivations(x, hidden).chunk(4, dim=-1)  # each [batch, hidden]
        memory = self.forget_gate(f) * memory + self.input_gate(i) * self.candidate(g)
        return self.output_gate(o) * torch.tanh(memory), memory


class Recurrent(nn.Module):
    """A stack of recurrent layers over a sequence, in one direction or both (Schuster & Paliwal 1997).

    The input of a layer is the hidden states of the layer below. `cells` and states are in the same order: layer by
    layer, forward before backward.

    Args:
        cell: `RNN`, `LSTM`, or another `Cell`.
        dim: width of the input.
        hidden: width of each cell's state.
        layers: number of layers.
        bidirectional: whether each layer has a second cell, which reads from right to left; the output then holds the
            states of both cells.
        dropout: dropout probability of the input of every layer but the first.

    >>> both = Recurrent(LSTM, dim=3, hidden=5, layers=2, bidirectional=True)
    >>> outputs, states = both(torch.zeros(2, 7, 3))
    >>> outputs.shape, len(states), states[0][0].shape
    (torch.Size([2, 7, 10]), 4, torch.Size([2, 5]))
    """

    def __init__(
        self,
        cell: type[Cell],
        dim: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        checks.at_least(1, layers=layers, dim=dim, hidden=hidden)
        checks.fits_memory(layers=layers, weights=max(hidden * hidden, 10_000))
        checks.between(0, 1, dropout=dropout)
        self.directions = 2 if bidirectional else 1
        widths = [dim] + (layers - 1) * [self.directions * hidden]
        self.cells = nn.ModuleList(cell(width, hidden) for width in widths for _ in range(self.directions))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch position dim"],
        states: Sequence[State] | None = None,
        mask: Bool[Tensor, "batch position"] | None = None,
    ) -> tuple[Float[Tensor, "batch position out"], list[State]]:
        """Return the hidden states of the last layer at every position, and the final state of each cell.

        The hidden states are `[batch, position, directions * hidden]`.

        Args:
            x: the input, `[batch, position, dim]`.
            states: the initial state of each of `cells`; by default zeros.
            mask: True at tokens, False at padding, `[batch, position]`. Padding leaves the state unchanged, and the
                output there repeats the previous state.

        Raises:
            ValueError: the text is empty, or the mask does not have the shape [batch, position] of `x`.
        """
        if mask is not None and mask.shape != x.shape[:2]:
            raise ValueError(f"mask is {list(mask.shape)}; it must be {list(x.shape[:2])}, [batch, position], as x")
        if not x.shape[1]:
            raise ValueError("the text is empty; a recurrent network needs at least one position")
        if not states:
            states = [cell.initial_state(x) for cell in self.cells]  # type: ignore[operator]
        check_entries(states, len(self.cells))
        numbers, ends = range(len(self.cells)), []
        for first in numbers[:: self.directions]:
            x = self.dropout(x) if first else x
            layer = numbers[first : first + self.directions]
            read = [_run(self.cells[n], x, states[n], mask, backward=n > first) for n in layer]
            x = torch.cat([hidden for hidden, _ in read], dim=-1)  # [batch, position, directions * hidden]
            ends += [state for _, state in read]
        return x, ends


def _run(
    cell: nn.Module, x: Tensor, state: State, mask: Tensor | None, backward: bool
) -> tuple[Float[Tensor, "batch position hidden"], State]:
    """Run one cell over all positions; outputs are in the order of the text, whatever the direction."""
    is_token = [None] * x.shape[1] if mask is None else mask.unsqueeze(-1).unbind(1)
    steps = list(zip(x.unbind(1), is_token, strict=True))
    outputs = []
    for vector, is_real in reversed(steps) if backward else steps:
        after = cell(vector, state)
        state = after if is_real is None else tuple(torch.where(is_real, *pair) for pair in zip(after, state))
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if backward else outputs, dim=1), state
