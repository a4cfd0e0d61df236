"""Batched generation of several texts at once with a causal model of transformers."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tfviz.checks import at_least, require_weights, token_ids
from tfviz.checks import seed as check_seed
from tfviz.eval_mode import eval_mode_with_grad
from tfviz.generate.hf_model import PretrainedModel, as_language_model
from tfviz.generate.sample import Sampler
from tfviz.shapes import Int


def batch(
    model: PretrainedModel,
    prompts: Sequence[Int[Tensor, "_"]],
    max_new_tokens: int,
    sampler: Sampler = Sampler(),  # noqa: B008 (it is frozen)
    *,
    seed: int = 0,
) -> list[list[int]]:
    """Return the continuation of each prompt: up to `max_new_tokens` tokens, fewer after an end token of the model.

    Continuation i is that of `ids(model, prompts[i], max_new_tokens, sampler, seed=seed + i)`. All continuations are
    computed in one batch, with shorter prompts padded on the left. Only models of Hugging Face are supported, since
    models of tfviz do not accept padding on the left.

    Args:
        model: a causal model of Hugging Face.
        prompts: the ids of each prompt, `[position]`, without padding.
        max_new_tokens: the maximum number of tokens to generate for each prompt.
        sampler: how each token is chosen.
        seed: the seed of the random numbers for the first prompt; prompt i has `seed + i`.

    Raises:
        ValueError: there are no prompts, one is empty, or the longest leaves no room for `max_new_tokens` tokens.
    """
    at_least(0, max_new_tokens=max_new_tokens)
    check_seed(seed)
    require_weights(model)
    language_model = as_language_model(model)
    if not len(prompts) or not all(prompt.dim() == 1 and len(prompt) for prompt in prompts):
        raise ValueError("prompts are empty, or one of them is; give the ids of at least one token for each text")
    for index, prompt in enumerate(prompts):
        token_ids(**{f"prompts[{index}]": prompt})
    longest = max(map(len, prompts))
    if longest + max_new_tokens > language_model.context:
        raise ValueError(
            f"the longest prompt has {longest} tokens and max_new_tokens is {max_new_tokens}, the model's context is "
            f"{language_model.context}; give shorter prompts, or a smaller max_new_tokens"
        )
    generators = [torch.Generator().manual_seed(seed + row) for row in range(len(prompts))]
    texts: list[list[int]] = [[] for _ in prompts]
    running = set(range(len(prompts)))
    with eval_mode_with_grad(language_model) as device, torch.inference_mode():
        ids = torch.stack([torch.cat((prompt.new_zeros(longest - len(prompt)), prompt)) for prompt in prompts]).to(
            device
        )
        mask = torch.stack([torch.arange(longest) >= longest - len(prompt) for prompt in prompts]).long().to(device)
        cache = language_model.new_cache()
        while running and len(texts[min(running)]) < max_new_tokens:
            logits = language_model(ids, cache, mask)[:, -1]
            for row in sorted(running):
                texts[row].append(sampler.sample(logits[row], generators[row]))
            running -= {row for row in running if texts[row][-1] in language_model.eos_token_ids}
            ids = torch.tensor([text[-1:] for text in texts], device=device)
            mask = torch.cat((mask, mask.new_ones(len(texts), 1)), dim=1)
    return texts
