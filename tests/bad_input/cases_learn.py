"""Cases of invalid training, checkpoints, schedules, losses and measures."""

SETUP = """
import math, os
from pathlib import Path
import torch
from torch import nn
from tfviz import learn, models, text
from tfviz.learn import checkpoint, evaluate, losses, schedule
inf, nan = math.inf, math.nan
ids = torch.arange(300) % 11
batches = text.Windows(ids, 7, 4)
def gpt(**options):
    torch.manual_seed(1)
    return models.GPT(11, **{"context": 7, "layers": 1, "heads": 3, "dim": 6, **options})
def fit(model=None, batches=batches, steps=3, **options):
    return list(learn.fit(model or gpt(), batches, steps, **{"device": "cpu", "progress": False, **options}))
class Constant:
    def __init__(self, *batch): self.batch = batch
    def __getitem__(self, step): return self.batch if len(self.batch) > 1 else self.batch[0]
def total(model, batch): return losses.next_token(model, batch)[0]
def with_output(change): return lambda model, batch: change(*losses.next_token(model, batch))
linear, spoiled = nn.Linear(3, 2), gpt()
nn.init.constant_(spoiled.norm.bias, nan)
fit()  # what is imported late is there
tokens = torch.ones(2, 7, dtype=torch.long)
"""
CASES = [
    # arguments of fit
    ("fit(steps=0)", "steps is 0"),
    ("fit(steps=10**12)", "steps is 1000000000000"),
    ("fit(checkpoint_every=0)", "checkpoint_every is 0"),
    ("fit(gradient_accumulation_steps=0)", "gradient_accumulation_steps is 0"),
    ("fit(lr=0)", r"lr is 0"),
    ("fit(lr=nan)", "lr is nan"),
    ("fit(lr=inf)", "lr is inf"),
    ("fit(max_grad_norm=0)", r"max_grad_norm is 0"),
    ("fit(max_grad_norm=nan)", "max_grad_norm is nan"),
    ("len(fit(max_grad_norm=inf))", "= 3"),
    ("fit(seed=-1)", "seed is -1"),
    ("fit(seed=2**64)", "seed is 18446744073709551616"),
    ("fit(device='cuda:7')", "device is 'cuda:7', which is not available here"),
    ("fit(device='gpu')", "device is 'gpu', which is not available here"),
    ("fit(device='meta')", "device is 'meta', which is not available here"),
    ("fit(device=3.5)", "device is 3.5"),
    ("len(fit(device=torch.device('cpu')))", "= 3"),
    ("fit(precision='half')", "precision is 'half'"),
    ("fit(checkpoint_dir='')", "folder is ''"),
    ("fit(checkpoint_dir='a\\0b')", "folder is 'a.x00b'"),
    ("Path('file').touch(); fit(checkpoint_dir='file')", "file is a file"),
    ("fit(checkpoint_dir='/proc/nowhere/run')", "/proc/nowhere/run.* cannot be written"),
    ("len(fit(checkpoint_dir=Path('deep/er/run')))", "= 3"),
    ("with torch.no_grad(): fit()", "gradients are disabled by torch"),
    # models and optimizers
    ("fit(linear)", r"the batch was \(int64 \[4, 7\], int64 \[4, 7\]\), the model a Linear; check that batch"),
    ("fit(nn.ReLU())", "model, a ReLU, has no weights"),
    ("fit(gpt().requires_grad_(False))", "model, a GPT, has frozen weights only"),
    ("fit(gpt().half())", "is float16"),
    ("fit(gpt().to('meta'))", "weights are on the meta device"),
    ("fit(optimizer=learn.adamw(gpt(), 0.1))", "optimizer updates no weight of this model"),
    ("it = gpt(); fit(it, optimizer=torch.optim.SGD(it.parameters(), lr=0.0))", "lr of the optimizer's group 0"),
    ("learn.adamw(nn.ReLU(), 0.1)", "has no weights"),
    ("learn.adamw(linear, 0.0)", "lr is 0"),
    ("learn.adamw(linear, 0.1, weight_decay=-1)", "weight_decay is -1"),
    ("learn.muon(linear, 0)", "lr is 0"),
    ("learn.muon(linear, 1e-2, weight_decay=nan)", "weight_decay is nan"),
    # batches
    ("fit(batches=torch.utils.data.DataLoader([1, 2, 3]))", r"batches\[0\] is a tensor of shape \[1\]; it must be"),
    ("len(fit(batches=iter([batches[0]] * 3)))", "= 3"),
    ("fit(batches=iter([batches[0]] * 2))", r"batches\[2\] does not exist .*an iterator, and can be read once"),
    ("fit(batches=3)", "batches is 3; give"),
    ("fit(steps=None)", "batches is a Windows, whose length is unknown; give steps"),
    ("len(fit(batches=[batches[0]] * 2, steps=None))", "= 2"),
    ("fit(batches=[], steps=None)", "steps is 0"),
    ("fit(batches=[batches[0]] * 2)", "batches are 2 and steps is 3"),
    ("len(fit(batches=[batches[0]] * 3))", "= 3"),
    ("fit(batches={0: batches[0]})", r"batches\[1\] does not exist \(KeyError: 1\)|batches"),
    ("fit(batches=Constant(batches[0][0], None))", r"batches\[0\] holds None"),
    ("fit(batches=Constant({'ids': tokens}))", "the batch has ids but no labels, from which the model computes"),
    ("fit(batches=Constant({'ids': [1, 2]}))", r"batches\[0\] holds a list as 'ids'; it must be a tuple of tensors"),
    ("evaluate.loss(gpt(), [{'ids': tokens}])", "the batch has ids but no labels"),
    ("evaluate.accuracy(gpt(), [{'ids': tokens}])", "the batch has ids but no labels"),
    ("evaluate.accuracy(gpt(), [{'ids': tokens, 'labels': 3}])", "a batch holds 3 as 'labels'; it must be"),
    ("losses.next_token(gpt(), {'ids': tokens})", r"the batch is a dictionary; this loss takes \(inputs, targets\)"),
    ("losses.model_loss(gpt(), (tokens, tokens))", "the batch is a tuple; this loss takes a mapping"),
    ("fit(batches=Constant(tokens))", r"batches\[0\] is a tensor of shape \[2, 7\]"),
    ("fit(batches=Constant(()))", r"batches\[0\] is "),
    ("fit(batches=Constant(tokens, tokens[:1]))", r"batches\[0\] has parts of \[2, 1\] rows"),
    ("fit(batches=Constant(tokens[:0], tokens[:0]))", r"batches\[0\] has parts of \[0, 0\] rows"),
    ("fit(batches=Constant(torch.tensor(1), tokens))", r"batches\[0\] holds a tensor of shape \[\]"),
    ("fit(batches=Constant(tokens, tokens + 10))", "label 11 is not one of the model's 11 tokens"),
    (
        "fit(linear, Constant(torch.full((4, 3), nan), torch.ones(4, 2)), loss=losses.squared_error)",
        r"the step was not taken.*; batches\[0\] holds NaN or infinity",
    ),
    # losses
    ("fit(loss=linear)", r"loss is a Linear; it must take \(model, batch\)"),
    ("fit(loss=losses.SegmentRecurrentLoss)", "loss is the class SegmentRecurrentLoss"),
    ("fit(loss=nn.CrossEntropyLoss())", "loss is a CrossEntropyLoss"),
    ("fit(loss=losses.translation)", "loss"),
    ("fit(loss=losses.adversarial)", "loss"),
    ("fit(loss=total)", "loss returns a.*ensor"),
    ("fit(loss=with_output(lambda total, count: None))", "loss returns None"),
    ("fit(loss=with_output(lambda total, count: (3.0, 4)))", r"loss returns a tuple of 3\.0 and 4"),
    ("fit(loss=with_output(lambda total, count: (total, None)))", "loss returns a tuple of .* and None"),
    ("fit(loss=with_output(lambda total, count: (total.expand(3), 3)))", r"shape \[3\] and 3"),
    ("fit(loss=with_output(lambda total, count: (total.detach(), 3)))", "does not depend on any trainable weight"),
    ("fit(loss=with_output(lambda total, count: (total, -3)))", "a count of -3"),
    ("fit(loss=with_output(lambda total, count: (total, nan)))", "a count of nan"),
    ("fit(loss=with_output(lambda total, count: (total, 0)))", "the batch has no targets"),
    ("fit(loss=with_output(lambda total, count: (total * inf, count)))", "the loss is inf.* the step was not taken"),
    ("losses.adversarial(epsilon=0)", "epsilon is 0"),
    ("losses.adversarial(epsilon=nan)", "epsilon is nan"),
    ("losses.adversarial(losses.SegmentRecurrentLoss())", "loss is a SegmentRecurrentLoss"),
    ("losses.next_token(gpt(), (tokens,))", r"this loss takes \(inputs, targets\)"),
    ("losses.next_token(gpt(), (tokens,) * 3)", "the batch has 3 parts"),
    ("losses.next_token(gpt(), tokens)", r"the batch is a tensor of shape \[2, 7\]"),
    ("losses.next_token(gpt(), (tokens, tokens.tolist()))", "a part of the batch is a list"),
    ("losses.classification(gpt(), (tokens,))", r"this loss takes \(model inputs, labels\)"),
    ("losses.classification(gpt(), (tokens, [1]))", "a part of the batch is a list"),
    ("losses.masked_lm(gpt(), (tokens,) * 3)", r"this loss takes \(ids, targets, segments, follows\)"),
    ("losses.translation()(gpt(), (tokens,) * 3)", r"this loss takes \(source, target\)"),
    ("losses.SegmentRecurrentLoss()(gpt(), (tokens,) * 3)", r"indices are \[2, 7\]; give \[2, 2\]"),
    ("losses.squared_error(linear, (torch.zeros(2, 3), torch.zeros(2, 2)))[1]", "= 4"),
    ("losses.squared_error(linear, (torch.zeros(2, 3), torch.zeros(4)))", r"values are \[4\]"),
    (
        "losses.translation()(models.Transformer(11, heads=2, dim=4, layers=1), (tokens, tokens + 10))",
        "one of the model's 11 tokens|none of its 11|is 11",
    ),
    # schedules
    ("schedule.linear(100)(5, 0)", "steps is 0"),
    ("schedule.cosine()(-1, 10)", "step is -1"),
    ("schedule.linear()(11, 10)", "step is 11"),
    ("schedule.inverse_square_root()(-1, 10)", "step is -1"),
    ("schedule.cosine(warmup=-1)", "warmup is -1"),
    ("schedule.linear(min_lr_ratio=nan)", "min_lr_ratio is nan"),
    ("schedule.cosine(min_lr_ratio=2)", "min_lr_ratio is 2"),
    ("schedule.inverse_square_root(0)", "warmup is 0"),
    ("fit(schedule=linear)", r"schedule is a Linear; it must take \(step, steps\)"),
    ("fit(schedule=schedule.cosine)", "min_lr_ratio is 3"),
    ("fit(schedule=lambda step, steps: nan)", r"schedule\(0, 3\) is nan"),
    ("fit(schedule=lambda step, steps: -0.1)", r"schedule\(0, 3\) is -0\.1"),
    ("fit(schedule=lambda step, steps: 1 + step)", r"schedule\(1, 3\) is 2"),
    ("fit(schedule=lambda step, steps: None)", r"schedule\(0, 3\) is None"),
    # saving and loading by hand
    ("checkpoint.save('run', gpt(), step=2); fit(checkpoint_dir='run')", "saved without an optimizer"),
    ("it = gpt(); checkpoint.save('run', it, learn.muon(it, 1)); fit(it, checkpoint_dir='run')", "not by a run"),
    ("it = checkpoint.load(checkpoint.save('run', gpt(dropout=0.1)), gpt())", "= {'step': 0}"),
    ("checkpoint.save('run', linear, keep=0)", "keep is 0"),
    ("checkpoint.save('run', linear, step=-5)", "step is -5"),
    ("checkpoint.save('run', linear, step=10**12)", "step is 1000000000000"),
    ("checkpoint.save('', linear)", "folder is ''"),
    ("checkpoint.save('run', gpt().to('meta'))", "weights are on the meta device"),
    ("checkpoint.save('run', gpt()); checkpoint.load('run', gpt().to('meta'))", "weights are on the meta device"),
    ("checkpoint.save('run', gpt(), torch.optim.SGD(gpt().parameters(), 0.1))", "optimizer updates no weight"),
    (
        "it = gpt(); checkpoint.save('run', it, learn.adamw(it, 1)); checkpoint.load('run', it, learn.adamw(gpt(), 1))",
        "optimizer updates no weight of this model",
    ),
    (
        "it = gpt(); fit(it, optimizer=(one := torch.optim.Adam(it.parameters()))); other = gpt(); path = "
        "checkpoint.save('run', it, one); checkpoint.load(path, other, torch.optim.Adam([*other.parameters()][::-1]))",
        "does not have the shape of its parameter",
    ),
    ("checkpoint.load('nowhere', linear)", "no checkpoint at nowhere"),
    ("checkpoint.list_checkpoints('nowhere')", r"= \[\]"),
    ("Path('file').touch(); checkpoint.save('file', linear)", "file is a file"),
    ("Path('file').touch(); checkpoint.list_checkpoints('file')", "file is a file"),
    # measures
    ("evaluate.perplexity(inf)", "nats is inf"),
    ("evaluate.perplexity(nan)", "nats is nan"),
    ("evaluate.perplexity(-1)", "nats is -1"),
    ("evaluate.perplexity(1000)", "nats is 1000"),
    ("evaluate.bits_per_byte(1.0, 3, 0)", "bytes is 0"),
    ("evaluate.bits_per_byte(1.0, -3, 2)", "tokens is -3"),
    ("evaluate.bits_per_byte(nan, 3, 2)", "nats is nan"),
    ("evaluate.loss(gpt(), [])", "no batch to evaluate"),
    ("evaluate.accuracy(linear, [])", "no batch to evaluate"),
    ("evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0, 5]))])", "label 5 is not one"),
    ("evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0, -100]))])", "label -100 is not one"),
    ("evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0.5, 1]))])", "labels are float32"),
    ("evaluate.accuracy(gpt(), [(tokens,)])", r"this loss takes \(model inputs, labels\)"),
    ("evaluate.accuracy(spoiled, [batches[0]])", "the model's logits are not finite"),
    ("evaluate.accuracy(linear, [(tokens, tokens[:, 0])])", r"the batch was \(int64 \[2, 7\], int64 \[2\]\)"),
    ("evaluate.accuracy(nn.Identity(), [(torch.eye(3), torch.tensor([0, 1, 2]))])", r"= 1\.0"),
    ("evaluate.loss(spoiled, [batches[0]])", "the loss is nan"),
    ("evaluate.loss(linear, [batches[0]])", "the model a Linear; check that batch, model and loss fit"),
    ("evaluate.loss(gpt(), [batches[0]], linear)", r"loss is a Linear; it must take \(model, batch\)"),
    ("evaluate.loss(gpt().to('meta'), [(tokens, tokens)])", "weights are on the meta device"),
    (
        "evaluate.loss(models.BERT(11, layers=1, heads=3, dim=6), [(tokens, tokens * 0)], losses.masked_lm)",
        "or all targets are padding",
    ),
    ("evaluate.bleu('a cat', 'a cat')", "are lists of texts, not one string"),
    ("evaluate.bleu(['a'], ['a', 'b'])", "there are 1 texts, 2 references"),
    ("evaluate.exact_match([], [])", "there are 0 texts, 0 references"),
    ("evaluate.alignment_error_rate([], [])", "there are no links to measure"),
    ("evaluate.alignment_error_rate(['01'], ['01'])", "'01'|found"),
    ("evaluate.alignment_error_rate([(0.7, 1.2)], [(0, 1)])", r"0\.7|found"),
    ("evaluate.alignment_error_rate([(0, -1)], [(0, 1)])", r"found holds \(0, -1\)"),
    ("evaluate.alignment_error_rate([(0, 0)], [(5, 0, 0)])", "some links have 2 numbers and some have 3"),
    ("evaluate.argmax_alignment(torch.eye(2), [(5, 0)])", r"gold holds \(5, 0\)"),
    ("evaluate.argmax_alignment(torch.rand(3, 4), [(1, 9)])", r"gold holds \(1, 9\)"),
    ("evaluate.argmax_alignment(torch.rand(3, 4), [(0, 1, 1)])", r"gold holds \(0, 1, 1\)"),
    ("evaluate.argmax_alignment(torch.ones(2, 2, 2), [(0, 0)])", r"pattern is \[2, 2, 2\]"),
    ("evaluate.argmax_alignment(torch.ones(2, 2).bool(), [(0, 0)])", "pattern is torch.bool"),
    ("evaluate.argmax_alignment(torch.ones(2, 2, device='meta'), [(0, 0)])", "pattern is a tensor on the meta device"),
    ("evaluate.argmax_alignment(torch.full((2, 2), nan), [(0, 0)])", "pattern .* holds NaN"),
]
