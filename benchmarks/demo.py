"""The model of `tfviz demo`: a GPT that reads tiny Shakespeare by letters, trained once and kept in the package.

About seven minutes on two cores. Prints its loss on the last tenth of the text, which it has not seen.

    TFVIZ_DATA=... python benchmarks/demo.py [--quick]
"""

import tempfile
import time
from pathlib import Path

import torch
from common import parser

from tfviz import learn, models, text
from tfviz.lessons import demo

STEPS, BATCH, SEED = 3000, 8, 1


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    plays = text.corpora.load("shakespeare")
    letters = text.CharacterTokenizer.from_text(plays)
    read, held = (letters.encode(part) for part in text.corpora.split(plays, 0.9))
    torch.manual_seed(SEED)
    model = models.GPT(len(letters), dropout=0.1, **demo.CONFIG)
    batches = text.Windows(read, demo.CONFIG["context"], BATCH, seed=SEED)
    started = time.perf_counter()
    list(learn.fit(model, batches, 3 if quick else STEPS, lr=4e-3, seed=SEED, device="cpu", progress=not quick))
    taken = time.perf_counter() - started
    held = held[:2000] if quick else held
    loss = learn.evaluate.loss(model, text.in_order(held, demo.CONFIG["context"], BATCH))
    path = Path(tempfile.mkdtemp()) / demo.WEIGHTS_FILE.name if quick else demo.WEIGHTS_FILE
    demo.save(model, letters, path)
    print(f"{loss:.3f} nats a letter after {taken:.0f} s, seed {SEED}; {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
