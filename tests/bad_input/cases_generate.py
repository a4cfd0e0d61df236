"""Cases of invalid sampling, search and translation, and of measures of invalid weights."""

SETUP = """
import torch
from tfviz import generate, look, models, text
from tfviz.generate import Sampler, beam
from tfviz.look import measures
NAN, INF = float("nan"), float("inf")
torch.manual_seed(1)
gpt = models.GPT(11, context=7, layers=1, heads=3, dim=6).eval()
tokenizer = text.CharacterTokenizer("abcdefghijk")
pair = models.Transformer(11, heads=3, dim=6, layers=1, context=9).eval()
source = torch.tensor([[1, 2, 3], [4, 5, 0]])
words = text.train_whole_words("one two three four five", 12)
reader = models.Transformer(len(words), heads=3, dim=6, layers=1, context=9).eval()
even = torch.full((2, 3), 1 / 3)
search = lambda **how: beam.search(pair, source, **{"bos": 1, "eos": 2, "max_new_tokens": 4, **how})
ids = lambda *what, **how: list(generate.ids(gpt, *what, **how))
"""

CASES = [
    ("Sampler(temperature=-1)", "temperature is -1"),
    ("Sampler(temperature=NAN)", "temperature is nan"),
    ("Sampler(temperature=1e-300)", "temperature is 1e-300; it must be 0, or at least 1e-30"),
    ("Sampler(temperature=INF).probabilities(torch.tensor([1.0, 2.0])).tolist()", r"= \[0.5, 0.5\]"),
    ("Sampler(top_k=0)", "top_k is 0; it must be at least 1"),
    ("Sampler(top_k=10**9).probabilities(torch.zeros(2)).tolist()", r"= \[0.5, 0.5\]"),
    ("Sampler(top_p=0)", "top_p is 0"),
    ("Sampler(top_p=NAN)", "top_p is nan"),
    ("Sampler(top_p=1.5)", "top_p is 1.5"),
    ("Sampler(top_p=1e-300).probabilities(torch.tensor([1.0, 3.0, 2.0])).tolist()", r"= \[0.0, 1.0, 0.0\]"),
    ("Sampler().probabilities(torch.tensor([NAN, 1.0]))", "the largest is nan"),
    ("Sampler().sample(torch.tensor([NAN, 1.0]))", "logits are not finite"),
    ("ids(torch.tensor([1, 2]), -1)", "max_new_tokens is -1; it must be at least 0"),
    ("ids(torch.tensor([1, 2]), 0)", r"= \[\]"),
    ("ids(torch.tensor([]).long(), 3)", "the prompt is empty"),
    ("ids(torch.zeros(8).long(), 3)", "the prompt has 8 tokens, the model's context is 7"),
    ("ids(torch.tensor([[1, 2]]), 3)", r"the prompt is \[1, 2\]; give the ids of one text"),
    ("ids(torch.tensor([1, 99]), 3)", "id 99 is not one of the model's 11 tokens"),
    ("ids(torch.tensor([1, -1]), 3)", "prompt holds -1; ids are integers from 0 on"),
    ("ids(torch.tensor([1]), 3, seed=-1)", "seed is -1; it must be from 0"),
    ("ids(torch.tensor([1]), 3, seed=2**64)", "seed is 18446744073709551616"),
    ("len(ids([1, 2], 3))", "= 3"),
    ("generate.text(gpt, tokenizer, 'xyz', 3)", r"character 'x' \(U\+0078\) at place 0"),
    (
        "generate.text(gpt, text.CharacterTokenizer('ab'), 'a', 40, Sampler(temperature=INF))",
        "id .* is not one of the 2 tokens",
    ),
    ("search(num_beams=0)", "num_beams is 0; it must be from 1 to 1000"),
    ("search(max_new_tokens=0)", "max_new_tokens is 0; it must be at least 1"),
    ("search(length_penalty=NAN)", "length_penalty is nan; it must be from 0 to 10"),
    ("search(length_penalty=1e6)", "length_penalty is 1000000.0; it must be from 0 to 10"),
    ("search(eos=99)", "eos is 99; the model's tokens are 0 to 10"),
    ("search(eos=-1)", "must be at least 1"),
    ("search(bos=-1)", "bos is -1; it must be at least 0"),
    ("search(bos=99)", "id 99 is not one of the model's 11 tokens"),
    ("beam.search(pair, source[0], bos=1, eos=2)", r"source is \[3\]; give texts of at least one token"),
    ("beam.search(pair, source[:, :0], bos=1, eos=2)", r"source is \[2, 0\]"),
    ("generate.translate(reader, 'one two', words)", "texts is one string; give a list"),
    ("generate.translate(reader, ['one'], words, max_tokens=0)", "max_tokens is 0; it must be at least 1"),
    ("generate.translate(reader, ['one'], words, eos='[NONE]')", r"'\[NONE\]' is not one of the"),
    ("generate.translate(reader, ['one', ''], words, eos=None)", "one of the texts is empty"),
    ("generate.translate(reader, [], words)", r"= \[\]"),
    ("measures.entropy(torch.tensor([[0.5, -0.5, 1.0]]))", "weights hold -0.5"),
    ("measures.entropy(torch.tensor([[0.5, NAN]]))", "weights hold NaN or infinity"),
    ("measures.entropy(torch.tensor([[2.0, 3.0]]))", "a query's weights sum to 5, not to 1"),
    ("measures.entropy(torch.tensor([[0.1, 0.2]]))", "a query's weights sum to 0.3, not to 1"),
    ("measures.mean_distance(torch.tensor([[-1.0, 2.0]]))", "weights hold -1"),
    ("measures.rollout(even.expand(2, 2, 3))", r"rollout is defined for square maps, not \(2, 3\)"),
    ("measures.rollout(torch.eye(3).expand(2, 3, 3), residual=2)", "residual is 2"),
    ("measures.rollout(torch.eye(3).expand(2, 3, 3), residual=NAN)", "residual is nan"),
    ("measures.rollout(torch.eye(3).expand(2, 4, 3, 3))", r"weights are \[2, 4, 3, 3\]; give one map a layer"),
    ("measures.rollout(torch.rand(2, 3, 3) + 1)", "a query's weights sum to"),
    ("measures.rollout(torch.rand(0, 3, 3))", r"weights are \[0, 3, 3\]"),
    (
        "measures.value_weighted_norms(torch.rand(2, 3, 3), torch.rand(2, 4, 5))",
        r"weights are \[2, 3, 3\] and values \[2, 4, 5\]",
    ),
    ("measures.value_weighted_norms(torch.rand(3), torch.rand(3))", r"weights are \[3\] and values \[3\]"),
    ("measures.head_scores(look.AttentionMaps(torch.eye(2)[None, None]))", "square maps of at least 3 tokens"),
    ("look.ablate(gpt, lambda: None)", "measure returns a NoneType"),
    ("look.ablate(gpt, lambda: (gpt(source), None)[1])", "measure returns a NoneType; it must return one number"),
    ("look.ablate(gpt, lambda: gpt(source).sum() * NAN)", "measure returns nan"),
    ("Sampler().probabilities(torch.zeros(0))", r"logits are \[0\]; give those of one token"),
    ("Sampler().probabilities(torch.ones(2, 3))", r"logits are \[2, 3\]; give those of one token"),
    ("Sampler().probabilities([0.0, 1.0])", "logits are a list; give those of one token"),
    (
        "generate.text(models.GPT(5, context=7, layers=1, heads=3, dim=6), tokenizer, 'abc', 3)",
        "the model has 5 tokens, the tokenizer 11",
    ),
    (
        "list(generate.ids(models.GPT(11, context=7, layers=1, heads=3, dim=6).to('meta'), torch.tensor([1]), 3))",
        "weights are on the meta device",
    ),
    (
        "beam.search(models.Transformer(11, heads=3, dim=6, layers=1).to('meta'), source, bos=1, eos=2)",
        "weights are on the meta device",
    ),
    ("beam.search(pair, torch.zeros(2, 3).long(), bos=1, eos=2)", "a row of source holds nothing but padding"),
    ("search(num_beams=10_000)", "num_beams is 10000; it must be from 1 to 1000"),
    (
        "generate.translate(models.Transformer(len(words), 5, layers=1, heads=3, dim=6), ['one'], words)",
        "the model has 5 target tokens, the tokenizer 12",
    ),
    (
        "generate.translate(models.Transformer(5, len(words), layers=1, heads=3, dim=6), ['one'], words)",
        "the model has 5 source tokens",
    ),
    ("beam.beam_indices([search()])", "these 1 beams are not the steps"),
    ("search(num_beams=2).ids(0, 5)", "row is 0, rank is 5; there are 2 texts of 2 each"),
    ("search(num_beams=2).ids(2)", "row is 2, rank is 0"),
    ("beam.greedy(pair, source, bos=1, eos=2, num_beams=5)", "num_beams is given, but a greedy search keeps one text"),
    ("beam.penalty('x', 1.0)", "length is 'x'; give tokens"),
    ("search(max_new_tokens=10**9)", "more than this machine's memory"),
    ("Sampler().sample(torch.zeros(3), generator=3)", "generator is 3"),
    (
        "measures.relevance(torch.ones(2, 5, 5) / 5, torch.ones(2, 5, 5))",
        "weights are \\[2, 5, 5\\]; give layer head query key",
    ),
    ("measures.entropy(even + 0j)", "weights are torch.complex64; give real weights"),
    ("look.quantize(even + 0j)", "weights are torch.complex64; give real weights"),
    ("Sampler().sample(torch.zeros(1, 3, 5))", "logits are \\[1, 3, 5\\]; give those of one token"),
    ("Sampler(temperature=0).sample([0.1, 0.2])", "logits are a list; give those of one token"),
]
