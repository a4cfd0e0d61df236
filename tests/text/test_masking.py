"""Batches with hidden tokens."""

import pytest
import torch

from tfviz.text import WordDropout
from tfviz.text.subwords import PAD, UNK

IDS = torch.cat([torch.randint(7, 99, (40, 50)), torch.zeros(40, 3, dtype=torch.long)], 1)
BATCHES = [(IDS, torch.arange(40))] * 3


def test_a_share_of_the_words_is_unknown_and_padding_stays():
    ids, labels = WordDropout(BATCHES, 0.3, seed=5)[1]
    assert labels.tolist() == list(range(40))
    assert (ids[:, 50:] == PAD).all()
    changed = ids != IDS
    assert (ids[changed] == UNK).all()
    assert 0.27 < changed[:, :50].float().mean() < 0.33


def test_other_words_at_each_step_and_the_same_again_for_a_seed():
    dropped = WordDropout(BATCHES, 0.5, seed=5)
    assert torch.equal(dropped[0][0], WordDropout(BATCHES, 0.5, seed=5)[0][0])
    assert not torch.equal(dropped[0][0], dropped[1][0])
    assert not torch.equal(dropped[0][0], WordDropout(BATCHES, 0.5, seed=6)[0][0])
    assert torch.equal(WordDropout(BATCHES, 0.0)[2][0], IDS)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_must_be_a_share(share):
    with pytest.raises(ValueError, match="share is"):
        WordDropout(BATCHES, share)
