"""Word dropout and masked tokens for language modelling."""

import pytest
import torch
from small_models import Always
from tokenizers import Tokenizer, models

from tfviz.text import Buckets, MaskedTokens, SubwordTokenizer, TokenDropout, train_whole_words
from tfviz.text.batches import step_seed
from tfviz.text.subwords import CLS, MASK, PAD, SEP, SPECIAL_TOKENS, UNK

FIRST = len(SPECIAL_TOKENS)

IDS = torch.cat([torch.randint(7, 99, (40, 50)), torch.zeros(40, 3, dtype=torch.long)], 1)
BATCHES = [(IDS, torch.arange(40))] * 3


def test_word_dropout_replaces_a_share_and_keeps_padding():
    ids, labels = TokenDropout(BATCHES, 0.3, seed=5)[1]
    assert labels.tolist() == list(range(40))
    assert (ids[:, 50:] == PAD).all()
    changed = ids != IDS
    assert (ids[changed] == UNK).all()
    assert 0.27 < changed[:, :50].float().mean() < 0.33


def test_word_dropout_depends_on_seed_and_step():
    dropped = TokenDropout(BATCHES, 0.5, seed=5)
    assert torch.equal(dropped[0][0], TokenDropout(BATCHES, 0.5, seed=5)[0][0])
    assert not torch.equal(dropped[0][0], dropped[1][0])
    assert not torch.equal(dropped[0][0], TokenDropout(BATCHES, 0.5, seed=6)[0][0])
    assert torch.equal(TokenDropout(BATCHES, 0.0)[2][0], IDS)


def values(batch):
    return [part.tolist() for part in batch]


def test_masked_tokens_depend_only_on_seed_and_step():
    rows = [torch.randint(FIRST, 200, (length,)) for length in (3, 1, 7, 3, 2, 3, 5, 3, 7, 3, 2)]
    made, again, other = (MaskedTokens(Buckets(rows, max_tokens=14), 200, seed=seed) for seed in (1, 1, 2))
    steps = range(9)
    assert [values(made[step]) for step in steps] == [values(again[step]) for step in reversed(steps)][::-1]
    assert [values(made[step]) for step in steps] != [values(other[step]) for step in steps]
    fixed = MaskedTokens(Always(torch.arange(FIRST, 99)[None]), 99)
    assert not torch.equal(fixed[0][1], fixed[1][1])


def test_masked_tokens_hide_at_least_one_token():
    few = MaskedTokens(Always(torch.tensor([[CLS, 9, SEP], [CLS, 8, SEP]])), 12)
    assert all(1 <= (few[step][1] != PAD).sum() <= 2 for step in range(40))
    shown, targets = MaskedTokens(Always(torch.tensor([[CLS, SEP]])), 12)[0]
    assert (shown.tolist(), targets.tolist()) == ([[CLS, SEP]], [[0, 0]])


def bert_like_vocabulary(mask="[MASK]", padding=0):
    """A tokenizer whose special tokens stand where those of BERT's checkpoints do, and 26 words behind them."""
    specials = {"[PAD]": padding, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, mask: 103}
    unused = {f"[unused{index}]": index for index in range(104) if index not in specials.values()}
    letters = {chr(97 + index): 104 + index for index in range(26)}
    return SubwordTokenizer(Tokenizer(models.WordPiece(unused | specials | letters, unk_token="[UNK]")))


def test_masked_tokens_use_special_ids_of_the_vocabulary():
    ids = torch.tensor([[101, *range(1, 99), 99, 100, 102, *range(104, 130), 102, 0]]).repeat(200, 1)
    specials = torch.isin(ids, torch.tensor([0, 100, 101, 102, 103]))
    shown, targets = MaskedTokens(Always(ids), bert_like_vocabulary(), mlm_probability=0.5)[0]
    chosen = targets != PAD
    assert torch.equal(shown[specials | ~chosen], ids[specials | ~chosen])
    assert not targets[specials].any()
    assert torch.equal(targets[chosen], ids[chosen])
    assert int((shown == 103).sum()) == pytest.approx(0.8 * int(chosen.sum()), rel=0.03)
    replaced = shown[chosen & (shown != 103) & (shown != ids)]
    assert sorted(set(replaced.tolist())) == [index for index in range(1, 130) if not 100 <= index < 104]


def test_masked_tokens_accept_vocabulary_or_size():
    tokenizer, ids = train_whole_words(["one two three four five six"]), torch.arange(13).repeat(50, 1)
    masked, by_number = (MaskedTokens(Always(ids), tokens, seed=3)[2] for tokens in (tokenizer, len(tokenizer)))
    assert values(masked) == values(by_number)


@pytest.mark.parametrize(("options", "share"), [({}, 0.15), ({"mlm_probability": 0.6}, 0.6)])
def test_masked_tokens_match_reference(options, share):
    """What is hidden at a step must not change under a run that was stopped."""
    draw = torch.Generator().manual_seed(step_seed(5, 2))
    lots, how = (torch.rand(1, 90, generator=draw)[0].tolist() for _ in range(2))
    others = torch.randint(FIRST, 90, (1, 90), generator=draw)[0].tolist()
    segments = torch.ones(1, 90)
    shown, targets, *rest = MaskedTokens(Always(torch.arange(90)[None], segments), 90, **options, seed=5)[2]
    assert rest[0] is segments
    for token in range(90):
        chosen = token >= FIRST and lots[token] <= share
        instead = MASK if how[token] < 0.8 else others[token] if how[token] >= 0.9 else token
        assert shown[0, token] == (instead if chosen else token)
        assert targets[0, token] == (token if chosen else PAD)


def test_masked_tokens_reject_unsuitable_vocabularies():
    with pytest.raises(KeyError, match=r"'\[MASK\]' is not one of the 130 tokens; of the special ones there are"):
        MaskedTokens(Always(torch.arange(9)[None]), bert_like_vocabulary(mask="<mask>"))
    with pytest.raises(ValueError, match=r"\[PAD\] has the id 7; .* 0"):
        MaskedTokens(Always(torch.arange(9)[None]), bert_like_vocabulary(padding=7))
    specials = {name: index for index, name in enumerate(SPECIAL_TOKENS)}
    with pytest.raises(ValueError, match="tokenizer has 7 tokens"):
        MaskedTokens(
            Always(torch.arange(7)[None]), SubwordTokenizer(Tokenizer(models.WordPiece(specials, unk_token="[UNK]")))
        )
