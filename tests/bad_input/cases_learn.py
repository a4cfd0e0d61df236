"""Training, checkpoints, schedules, losses and measures that are asked for what cannot be."""

SETUP = """
import json, math, os, warnings
from pathlib import Path
import torch
from torch import nn
from safetensors.torch import save_file
from tfviz import learn, models, sealed, text
from tfviz.learn import checkpoint, evaluate, losses, schedule
inf, nan = math.inf, math.nan
ids = torch.arange(300) % 11
batches = text.Windows(ids, 7, 4)
def gpt(**parts):
    torch.manual_seed(1)
    return models.GPT(11, **{"context": 7, "layers": 1, "heads": 3, "dim": 6, **parts})
def fit(model=None, given=batches, steps=3, **how):
    return list(learn.fit(model or gpt(), given, steps, **{"device": "cpu", "progress": False, **how}))
def saved(**how):
    fit(checkpoint_dir="run", **how)
    return checkpoint.list_checkpoints("run")[-1]
def altered(name, change):
    path = saved() / name
    path.write_bytes(change(path.read_bytes()))
    return fit(checkpoint_dir="run")
def resealed(change):
    path = saved() / "state.json"
    value = files.read_json(path)
    change(value)
    files.write_json(path, value)
    return fit(checkpoint_dir="run")
def pipe(name):
    path = saved() / name
    path.unlink()
    os.mkfifo(path)
    return fit(checkpoint_dir="run")
class Of:
    def __init__(self, *batch): self.batch = batch
    def __getitem__(self, step): return self.batch if len(self.batch) > 1 else self.batch[0]
def total(model, batch): return losses.next_token(model, batch)[0]
def by(loss): return lambda model, batch: loss(*losses.next_token(model, batch))
def held():
    steps = learn.fit(gpt(), batches, 3, device="cpu", progress=False, checkpoint_dir="run")
    next(steps)
    return steps
def mine(step):
    os.makedirs(f"run/step-{step:09d}")
    Path(f"run/step-{step:09d}/mine.txt").write_text("mine")
linear, spoiled = nn.Linear(3, 2), gpt()
nn.init.constant_(spoiled.norm.bias, nan)
fit()  # what is imported late is there
tokens = torch.ones(2, 7, dtype=torch.long)
"""
STATE = "is not a whole checkpoint: .*; delete it"
CASES = [
    ("schedule.linear(100)(5, 0)", "steps is 0; it must be at least 1"),
    ("schedule.cosine()(-1, 10)", "step is -1; it must be from 0 to 10"),
    ("schedule.linear()(11, 10)", "step is 11; it must be from 0 to 10"),
    ("schedule.inverse_square_root()(-1, 10)", "step is -1"),
    # what fit is asked for
    ("fit(steps=0)", "steps is 0; it must be at least 1"),
    ("fit(steps=-3)", "steps is -3; it must be at least 1"),
    ("fit(steps=10**12)", "steps is 1000000000000; it must be from 1 to 999999999"),
    ("fit(steps=1.5)", r"steps is 1\.5; give a whole number"),
    (
        "fit(linear)",
        r"the batch was \(int64 \[4, 7\], int64 \[4, 7\]\), the model a Linear: do batch, model and loss fit",
    ),
    ("fit(loss=linear)", r"loss is a Linear; it must take \(model, batch\), but: too many positional arguments"),
    (
        "fit(loss=losses.SegmentRecurrentLoss)",
        r"loss is the class Carried; give a function, or an instance, Carried\(\.\.\.\)",
    ),
    ("fit(schedule=linear)", r"schedule is a Linear; it must take \(step, steps\), but: too many positional arguments"),
    ("fit(checkpoint_every=0)", "every is 0; it must be at least 1"),
    ("fit(checkpoint_every=-1)", "every is -1; it must be at least 1"),
    ("fit(gradient_accumulation_steps=0)", "accumulate is 0; it must be at least 1"),
    ("fit(lr=0)", r"rate is 0\.0; it must be above 0"),
    ("fit(lr=-1.0)", r"rate is -1\.0; it must be above 0"),
    ("fit(lr=nan)", "rate is nan; it must be above 0"),
    ("fit(lr=inf)", "rate is inf; it must be finite and above 0"),
    ("fit(lr='fast')", "rate is 'fast'; give a number"),
    ("fit(max_grad_norm=0)", r"clip is 0\.0; it must be above 0"),
    ("fit(max_grad_norm=nan)", "clip is nan; it must be above 0"),
    ("len(fit(max_grad_norm=inf))", "= 3"),
    ("fit(seed=-1)", "seed is -1; it must be from 0 to"),
    ("fit(seed=2**64)", "seed is 18446744073709551616; give a whole number below 2"),
    ("fit(device='cuda:7')", "device is 'cuda:7'; it can be 'cpu'"),
    ("fit(precision='half')", "precision is 'half'; it can be 'float32' or 'bfloat16'"),
    ("fit(gradient_checkpointing=True, model=linear)", r"Linear has no nn\.ModuleList"),
    ("fit(folder='')", "folder is ''; give the name of a folder"),
    ("fit(folder='a\\0b')", "folder is 'a.x00b'; give the name of a folder"),
    ("Path('file').touch(); fit(folder='file')", "file is a file; give the name of a folder"),
    ("fit(folder='/proc/nowhere/run')", "/proc/nowhere/run cannot be written"),
    ("len(fit(folder=Path('deep/er/run')))", "= 3"),
    # models and optimizers
    ("fit(nn.ReLU())", "model, a ReLU, has no weights: there is nothing to train"),
    ("fit(gpt().requires_grad_(False))", "model, a GPT, has frozen weights only"),
    ("fit(optimizer=learn.adamw(gpt(), 0.1))", "optimizer moves no weight of this model; make it of model.parameters"),
    ("fit(optimizer='adam')", "optimizer is 'adam'; give"),
    ("learn.adamw(nn.ReLU(), 0.1)", "has no weights"),
    ("learn.adamw(linear, 0.0)", r"rate is 0\.0; it must be above 0"),
    ("learn.adamw(linear, 0.1, weight_decay=-1)", "decay is -1.0; it must be at least 0"),
    ("learn.adamw(linear, 0.1, weight_decay=nan)", "decay is nan; it must be at least 0"),
    # batches
    (
        "fit(given=torch.utils.data.DataLoader([1, 2, 3]))",
        "batches is a DataLoader; give batches by number, such as .*, or a list",
    ),
    ("fit(given=iter([batches[0]] * 3))", "batches is a list_iterator; give batches by number"),
    ("fit(given=[batches[0]] * 2)", "batches are 2 and steps is 3; give as many, or steps=2"),
    ("len(fit(given=[batches[0]] * 3))", "= 3"),
    ("fit(given={0: batches[0]})", r"batches\[1\] is not there \(KeyError: 1\); give batches for all steps"),
    (
        "fit(given=Of(batches[0][0], None))",
        r"batches\[0\] is a tuple of a tensor .*, None; it must be a tuple of tensors",
    ),
    ("fit(given=Of({'ids': tokens}))", r"batches\[0\] is a dictionary; it must be a tuple of tensors whose first axis"),
    ("fit(given=Of(tokens))", r"batches\[0\] is a tensor of shape \[2, 7\]; it must be a tuple of tensors"),
    ("fit(given=Of(None))", r"batches\[0\] is None; it must be a tuple of tensors"),
    ("fit(given=Of(()))", r"batches\[0\] is .*; it must be a tuple of tensors"),
    ("fit(given=Of(tokens, tokens[:1]))", r"batches\[0\] has parts of \[2, 1\] rows; they must have as many"),
    ("fit(given=Of(tokens[:0], tokens[:0]))", r"batches\[0\] has parts of \[0, 0\] rows; they must .* at least 1"),
    (
        "fit(given=Of(torch.tensor(1), tokens))",
        r"batches\[0\] is a tuple of .*; it must be a tuple of tensors whose first",
    ),
    ("fit(given=Of(tokens, tokens + 10))", "target 11 is none of the model's 11 tokens"),
    (
        "fit(linear, Of(torch.full((4, 3), nan), torch.ones(4, 2)), loss=losses.squared_error)",
        r"the step was not taken.*; batches\[0\] holds such numbers",
    ),
    # losses
    ("fit(loss=total)", "loss gives a.*ensor.*; it must give a sum and how much it is a sum of, such as"),
    ("fit(loss=by(lambda total, count: None))", "loss gives None; it must give a sum"),
    ("fit(loss=by(lambda total, count: (3.0, 4)))", r"loss gives a tuple of 3\.0 and 4; it must give a sum"),
    ("fit(loss=by(lambda total, count: (total, None)))", "loss gives a tuple of .* and None; it must give a sum"),
    ("fit(loss=by(lambda total, count: (total.expand(3), 3)))", r"shape \[3\] and 3; it must give a sum"),
    ("fit(loss=by(lambda total, count: (total.detach(), 3)))", "depends on no weight of the model"),
    ("fit(loss=by(lambda total, count: (total, -3)))", "loss gives a count of -3; it must be at least 0"),
    ("fit(loss=by(lambda total, count: (total, nan)))", "loss gives a count of nan"),
    ("fit(loss=by(lambda total, count: (total, 0)))", "the batch asks for nothing"),
    ("fit(loss=by(lambda total, count: (total * inf, count)))", "the loss is inf.* the step was not taken"),
    ("with torch.no_grad(): fit()", "gradients are switched off here, by torch.no_grad"),
    ("fit(loss='next')", "loss is 'next'; give a function"),
    ("losses.translation(1.0)", r"smoothing is 1\.0; it is a share"),
    ("losses.translation(nan)", "smoothing is nan; it is a share"),
    ("losses.adversarial(size=0)", "size is 0.0; it must be above 0"),
    ("losses.adversarial(size=nan)", "size is nan"),
    ("losses.adversarial(size='far')", "size is 'far'; give a"),
    ("losses.scheduled_sampling(1.5)", r"share is 1\.5; it must lie between 0 and 1"),
    ("losses.scheduled_sampling(nan)", "share is nan; it must lie between"),
    (
        "losses.translation()(models.Transformer(11, heads=2, dim=4, layers=1), (tokens, tokens + 10))",
        "none of the model's 11 tokens|none of its 11|is 11",
    ),
    # schedules
    ("fit(schedule=lambda step, steps: nan)", r"schedule\(0, 3\) is nan; it must be a share of the rate, from 0 to 1"),
    ("fit(schedule=lambda step, steps: -0.1)", r"schedule\(0, 3\) is -0\.1; it must be a share"),
    ("fit(schedule=lambda step, steps: 1 + step)", r"schedule\(1, 3\) is 2; it must be a share"),
    ("fit(schedule=lambda step, steps: None)", r"schedule\(0, 3\) is None; it must be a share"),
    ("schedule.cosine(warmup=-1)", "warmup is -1; it must be at least 0"),
    ("schedule.cosine(floor=2)", "floor is 2.0; it must be from 0 to 1"),
    ("schedule.linear(warmup=-1)", "warmup is -1; it must be at least 0"),
    ("schedule.linear(floor='low')", "floor is 'low'; give a number"),
    ("learn.muon(linear, 0)", "rate is 0.0; it must be above 0"),
    ("learn.muon(linear, 1e-2, weight_decay=-1)", "decay is -1.0; it must be at least 0"),
    ("learn.muon('gpt', 1e-2)", r"learn\.muon: model is 'gpt'; give"),
    ("learn.muon(torch.nn.ReLU(), 1e-2)", "ReLU, has no weights"),
    ("schedule.cosine(floor=nan)", "floor is nan; it must be from 0 to 1"),
    ("schedule.inverse_square_root(0)", "warmup is 0; it must be at least 1"),
    # a folder of another run
    (
        "saved(); fit(checkpoint_dir='run', steps=4)",
        "run holds a run with steps 3, this one asks for 4; give it another folder",
    ),
    ("saved(); fit(checkpoint_dir='run', lr=0.1)", r"holds a run with rate 0\.003, this one asks for 0\.1"),
    ("saved(); fit(checkpoint_dir='run', seed=4)", "holds a run with seed 0, this one asks for 4"),
    ("saved(); fit(checkpoint_dir='run', max_grad_norm=0.5)", r"holds a run with clip 1\.0, this one asks for 0\.5"),
    ("saved(); fit(gpt(heads=2), checkpoint_dir='run')", "heads is 3 there and 2 here; build the model as it was"),
    (
        "from tfviz.layers import positions as p; path = checkpoint.save('run', gpt(positions=p.Rotary)); "
        "checkpoint.load(path, gpt(positions=p.ALiBi))",
        "positions is Rotary there and ALiBi here",
    ),
    (
        "from tfviz.layers import masks; path = checkpoint.save('run', gpt(mask=masks.window(3))); "
        "checkpoint.load(path, gpt(mask=masks.window(2)))",
        r"mask.* there and .* here",
    ),
    ("it = checkpoint.load(checkpoint.save('run', gpt(dropout=0.1)), gpt())", "= {'step': 0}"),
    ("saved(); fit(given=text.Windows(ids, 7, 5), checkpoint_dir='run')", "batches.batch 4, this one asks for 5"),
    ("saved(); fit(given=text.Windows(ids, 5, 4), checkpoint_dir='run')", "batches.length 7, this one asks for 5"),
    (
        "saved(); fit(given=text.Windows(ids, 7, 4, seed=3), checkpoint_dir='run')",
        "batches.seed 0, this one asks for 3",
    ),
    (
        "saved(); fit(given=text.Windows(ids.flip(0), 7, 4), checkpoint_dir='run')",
        "batches.ids int64 .*, this one asks for int64",
    ),
    ("saved(); fit(loss=by(lambda *two: two), checkpoint_dir='run')", "with loss next_token, this one asks for by"),
    (
        "saved(); fit(schedule=schedule.constant, checkpoint_dir='run')",
        r"with schedule\(2, 3\) .*, this one asks for 1",
    ),
    (
        "steps = held(); fit(checkpoint_dir='run')",
        "run is in use by another training: wait until it ends, or give another folder",
    ),
    ("checkpoint.save('run', gpt(), step=2); fit(checkpoint_dir='run')", "saved without an optimizer|is of no run"),
    # checkpoints that were altered
    (
        "altered('model.safetensors', lambda b: b[:-1] + bytes([b[-1] ^ 1]))",
        r"model\.safetensors was altered or is damaged",
    ),
    ("altered('optimizer.safetensors', lambda b: b[:-1] + bytes([b[-1] ^ 1]))", "optimizer.safetensors was altered"),
    ("altered('state.json', lambda b: b.replace(b'3', b'4', 1))", "state.json was altered or is damaged.*delete it"),
    ("altered('state.json', lambda b: b'[' * 100_000)", "nested too deep.*delete it"),
    ("altered('state.json', lambda b: b'')", STATE),
    ("altered('state.json', lambda b: b'{}')", STATE),
    ("altered('state.json', lambda b: b'[1, 2]')", STATE),
    ("altered('model.safetensors', lambda b: b'')", STATE),
    ("altered('model.safetensors', lambda b: b[:len(b) // 2])", STATE),
    ("pipe('model.safetensors')", r"there is no file model\.safetensors; delete it"),
    ("pipe('optimizer.safetensors')", r"there is no file optimizer\.safetensors; delete it"),
    ("pipe('state.json')", "no checkpoint at run"),
    ("saved().rename('run/step-000000009'); fit(checkpoint_dir='run')", "what it holds is of step 3; delete it"),
    ("resealed(lambda v: v.update(step=9))", "what it holds is of step 9; delete it"),
    ("resealed(lambda v: v['state']['history'][0].pop())", r"a history of \[2, 3, 3\] numbers for 3 steps; delete it"),
    ("resealed(lambda v: v['state'].pop('history'))", "is of no run"),
    ("resealed(lambda v: v.pop('model'))", STATE),
    ("resealed(lambda v: v.pop('files'))", STATE),
    # saving and loading by hand
    ("checkpoint.save('run', linear, keep=0)", "keep is 0; it must be at least 1"),
    ("checkpoint.save('run', linear, keep=-1)", "keep is -1; it must be at least 1"),
    ("checkpoint.save('run', linear, step=-5)", "step is -5; it must be from 0 to 999999999"),
    ("checkpoint.save('run', linear, step=10**12)", "step is 1000000000000; it must be from 0 to 999999999"),
    ("checkpoint.save('', linear)", "folder is ''; give the name of a folder"),
    ("checkpoint.save('run', linear, note=nan)", "state holds what JSON cannot: .*; give finite numbers"),
    ("checkpoint.save('run', linear, note=torch.ones(2))", "state holds what JSON cannot: .*Tensor"),
    (
        "checkpoint.save('run', nn.Linear(3, 2).apply(lambda m: nn.init.constant_(m.bias, nan)))",
        "bias is not finite after 0",
    ),
    ("checkpoint.save('run', nn.Linear(3, 2).apply(lambda m: nn.init.constant_(m.bias, inf)))", "bias is not finite"),
    (
        "checkpoint.load(checkpoint.save('run', linear), nn.Linear(3, 2).half())",
        "bias has dtype float16 in the model and float32",
    ),
    (
        "checkpoint.load(checkpoint.save('run', linear), nn.Linear(2, 3))",
        r"has shape \[\d, \d\] in the model and|shape \[3\]",
    ),
    (
        "it = nn.Linear(3, 2); checkpoint.load(checkpoint.save('run', linear), it, learn.adamw(it, 1.0))",
        "saved without an optimizer",
    ),
    (
        "path = checkpoint.save('run', linear, learn.adamw(linear, 1.0)); "
        "checkpoint.load(path, linear, torch.optim.SGD(linear.parameters()))",
        "of another optimizer: its class is AdamW there and SGD here; make it as it was",
    ),
    (
        "path = checkpoint.save('run', linear, torch.optim.Adam(linear.parameters())); "
        "checkpoint.load(path, linear, torch.optim.Adam([linear.bias, linear.weight]))",
        r"of another optimizer: its 0\.shapes is \[\[2, 3\], \[2\]\] there",
    ),
    ("checkpoint.load('nowhere', linear)", "no checkpoint at nowhere; a checkpoint is a folder that holds state.json"),
    ("checkpoint.load('', linear)", "folder is ''; give the name of a folder"),
    ("checkpoint.list_checkpoints('nowhere')", r"= \[\]"),
    ("checkpoint.load(checkpoint.save('run', linear, step=3, keep=1), linear)", "= {'step': 3}"),
    (
        "Path('run').touch(); checkpoint.save('run', linear)",
        "run is a file; give the name of a folder",
    ),
    # measures
    ("evaluate.perplexity(inf)", r"nats is inf; it must be from 0 to 709"),
    ("evaluate.perplexity(nan)", r"nats is nan; it must be from 0 to 709"),
    ("evaluate.perplexity(-1)", r"nats is -1.0; it must be from 0 to 709"),
    ("evaluate.perplexity(1000)", r"nats is 1000.0; it must be from 0 to 709"),
    ("evaluate.bits_per_byte(1.0, 3, 0)", "bytes is 0; it must be at least 1"),
    ("evaluate.bits_per_byte(1.0, -3, 2)", "tokens is -3; it must be at least 0"),
    ("evaluate.bits_per_byte(nan, 3, 2)", "nats is nan; it must be at least 0"),
    ("evaluate.loss(gpt(), [])", "no batch to measure on"),
    ("evaluate.accuracy(linear, [])", "no batch to measure on"),
    (
        "evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0, 5]))])",
        "label 5 is none of the model's 2 classes",
    ),
    ("evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0, -100]))])", "label -100 is none of"),
    (
        "evaluate.accuracy(linear, [(torch.ones(2, 3), torch.tensor([0.5, 1]))])",
        "labels are float32 .*; give whole numbers",
    ),
    ("evaluate.loss(spoiled, [batches[0]])", "the loss is nan: the model's weights or the batches hold such numbers"),
    (
        "evaluate.loss(linear, [batches[0]])",
        r"the batch was \(int64 \[4, 7\], int64 \[4, 7\]\), the model a Linear: do batch",
    ),
    (
        "evaluate.accuracy(linear, [(tokens, tokens[:, 0])])",
        r"the batch was \(int64 \[2, 7\], int64 \[2\]\), the model a Lin",
    ),
    ("evaluate.loss(gpt(), [batches[0]], linear)", r"loss is a Linear; it must take \(model, batch\), but: too many"),
    ("evaluate.accuracy(nn.Identity(), [(torch.eye(3), torch.tensor([0, 1, 2]))])", r"= 1\.0"),
    ("evaluate.bleu('a cat', 'a cat')", "one string where many texts are meant|give a list"),
    ("evaluate.bleu([], [])", "there are 0 texts and 0 references"),
    ("evaluate.bleu(['a'], ['a', 'b'])", "there are 1 texts and 2 references; give as many"),
    ("evaluate.exact_match(['a'], [])", "there are 1 texts and 0 references"),
    ("evaluate.bleu_by_length(['a'], ['a'], ['a'], edges=[5, 3])", r"edges are \[5, 3\]; they must rise"),
    ("evaluate.bleu_by_length(['a'], ['a'], ['a'], edges=[0])", r"edges are \[0\]; they must rise"),
    ("evaluate.alignment_error_rate([], [])", "there is no link to measure on"),
    ("evaluate.alignment_error_rate(['01'], ['01'])", r"'01'; (a link is|give)"),
    ("evaluate.alignment_error_rate('01', '01')", "'0'; (a link is|give)|'01'; give"),
    ("evaluate.alignment_error_rate([(0.7, 1.2)], [(0, 1)])", r"0\.7.*; (a link is|give)"),
    ("evaluate.alignment_error_rate([(0, -1)], [(0, 1)])", r"found holds \(0, -1\); a link is"),
    ("evaluate.links(torch.eye(2), [(5, 0)])", "gold speaks of word 5; the pattern has 2 target words"),
    ("evaluate.links(torch.ones(2, 2, 2), [(0, 0)])", r"pattern is \[2, 2, 2\]; it must be \[target source\]"),
    ("evaluate.links(torch.ones(2, 2).bool(), [(0, 0)])", r"pattern is torch\.bool; give weights"),
    ("evaluate.links(torch.ones(2, 2, device='meta'), [(0, 0)])", "pattern is a tensor on the meta device"),
    ("evaluate.links(torch.full((2, 2), nan), [(0, 0)])", "pattern holds nan"),
    ("fit(gpt().half())", "is float16, too coarse to be trained"),
    ("fit(loss=nn.CrossEntropyLoss())", "loss is a CrossEntropyLoss, which takes predictions and targets"),
    ("evaluate.loss(gpt(), 3)", "learn\\.evaluate\\.loss: batches is 3"),
    (
        "it = gpt(); fit(it, optimizer=torch.optim.SGD(it.parameters(), lr=0.0))",
        "the rate of the optimizer's group 0 is 0.0; it must be above 0|must be .*above 0",
    ),
    (
        "it = gpt(); it.tokens.weight.data.fill_(nan); evaluate.accuracy(it, [batches[0]])",
        "the model's logits are not finite",
    ),
    ("it = gpt(); fit(it, optimizer=torch.optim.LBFGS(it.parameters()))", "optimizer is an LBFGS"),
    ("fit(given=Of((tokens,)))", "this loss takes \\(inputs, targets\\)"),
    ("fit(given=Of((tokens,) * 3))", "the batch has 3 parts; this loss takes \\(inputs, targets\\)"),
    ("losses.classification(gpt(), (tokens,))", "this loss takes \\(what the model takes, labels\\)"),
    ("losses.squared_error(gpt(), (tokens,))", "this loss takes \\(what the model takes, values\\)"),
    ("losses.masked_lm(gpt(), (tokens,))", "this loss takes \\(ids, targets\\)"),
    (
        "losses.masked_lm(gpt(), (tokens,) * 3)",
        "the batch has 3 parts; this loss takes \\(ids, targets, segments, follows\\)",
    ),
    ("losses.translation()(gpt(), (tokens,) * 3)", "this loss takes \\(source, target\\)"),
    ("losses.scheduled_sampling(0.5)(gpt(), (tokens,))", "this loss takes \\(source, target\\)"),
    ("losses.SegmentRecurrentLoss()(gpt(), (tokens,) * 2)", "this loss takes \\(inputs, targets, places\\)"),
    ("losses.SegmentRecurrentLoss()(gpt(), (tokens,) * 3)", "places are \\[2, 7\\]; give \\[2, 2\\]"),
    (
        "losses.next_token(gpt(), tokens)",
        "the batch is a tensor of shape \\[2, 7\\]; this loss takes \\(inputs, targets\\)",
    ),
    ("evaluate.accuracy(gpt(), [(tokens,)])", "this loss takes|what the model takes, labels"),
    ("fit(schedule=schedule.cosine)", "schedule is the function cosine, which makes one; give schedule.cosine"),
    ("fit(schedule=schedule.inverse_square_root)", "which makes one; give schedule.inverse_square_root"),
    ("fit(loss=losses.adversarial)", "loss is the function adversarial, which makes one; give losses.adversarial"),
    ("fit(loss=losses.translation)", "which makes one; give losses.translation"),
    (
        "evaluate.loss(gpt(), [(tokens, tokens)], losses.scheduled_sampling)",
        "which makes one; give losses.scheduled_sampling",
    ),
    ("losses.adversarial(losses.translation)", "which makes one; give losses.translation"),
    ("losses.adversarial(losses.SegmentRecurrentLoss())", "loss is a Carried, which remembers"),
    ("evaluate.loss(gpt().to('meta'), [(tokens, tokens)])", "weights are on the meta device, without numbers"),
    ("fit(gpt().to('meta'))", "weights are on the meta device, without numbers"),
    ("schedule.share(None, 0, 3)", "schedule is None; give a function"),
    ("checkpoint.as_folder(None)", "path is None; give a string or a path"),
    ("evaluate.links(torch.rand(3, 4), [(1, 9)])", "gold speaks of source word 9; the pattern has 4"),
    (
        "checkpoint.save('run', gpt(), torch.optim.SGD(gpt().parameters(), 0.1))",
        "optimizer moves no weight of this model",
    ),
    ("fit(given=text.Windows)", "batches is the class Windows; .*: an instance, Windows"),
    (
        "it = gpt(); checkpoint.save('run', it, learn.adamw(it, 1)); checkpoint.load('run', it, learn.adamw(gpt(), 1))",
        "optimizer moves no weight of this model",
    ),
    ("checkpoint.save('run', gpt()); checkpoint.load('run', gpt().to('meta'))", "weights are on the meta device"),
    ("checkpoint.save('run', gpt().to('meta'))", "weights are on the meta device"),
    (
        "mine(1); checkpoint.save('run', gpt(), step=5, keep=1); it = os.listdir('run/step-000000001')",
        "= \\['mine.txt'\\]",
    ),
    ("mine(5); checkpoint.save('run', gpt(), step=5)", "is a folder that is no checkpoint"),
    ("losses.classification(gpt(), (tokens, [1]))", "a part of the batch is a list; .*, all tensors"),
    ("losses.next_token(gpt(), (tokens, tokens.tolist()))", "a part of the batch is a list"),
    (
        "evaluate.loss(models.BERT(11, layers=1, heads=3, dim=6), [(tokens, tokens * 0)], losses.masked_lm)",
        "or all its targets are padding",
    ),
    ("schedule.share(schedule.cosine, 0, 10)", "schedule is the function cosine, which makes one"),
    ("evaluate.eval_mode(None).__enter__()", "model is None; give a model"),
    ("evaluate.accuracy(gpt(), [(tokens, gpt()(tokens).argmax(-1) * 0 + 20)])", "label 20 is none of the model's 11"),
    ("it = gpt().eval(); it = evaluate.accuracy(it, [(tokens, it(tokens).argmax(-1))])", "= 1.0$"),
    (
        "evaluate.alignment_error_rate([(0, 0)], [(5, 0, 0)])",
        "some links are of 2 numbers and some of 3",
    ),
    ("evaluate.links(torch.rand(3, 4), [(0, 1, 1)])", "gold holds \\(0, 1, 1\\); links of one text are"),
    ("losses.squared_error(linear, (torch.zeros(2, 3), torch.zeros(2, 2)))[1]", "= 4"),
    ("evaluate.loss(gpt(), [(tokens, tokens)], losses.translation())", "do batch, model and loss fit"),
    ("Path('file').touch(); checkpoint.save('file', gpt())", "file is a file; give the name of a folder"),
    ("Path('file').touch(); checkpoint.list_checkpoints('file')", "file is a file; give the name of a folder"),
    ("schedule.linear()(True, 10)", "step is True; give a number"),
]
