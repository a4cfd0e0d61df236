"""Operations that the engine lacks are decomposed into ones it has, and match torch at other lengths too."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tfviz import portable

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
FUNCTIONS = """
F.relu6(3 * x); F.mish(x); F.hardswish(x); F.hardsigmoid(x); F.celu(x, 0.5); F.selu(x); F.softplus(x); F.logsigmoid(x)
F.threshold(x, 0.5, -2.0); F.glu(x); torch.frac(x); torch.sgn(x); torch.sinc(x); torch.deg2rad(x); torch.rad2deg(x)
torch.logit(x.sigmoid()); torch.special.entr(x.abs()); torch.nan_to_num(x.log()); torch.isfinite(x.log())
torch.logaddexp(x, x.exp()); torch.heaviside(x, x * 2); torch.floor_divide(x, 0.3); x.long() // 2
torch.clip(x, -1, 1); x.clamp_min(0.1); x.clamp_max(x.mean()); torch.lerp(x, x.exp(), 0.3)
torch.addcmul(x, x, x, value=0.5); torch.addcdiv(x, x, 1 + x * x); F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4]))
torch.max(x, x.neg()); torch.rsub(x, x, alpha=2); x.std(); x.var(0); x.std(-1, unbiased=False)
torch.std_mean(x, 1)[0]; torch.var_mean(x, 0)[1]; x.logsumexp(-1); x.aminmax(dim=0)[1]; torch.count_nonzero(x > 0, 0)
(x > 0).all((0, 1)); x.norm(); x.norm(1, -1); torch.linalg.norm(x); torch.linalg.norm(x, dim=0)
F.pairwise_distance(x, x.exp()); F.cosine_similarity(x, x.exp(), -1); x.argsort(-1)
x.argsort(stable=True, dim=0, descending=True); x.ravel(); x.swapaxes(0, 1); x[None].movedim(0, -1); x.T.adjoint()
x.broadcast_to(2, *x.shape); x.tile(2); x[:, None].squeeze(); x.repeat_interleave(3, 1); x.narrow(1, 1, 2)
torch.hstack([x, x]); torch.vstack([x[0], x]); x.diff(dim=1); x.diff(2, 0); x.roll(1, 1)
torch.select_scatter(x, x[0], 0, 1); torch.diag(x[0]); torch.diag(x, 1); torch.diag_embed(x, -1); torch.trace(x)
torch.eye(3) + x.sum(); F.pad(x, (1, 2)); F.pad(x[None], (2, 1), "reflect"); F.pad(x[None], (2, 1), "replicate")
F.pad(x[None], (1, 1), "circular"); torch.stack(torch.meshgrid(x[0], x[1], indexing="xy"))
torch.stack(torch.broadcast_tensors(x[:1], x[0])); torch.linspace(0, 1, 5) + x[0, 0]; x.new_full((2,), 3.0) + x[0, 0]
x.new_zeros(2) + x[0, 0]; x.index_add(1, torch.tensor([1, 1]), x[:, :2]); x.index_fill(1, torch.tensor([0]), 2.5)
x.index_copy(1, torch.tensor([2, 0]), x[:, :2] * 3); torch.take_along_dim(x, x.argmax(-1, keepdim=True), 1)
x[0].dot(x[1]); x @ x[0]; torch.outer(x[:, 0], x[0]); torch.baddbmm(x[None], x[None, :, :1], x[None, :1])
torch.einsum("ij,kj->ik", x, x); torch.einsum("ii", x[:4]); torch.einsum("...i,ji->...j", x[None], x)
torch.einsum("i,j", x[0], x[1]); torch.einsum("ij,ij,jk->ik", x, x, x[:4]); F.cross_entropy(x, x.argmax(-1))
F.cross_entropy(x, x.softmax(-1), reduction="sum"); F.cross_entropy(x, x.argmin(-1), label_smoothing=0.1)
F.nll_loss(x.log_softmax(-1), x.argmin(-1), reduction="none"); F.mse_loss(x, x.exp())
F.kl_div(x.log_softmax(-1), x.softmax(-1))
""".replace("\n", "; ").split("; ")
FIXED = {"torch.take_along_dim(x, x.argmax(-1, keepdim=True), 1)"}  # torch.export itself knows it for one length only


@pytest.mark.parametrize("expression", filter(None, FUNCTIONS))
@pytest.mark.filterwarnings("ignore:reduction")
def test_decomposed_function_matches_torch(expression):
    function = eval(f"lambda x: {expression}", {"torch": torch, "F": F})
    program = portable.export(function, X, lengths=None if expression in FIXED else {"x": {0: "rows"}})
    assert set(program.operations) <= portable.SUPPORTED_OPERATORS
    x = X if expression in FIXED else torch.randn(7, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(program(x)["output"], function(x), rtol=1e-5, atol=1e-5, equal_nan=True)


def test_supported_operations_are_not_decomposed():
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Softplus(), nn.GELU())
    assert {"linear", "layer_norm", "gelu", "log1p"} <= set(portable.export(model, X).operations)
