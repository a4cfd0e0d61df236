"""Cases of invalid arguments of `view.classify_image`."""

SETUP = """
import torch
from torch import nn
from PIL import Image
from tfviz import view
nan = float("nan")
class ViT(nn.Module):
    def __init__(self, tokens=4):
        super().__init__()
        self.tokens, self.embed, self.head = tokens, nn.Conv2d(3, 8, 2, 2), nn.Linear(8, 2)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    def forward(self, pixels): return self.head(self.layer(self.embed(pixels).flatten(2).mT[:, : self.tokens]).mean(1))
class Peeks(ViT):
    def forward(self, pixels): return super().forward(pixels) if pixels.sum() > 0 else -super().forward(pixels)
def sick():
    model = ViT()
    model.head.bias.data.fill_(nan)
    return model
def ask(**more):
    given = {"model": ViT(), "pixels": torch.rand(3, 4, 4), "labels": ["no", "yes"]}
    return view.classify_image(**{**given, **more})
"""
CASES = [
    ("ask()", "= highest probability"),
    ("ask(pixels=torch.rand(1, 3, 4, 4).double().float(), image=torch.rand(8, 8), title='</script>')", "= highest"),
    ("ask(model='vit')", "model"),
    ("ask(pixels=None)", "pixels"),
    (
        "ask(pixels=torch.rand(4, 4))",
        r"ValueError: pixels has the shape \[4, 4\]; give one picture, \[channel, height, width\]",
    ),
    ("ask(pixels=torch.rand(2, 3, 4, 4))", r"ValueError: pixels has the shape \[2, 3, 4, 4\]; give one picture"),
    ("ask(pixels=torch.rand(3, 0, 4))", r"pixels has the shape \[3, 0, 4\]"),
    ("ask(pixels=torch.ones(3, 4, 4).long())", "pixels are torch.int64; give floats"),
    ("ask(pixels=torch.zeros(3, 4, 4, dtype=torch.uint8))", "ValueError: pixels are torch.uint8; give floats"),
    ("ask(pixels=torch.full((3, 4, 4), nan))", "ValueError: pixels holds numbers that are not finite"),
    ("ask(pixels=torch.rand(3, 4, 4, device='meta'))", "meta"),
    ("ask(pixels=torch.rand(1, 4, 4))", r"ValueError: ViT cannot read pixels of the shape \[1, 1, 4, 4\]: "),
    ("ask(pixels=torch.rand(3, 1, 4))", r"ValueError: ViT cannot read pixels of the shape \[1, 3, 1, 4\]: "),
    ("ask(pixels=torch.rand(3, 4, 4).double())", r"ViT cannot read pixels of the shape \[1, 3, 4, 4\]"),
    (
        "ask(labels=['no', 'yes', 'so'])",
        r"ValueError: labels has 3 names, and for one picture the model returns .* \[1, 2\]; it must be \[1, 3\]",
    ),
    ("ask(labels=['no', 'no'])", "ValueError: labels are .*, with a duplicate"),
    ("ask(labels='ab')", "labels is 'ab'"),
    ("ask(model=sick())", "the model's logits are not finite"),
    ("ask(model=ViT(3))", r"the patches of ViT cannot be found: its 3 tokens fit no grid of 4 × 4 pixels; give grid="),
    ("ask(grid=(3, 3))", "ValueError: the patches of ViT cannot be found: its 4 tokens fit no 3 × 3 patches of 4 × 4"),
    ("ask(grid=(0, 3))", r"ValueError: grid\[0\] is 0"),
    ("ask(grid=(-1, 3))", r"grid\[0\] is -1"),
    (
        "ask(model=nn.Conv2d(3, 2, 4))",
        "ValueError: the patches of Conv2d cannot be found, since no attention was captured in it; give a vision",
    ),
    ("ask(model=nn.Flatten())", "ValueError: Flatten has no weights"),
    ("ask(model=Peeks())", "cannot be exported"),
    ("ask(model=ViT().half(), pixels=torch.rand(3, 4, 4).half())", "float16, and a page computes in float32"),
    ("ask(image=torch.rand(8, 4, 3))", "ValueError: image is 4 × 8, and the model's pixels 4 × 4"),
    ("ask(image='nowhere.png')", "there is no file nowhere.png"),
    ("ask(dtype='float8')", "ValueError: dtype is 'float8'"),
    ("ask(max_bytes=100)", "ValueError: the model takes .* bytes in a page, max_bytes is 100"),
    ("ask(examples={'x': {'text': 'a'}})",
     r"ValueError: examples\['x'\] sets text; it can set ablated_heads, head, hidden_patches, "),
]  # fmt: skip
