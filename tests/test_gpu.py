"""What only a GPU does: reduced precision, compilation, exports from it; skipped elsewhere.

FlexAttention's kernel is in `test_other_device.py`, since it cannot be compiled with checks of shapes.
"""

import pytest
import torch

from tfviz import generate, layers, learn, look, models, study, text, view
from tfviz.learn import evaluate
from tfviz.learn.mixed_precision import default_precision

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

IDS = torch.randint(31, (4, 64), generator=torch.Generator().manual_seed(1))


def gpt(**more):
    torch.manual_seed(0)
    return models.GPT(31, **{"context": 64, "layers": 2, "heads": 4, "dim": 64, **more})


def repeated(batch=16):
    """Blocks that come again, which two layers learn."""
    return text.RepeatedTokens(31, 48, batch, seed=1)


def losses(steps=30, **options):
    model = gpt()
    found = [step.loss for step in learn.fit(model, repeated(), steps, progress=False, seed=3, **options)]
    assert all(weight.device.type == "cuda" and weight.dtype == torch.float32 for weight in model.parameters())
    return torch.tensor(found)


def test_fit_moves_to_the_gpu_and_matches_the_cpu():
    on_cpu = [step.loss for step in learn.fit(gpt(), repeated(), 10, device="cpu", seed=3, progress=False)]
    assert losses(10, precision="float32").tolist() == pytest.approx(on_cpu, abs=2e-3)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_reduced_precision_learns_as_float32(precision):
    exact = losses(60, precision="float32")
    assert (losses(60, precision=precision)[-10:].mean() - exact[-10:].mean()).abs() < 0.1


def test_default_precision_is_what_the_gpu_computes_in():
    supported = torch.cuda.get_device_capability() >= (8, 0)
    assert default_precision(torch.device("cuda")) == ("bfloat16" if supported else "float16")


@pytest.mark.parametrize("options", [{}, {"gradient_checkpointing": True}, {"gradient_accumulation_steps": 2}])
def test_compiled_training_matches_eager(unchecked, options):
    eager = losses(20, precision="float32")
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    compiled = losses(20, precision="float32", compile=True, **options)
    assert compiled.tolist() == pytest.approx(eager.tolist(), abs=1e-2)
    assert sum(counters["recompiles"].values()) == 0


def test_resumed_run_has_the_same_losses(tmp_path):
    whole, model = losses(8), gpt()
    options = {"checkpoint_dir": tmp_path, "checkpoint_every": 4, "seed": 3, "progress": False}
    for step in learn.fit(model, repeated(), 8, **options):
        if step.step == 4:
            break
    resumed = [step.loss for step in learn.fit(gpt(), repeated(), 8, **options)]
    assert resumed == pytest.approx(whole.tolist(), abs=1e-2)  # sums on a GPU have no fixed order


def test_heads_too_narrow_for_the_block_sparse_kernel():
    shape = {"context": 300, "layers": 1, "heads": 4, "dim": 32}
    model, ids = models.SparseTransformer(31, stride=16, **shape).eval(), torch.randint(31, (2, 300))
    with torch.no_grad():
        dense, other = model(ids), model.cuda()(ids.cuda())
    torch.testing.assert_close(other.cpu(), dense, atol=2e-3, rtol=2e-3)
    x = torch.ones(1, 4, 300, 8, device="cuda")
    with pytest.raises(ValueError, match="heads are 8 wide; on a GPU, FlexAttention needs 16 or more"):
        layers.attend(x, x, x, model.mask.block_mask(300, 300, device="cuda"))


def test_orthogonalization_in_tf32_leaves_the_setting_alone():
    matrices = torch.randn(3, 96, 256, generator=torch.Generator().manual_seed(0))
    before = torch.get_float32_matmul_precision()
    found = learn.optimizers.orthogonalize(matrices.cuda())
    assert torch.get_float32_matmul_precision() == before
    values = torch.linalg.svdvals(found)
    assert 0.4 < float(values.min()) < float(values.max()) < 1.65
    torch.testing.assert_close(found.cpu(), learn.optimizers.orthogonalize(matrices), atol=5e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", [{}, {"lazy": True}, {"device": "cpu"}])
def test_capture_of_fused_attention_is_exact_and_changes_nothing(dtype, mode):
    model, ids = gpt().cuda().to(dtype).eval(), IDS.cuda()
    with torch.no_grad():
        plain = model(ids)
        with look.capture(model, **mode) as seen:
            output = model(ids)
        reference = gpt().eval()
        with look.capture(reference) as expected:
            reference(IDS)
    assert torch.equal(plain, output)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    for site in expected:
        torch.testing.assert_close(seen[site].cpu().float(), expected[site], atol=tolerance, rtol=0)


def test_capture_of_a_compiled_model(unchecked):
    model, ids = gpt().cuda().eval(), IDS.cuda()
    compiled = torch.compile(model)
    with torch.no_grad(), look.capture(model) as expected:
        model(ids)
    with torch.no_grad(), look.capture(compiled) as seen:
        compiled(ids)
    for mine, other in zip(seen.values(), expected.values(), strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=0)


@pytest.mark.parametrize("cache", [True, False])
def test_generation_matches_the_cpu(cache):
    prompt = IDS[0, :5]
    on_cpu = list(generate.ids(gpt().eval(), prompt, 20, generate.GREEDY, cache=cache))
    assert list(generate.ids(gpt().eval().cuda(), prompt, 20, generate.GREEDY, cache=cache)) == on_cpu


def test_studies_match_the_cpu():
    metric, batches = study.logit_difference(3, 5), [IDS[:, :16]]
    for call in (
        lambda model: study.patch(model, IDS[:1, :16], IDS[1:2, :16], metric=metric, progress=False),
        lambda model: study.mean_head_scores(model, batches, progress=False)["induction"].mean,
        lambda model: study.logit_lens(model, IDS[:1, :16]),
    ):
        one, two = (call(model) for model in (gpt().eval(), gpt().eval().cuda()))
        one, two = (getattr(found, "values", found) for found in (one, two))
        torch.testing.assert_close(two.cpu(), one, atol=1e-3, rtol=1e-3)


def test_evaluation_matches_the_cpu():
    batches = [(IDS, IDS.roll(-1, 1))] * 3
    one, two = (evaluate.loss(model, batches) for model in (gpt(), gpt().cuda()))
    assert two == pytest.approx(one, abs=1e-3)


def test_views_of_a_model_on_the_gpu():
    tokenizer = text.CharacterTokenizer("abcdefghijklmnopqrstuvwxyz .,!?")
    model = gpt().cuda().eval()
    assert view.write(model, tokenizer, "a cat sat").figure()
    with torch.no_grad(), look.capture(model) as seen:
        model(tokenizer.encode("a cat").cuda()[None])
    assert view.heads(look.AttentionMaps.from_capture(seen, list("a cat"))).figure()
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"cuda"}


def test_encoder_decoders_train():
    source, target = IDS[:, :9], IDS[:, :7]
    for model in (
        models.Seq2Seq(31, attention=layers.AdditiveAttention, dim=16, hidden=24),
        models.Transformer(31, layers=2, heads=2, dim=16),
    ):
        steps = learn.fit(model, [(source, target)] * 5, loss=learn.losses.translation(0.1), progress=False)
        assert torch.tensor([step.loss for step in steps]).isfinite().all()
