"""Head scores over padded batches, comparison of checkpoints, films of training, and map stores."""

import json

import pytest
import torch
from study_models import FAMILIES, IDS, SMALL, VOCAB_SIZE, build, config

from tfviz import learn, models
from tfviz.look import AttentionMaps, capture, measures
from tfviz.look.head_scores import SCORE_KINDS, Marks
from tfviz.study import HeadScores, Inputs, MapStore, compare, maps_during_training, mean_head_scores
from tfviz.text import Windows

TEXTS = [[3, 5, 3, 5, 3, 8], [7, 7, 2, 7], [1, 2, 3, 1, 2]]
SIDES = ["right", "left", "none"]


def gpt2():
    return build(*FAMILIES["GPT-2"][:2])


def padded(texts, side):
    """A batch as `generate` makes it: an attention mask, and positions that count words alone."""
    width = max(map(len, texts))
    ids, mask = torch.full((len(texts), width), 9), torch.zeros(len(texts), width, dtype=torch.long)
    for row, text in enumerate(texts):
        own = slice(0, len(text)) if side == "right" else slice(width - len(text), None)
        ids[row, own], mask[row, own] = torch.tensor(text), 1
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}


def single(model, text):
    """Maps of one text without padding."""
    with torch.no_grad(), capture(model) as seen:
        model(torch.tensor([text]))
    return AttentionMaps.from_capture(seen, [str(number) for number in text])


@pytest.mark.parametrize("side", SIDES)
def test_padded_batch_scores_match_single_texts(side):
    model = gpt2()
    texts = [text[:4] for text in TEXTS] if side == "none" else TEXTS
    batch = padded(texts, "left" if side == "left" else "right")
    if side == "none":
        del batch["attention_mask"]
    found = mean_head_scores(model, [batch], progress=False)
    scores = [measures.head_scores(single(model, text)) for text in texts]
    for kind in measures.SCORE_KINDS:
        each = torch.stack([score[kind] for score in scores])
        torch.testing.assert_close(found[kind].mean.values, each.nanmean(0), rtol=0, atol=1e-5)
        best = dict(found[kind].top_texts("1", "2"))
        for text, score in enumerate(each[:, 1, 2].tolist()):
            assert (text not in best) if score != score else best[text] == pytest.approx(score, abs=1e-5)
    with torch.no_grad():
        logits = model(**batch).logits[0][batch.get("attention_mask", torch.ones(3, 4))[0] == 1]
        torch.testing.assert_close(logits, model(torch.tensor(texts[:1])).logits[0])


@pytest.mark.parametrize("side", SIDES)
def test_even_attention_baseline_matches_reference(side):
    batch = padded(TEXTS, "left" if side == "left" else "right")
    found = mean_head_scores(gpt2(), [batch], ["previous", "first", "induction", "current"], progress=False)
    expected = {}
    for text in TEXTS:
        count = len(text)
        expected.setdefault("current", []).append(sum(1 / (q + 1) for q in range(count)) / count)
        expected.setdefault("previous", []).append(sum(1 / (q + 1) for q in range(1, count)) / (count - 1))
        expected.setdefault("first", []).append(sum(1 / (q + 1) for q in range(1, count)) / (count - 1))
        after = [[k for k in range(1, q) if text[k - 1] == text[q]] for q in range(count)]
        rows = [len(keys) / (q + 1) for q, keys in enumerate(after) if keys]
        expected.setdefault("induction", []).append(sum(rows) / len(rows) if rows else float("nan"))
    for kind, values in expected.items():
        mean = torch.tensor(values).nanmean().item()
        assert found[f"{kind}, uniform attention"].mean.values.flatten().tolist() == pytest.approx([mean] * 8, abs=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
def test_leave_out_first_matches_reference(side):
    model = gpt2()
    found = mean_head_scores(model, [padded(TEXTS, side)], ["previous"], ignore_first_key=True, progress=False)
    each = []
    for text in TEXTS:
        weights = single(model, text).weights
        weights = weights if isinstance(weights, torch.Tensor) else torch.stack(list(weights))
        weights = weights.clone()
        weights[..., 0] = 0
        weights = weights / weights.sum(-1, keepdim=True)
        each.append(weights.diagonal(-1, -2, -1)[..., 1:].mean(-1))  # the second token has only the first before it
    torch.testing.assert_close(found["previous"].mean.values, torch.stack(each).mean(0), rtol=0, atol=1e-5)
    even = [sum(1 / q for q in range(2, len(text))) / (len(text) - 2) for text in TEXTS]
    assert found["previous, uniform attention"].mean["0", "0"] == pytest.approx(sum(even) / 3, abs=1e-5)


class TwoHeads(torch.nn.Module):
    """A head that looks seven words back, whatever stands there, and one that looks after the same word."""

    def __init__(self):
        super().__init__()
        self.values = torch.nn.Embedding(50, 4)

    def forward(self, ids):
        count = ids.shape[1]
        back = torch.arange(count)[:, None] - torch.arange(count)
        same = torch.zeros(len(ids), count, count, dtype=torch.bool)
        same[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1]
        scores = 8.0 * torch.stack([(back == 7).expand_as(same), same], 1)
        return scores.masked_fill(back < 0, -torch.inf).softmax(-1) @ self.values(ids)[:, None]


@pytest.mark.parametrize("ignore_first_key", [False, True])
def test_induction_score_excludes_fixed_offset_heads(ignore_first_key):
    def scores(*periods):
        texts = [torch.stack([torch.randperm(50)[:period] for _ in range(4)]).repeat(1, 2) for period in periods]
        found = mean_head_scores(TwoHeads(), texts, ["induction"], ignore_first_key=ignore_first_key, progress=False)
        return found["induction"].mean.values.flatten().tolist()

    torch.manual_seed(0)
    counts, compares = scores(8)
    assert min(counts, compares) > 0.9
    counts, compares = scores(7, 9, 8, 12, 16, 21)
    assert counts < 0.25
    assert compares > 0.9


@pytest.mark.filterwarnings("ignore:no text has a cell of 'first':UserWarning")
@pytest.mark.parametrize("kind", ["previous", "two back", "duplicate", "first"])
def test_query_without_marked_keys_is_not_counted(kind):
    """All weight on that position, wherever it can be: the score is 1, and NaN where the first key is all there is."""

    class Looks(TwoHeads):
        def forward(self, ids):
            cells = SCORE_KINDS[kind](ids).expand(len(ids), -1, -1)
            scores = torch.where(cells, 90.0, 0.0).masked_fill(~torch.ones_like(cells).tril(), -torch.inf)
            return scores[:, None].softmax(-1) @ self.values(ids)[:, None]

    ids = torch.tensor([[3, 5, 3, 7, 5, 7]])
    found = mean_head_scores(Looks(), [ids], [kind], ignore_first_key=True, progress=False)[kind].mean.values.item()
    assert found != found if kind == "first" else found == pytest.approx(1)


@pytest.mark.parametrize("side", ["right", "left"])
def test_find_heads_supports_custom_kinds(side):
    def after_seven(ids):
        """Keys after a 7, of texts without padding in front."""
        cells = torch.zeros(len(ids), ids.shape[1], ids.shape[1], dtype=torch.bool)
        cells[:, :, 1:] = (ids[:, :-1] == 7)[:, None]
        return cells.tril()

    model = gpt2()
    found = mean_head_scores(model, [padded(TEXTS, side)], {"after seven": after_seven}, progress=False)["after seven"]
    weights = single(model, TEXTS[1]).weights
    weights = weights if isinstance(weights, torch.Tensor) else torch.stack(list(weights))
    expected = [weights[..., 1, 1], weights[..., 2, 1] + weights[..., 2, 2], weights[..., 3, 1] + weights[..., 3, 2]]
    assert found.counts.tolist() == [[1] * 4] * 2
    torch.testing.assert_close(found.mean.values, torch.stack(expected).mean(0), rtol=0, atol=1e-5)


def test_fully_masked_query_is_not_counted():
    marks = Marks([torch.ones(1, 3, 3, dtype=torch.bool).tril(-1)])
    shares = marks.shares(torch.full((1, 1, 3, 3), 1 / 3), torch.tensor([[[True, False, True]]]))
    assert shares.item() == pytest.approx(2 / 3)  # of the last query alone: the first has no mark


@pytest.mark.parametrize("lazy", [True, False])
@pytest.mark.parametrize("side", SIDES)
def test_marks_of_any_number_in_layers_with_masks_of_their_own(side, lazy):
    """No cell, all cells, other cells for each text; a layer that looks three words back, and one that looks at all."""
    settings = {"num_key_value_heads": 2, "head_dim": 6, "sliding_window": 3, "max_position_embeddings": 8, **SMALL}
    layers = {"layer_types": ["sliding_attention", "full_attention"]}
    model = build("Gemma3ForCausalLM", lambda: config("Gemma3Text", **settings, **layers))
    batch = padded([text[:4] for text in TEXTS] if side == "none" else TEXTS, "left" if side == "left" else "right")
    ids = batch["input_ids"]
    drawn = torch.rand(len(ids), ids.shape[1], ids.shape[1], generator=torch.Generator().manual_seed(1)) < 0.4
    kinds = {
        "none": lambda ids: torch.zeros(1, ids.shape[1], ids.shape[1], dtype=torch.bool),
        "all": lambda ids: torch.ones(1, ids.shape[1], ids.shape[1], dtype=torch.bool),
        "drawn": lambda ids: drawn,
    }
    with torch.no_grad(), capture(model, lazy=lazy) as seen:
        model(**batch)
    found = HeadScores(kinds)(seen, Inputs.from_prompt("texts", batch, model))
    assert found["none"].values.isnan().all()
    for layer, site in enumerate(seen):
        for text, counts in enumerate(batch["attention_mask"].bool()):
            pattern, allowed = seen[site][text][:, counts][:, :, counts], seen.allowed(site)
            sees = allowed.expand(len(ids), *allowed.shape[1:])[text][:, counts][:, :, counts]
            even = sees / sees.sum(-1, keepdim=True)
            for kind in ("all", "drawn"):
                marked = kinds[kind](ids).expand(len(ids), -1, -1)[text, : counts.sum(), : counts.sum()]
                for name, weights in ((kind, pattern), (f"{kind}, uniform attention", even.expand_as(pattern))):
                    shares = (weights * marked).sum(-1)[:, marked.any(-1)].mean(-1)
                    torch.testing.assert_close(found[name].values[text, layer], shares, rtol=0, atol=1e-5)


def test_find_heads_rejects_invalid_kinds_and_inputs():
    with pytest.raises(LookupError, match="no kind of position is called 'nothing'; there are: current"):
        HeadScores(["nothing"])
    with pytest.raises(TypeError, match=r"kinds is 'first'; give a list"):
        HeadScores("first")
    with pytest.raises(ValueError, match="kinds is empty; there are: current"):
        HeadScores([])
    with pytest.raises(TypeError, match="kinds is a dictionary: value of key 'own'"):
        HeadScores({"own": lambda: None})
    for kind in (
        lambda ids: ids == 3, lambda ids: torch.ones(1, 6, 6), lambda ids: None,
        lambda ids: torch.ones(2, 6, 6, dtype=torch.bool),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"own marks .*; it must return a mask"):
            mean_head_scores(gpt2(), [IDS], {"own": kind}, progress=False)
    t5 = build(*FAMILIES["T5"][:2])
    for decoded in (IDS, IDS[:, :4]):  # of the encoder's length, too
        batch = {"input_ids": IDS, "decoder_input_ids": decoded}
        with pytest.raises(
            ValueError, match=r"EncDecAttention\.pattern is cross-attention; heads are scored on self-attention"
        ):
            mean_head_scores(t5, [batch], sites="decoder.*.EncDecAttention.pattern", progress=False)
    vit = build(*FAMILIES["ViT"][:2])
    with pytest.raises(ValueError, match="the batch has no ids"):
        mean_head_scores(vit, [{"pixel_values": torch.ones(2, 3, 8, 8)}], progress=False)
    batch = {"input_ids": IDS, "attention_mask": torch.ones(3, 1, 6, 6).tril().bool()}
    found = [mean_head_scores(gpt2(), [given], progress=False)["previous"].mean.values for given in (batch, IDS)]
    torch.testing.assert_close(*found)


DECODED = torch.tensor([[0, 5, 8, 5, 2], [0, 9, 9, 1, 9], [0, 4, 4, 2, 1]])
DECODED_MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])


@pytest.mark.parametrize("length", [6, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_decoder_heads_are_scored_on_decoder_ids(masked, length):
    """Also where both texts are equally long, and where heads of both are scored at once."""
    model, source = build(*FAMILIES["T5"][:2]), IDS[:, :length]
    batch = {"input_ids": source, "decoder_input_ids": DECODED}
    if masked:
        batch["decoder_attention_mask"] = DECODED_MASK
    sites = ["encoder.*.pattern", "decoder.*.SelfAttention.pattern"]
    found = mean_head_scores(model, [batch], ["previous", "duplicate"], sites=sites, progress=False)
    with torch.no_grad(), capture(model, sites) as seen:
        model(**batch)
    expected = {"previous": [], "duplicate": []}
    for site, weights in seen.items():
        ids = DECODED if site.startswith("decoder") else source
        lengths = DECODED_MASK.sum(-1) if masked and site.startswith("decoder") else torch.full((3,), ids.shape[1])
        by_text = {kind: [] for kind in expected}
        for text, count in enumerate(lengths.tolist()):
            pattern, words = weights[text, :, :count, :count], ids[text, :count]
            by_text["previous"].append(pattern.diagonal(-1, 1, 2).mean(-1))
            same = (words == words[:, None]).tril(-1)
            shares = (pattern * same).sum(-1)[:, same.any(-1)]
            by_text["duplicate"].append(shares.mean(-1))
        for kind, scores in by_text.items():
            expected[kind].append(torch.stack(scores).nanmean(0))
    for kind, layers in expected.items():
        torch.testing.assert_close(found[kind].mean.values, torch.stack(layers), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_find_heads_supports_the_transformer_decoder():
    model = models.Transformer(VOCAB_SIZE, VOCAB_SIZE, layers=2, heads=3, dim=12)
    sites = [site for site in _sites(model, (IDS, DECODED)) if site.startswith("decoder") and "cross" not in site]
    found = mean_head_scores(model, [(IDS, DECODED)], ["previous"], sites=sites, progress=False)["previous"].mean.values
    with torch.no_grad(), capture(model.eval(), sites) as seen:
        model(IDS, DECODED)
    hand = [weights.diagonal(-1, 2, 3).mean((0, 2)) for weights in seen.values()]
    torch.testing.assert_close(found, torch.stack(hand), rtol=1e-4, atol=1e-5)


def _sites(model, batch):
    with torch.no_grad(), capture(model) as seen:
        model(*batch)
    return list(seen)


def test_compare_is_zero_for_the_same_model():
    model = gpt2()
    found = compare(model, model, [padded(TEXTS, "left"), padded(TEXTS[:2], "right")], progress=False)
    assert found["attention"].mean.values.abs().max() == 0
    assert found["prediction"].mean.values.abs().max() < 1e-6


@pytest.mark.parametrize("side", ["right", "left"])
def test_compare_matches_reference(side):
    first, second = gpt2(), gpt2()
    with torch.no_grad():
        for parameter in second.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    found = compare(first, second, [padded(TEXTS, side)], progress=False)
    changes = torch.stack([measures.total_variation(single(first, text), single(second, text)) for text in TEXTS])
    torch.testing.assert_close(found["attention"].mean.values, changes.mean(0), rtol=0, atol=1e-5)
    nats = []
    with torch.no_grad():
        for text in TEXTS:
            p, q = (model(torch.tensor([text])).logits.softmax(-1) for model in (first, second))
            nats.append((p * (p / q).log()).sum(-1).mean().item())
    assert found["prediction"].mean.values.item() == pytest.approx(sum(nats) / 3, abs=1e-4)
    assert min(nats) > 1e-3


def test_compare_rejects_incompatible_models_and_sites(tmp_path):
    first = build(*FAMILIES["GPT"][:2])
    for other, says in (
        (models.GPT(VOCAB_SIZE, layers=1, heads=4, dim=24, context=8), "compare checkpoints of one model"),
        (
            models.GPT(VOCAB_SIZE + 1, layers=2, heads=4, dim=24, context=8),
            r"logits, \[3, 6, 13\] in the first and \[3, 6, 14\]",
        ),
    ):
        with pytest.raises(ValueError, match=says):
            compare(first, other, [IDS], progress=False)
    with pytest.raises(ValueError, match=r"blocks\.0 holds no weights; name sites that end in \.pattern"):
        compare(first, first, [IDS], sites="blocks.?", progress=False)
    compare(first, first, [IDS], progress=False, resume=tmp_path / "file")
    with pytest.raises(ValueError, match="of another model or measure"):
        compare(first, build(lambda: models.GPT(VOCAB_SIZE, layers=2, heads=4, dim=24), None), [IDS], progress=False,
                resume=tmp_path / "file")  # fmt: skip


def trained(filmed):
    torch.manual_seed(0)
    gpt = models.GPT(VOCAB_SIZE, layers=1, heads=2, dim=4, context=6, dropout=0.3)
    batches = Windows(torch.arange(90) % VOCAB_SIZE, length=5, batch_size=3)
    torch.manual_seed(7)
    steps, losses, modes = learn.fit(gpt, batches, 7, progress=False), [], []

    def noted():
        for step in steps:
            losses.append(step.loss)
            modes.append(gpt.training)
            yield step

    frames = maps_during_training(noted(), gpt, IDS[:1], every=3) if filmed else list(noted()) and None
    return gpt, losses, modes, frames


def test_film_does_not_change_training():
    plain, filmed = trained(False), trained(True)
    assert plain[1] == filmed[1]
    assert len(plain[1]) == 7
    for one, other in zip(plain[0].parameters(), filmed[0].parameters()):
        assert torch.equal(one, other)
    assert filmed[0].training == plain[0].training
    assert filmed[2] == plain[2]
    assert list(filmed[3]) == ["step 0", "step 3", "step 6", "step 7"]
    gpt = filmed[0].eval()
    with torch.no_grad(), capture(gpt) as seen:
        gpt(IDS[:1])
    torch.testing.assert_close(filmed[3]["step 7"][0, 1], seen["blocks.0.attention.pattern"][0, 1])
    assert not torch.equal(filmed[3]["step 0"][0, 1], filmed[3]["step 3"][0, 1])


def test_film_accepts_any_iterable():
    gpt = models.GPT(VOCAB_SIZE, layers=1, heads=2, dim=4).train()
    assert list(maps_during_training(range(4), gpt, IDS[:1], every=2)) == ["step 0", "step 2", "step 4"]
    assert list(maps_during_training([], gpt, IDS[:1], every=2)) == ["step 0"]
    assert gpt.training
    with pytest.raises(ValueError, match="every is 0"):
        maps_during_training(iter([1 / 1]), gpt, IDS[:1], every=0)


def maps(seed=0, keys=3):
    weights = torch.rand(2, 4, keys, keys, generator=torch.Generator().manual_seed(seed)).softmax(-1)
    return AttentionMaps(weights, query_tokens=[f"w{number}" for number in range(keys)])


def test_map_store_round_trips(tmp_path):
    store = MapStore(tmp_path / "store")
    names = ["text 0", "a/b/../c", "../out", "", "ü\n"]
    for number, name in enumerate(names):
        store.add(name, maps(number, 3 + number), label=number)
    for reader in (store, MapStore(tmp_path / "store")):
        assert list(reader) == names
        assert reader.shapes["a/b/../c"] == (2, 4, 4, 4)
        assert reader.notes["../out"] == {"label": 2}
        for number, name in enumerate(names):
            assert reader[name].query_tokens == maps(0, 3 + number).query_tokens
            torch.testing.assert_close(reader[name][1, 2], maps(number, 3 + number)[1, 2], rtol=0, atol=1e-6)
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {tmp_path / "store"}
    store.add("../out", maps(9, 7), label="new")
    again = MapStore(tmp_path / "store")
    assert list(again) == names
    assert again.shapes["../out"] == (2, 4, 7, 7)
    torch.testing.assert_close(again["../out"][0, 0], maps(9, 7)[0, 0], rtol=0, atol=1e-6)
    assert len(list((tmp_path / "store").iterdir())) == len(names) + 1
    with pytest.raises(KeyError, match="there are no maps 'none'; there are 5"):
        again["none"]
    with pytest.raises(ValueError, match=r"notes\.bad is a tensor"):
        store.add("x", maps(), bad=torch.ones(1))
    assert "x" not in MapStore(tmp_path / "store")


def test_map_store_rejects_damaged_or_unrelated_files(tmp_path):
    store = MapStore(tmp_path / "store")
    store.add("one", maps())
    index = tmp_path / "store" / "index.json"
    good = json.loads(index.read_text(encoding="utf-8"))
    for text, says in (
        ("{", "index.json"),
        ('{"format": "other", "maps": {}}', "index.format is 'other'"),
        (
            json.dumps(good | {"maps": {"one": {"file": 3, "shape": [1, 1, 1, 1], "notes": {}}}}),
            r"maps\.one\.file is 3",
        ),
        (json.dumps(good | {"maps": {"one": {"file": "x", "notes": {}}}}), "has no 'shape'"),
    ):
        index.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=says):
            MapStore(tmp_path / "store")
    outside = tmp_path / "outside.safetensors"
    good["maps"]["one"]["file"] = "../outside.safetensors"
    index.write_text(json.dumps(good), encoding="utf-8")
    MapStore(tmp_path / "store").add("one", maps(1))
    assert not outside.exists()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match="file is a file; give a folder"):
        MapStore(tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match=r"holds other files and no index\.json"):
        MapStore(tmp_path / "other")
