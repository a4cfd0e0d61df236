"""The corpora that can be loaded by name, with their files, URLs, SHA-256 sums and licences."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One file of a corpus, as its authors publish it."""

    path: str  # relative to the data folder
    url: str
    sha256: str
    members: tuple[str, ...] = ()  # the members of an archive that are read


@dataclass(frozen=True)
class Corpus:
    """A corpus: its files, their source and their licence."""

    name: str
    about: str
    licence: str
    source: str
    files: tuple[File, ...] = ()  # empty if the text comes with Python
    reader: str = "corpora.load()"


_MULTI30K = {
    "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.fr": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.fr": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.fr": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
}
_RAW = "https://raw.githubusercontent.com"

CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "pydoc", "the Python manual's topics, as every Python carries them; 465,000 characters of English",
            licence="PSF License Agreement", source="the module pydoc_data.topics",
        ),
        Corpus(
            "shakespeare", "tiny Shakespeare; 1,115,394 characters", licence="public domain text",
            source="https://github.com/karpathy/char-rnn",
            files=(File(
                "shakespeare/input.txt", f"{_RAW}/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            ),),
        ),
        Corpus(
            "imdb", "50,000 film reviews, half of them positive (Maas et al. 2011)",
            licence="research use, cite the paper", source="https://ai.stanford.edu/~amaas/data/sentiment/",
            files=(File(
                "imdb/aclImdb_v1.tar.gz", "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe", ("aclImdb",),
            ),),
            reader="datasets.reviews()",
        ),
        Corpus(
            "multi30k", "31,014 captions in English, German and French (Elliott et al. 2016, 2017)",
            licence="research use, cite the papers", source="https://github.com/multi30k/dataset",
            files=tuple(
                File(f"multi30k/{name}.gz", f"{_RAW}/multi30k/dataset/master/data/task1/raw/{name}.gz", sha256, (name,))
                for name, sha256 in _MULTI30K.items()
            ),
            reader="datasets.pairs()",
        ),
        Corpus(
            "enwik8", "the first 100,000,000 bytes of the English Wikipedia of March 2006, as XML",
            licence="GFDL and CC BY-SA", source="http://mattmahoney.net/dc/textdata.html",
            files=(File(
                "enwik8/enwik8.zip", "http://mattmahoney.net/dc/enwik8.zip",
                "547994d9980ebed1288380d652999f38a14fe291a6247c157c3d33d4932534bc", ("enwik8",),
            ),),
        ),
        Corpus(
            "movielens", "ml-latest-small of 2018: 100,836 ratings of films (Harper & Konstan 2015)",
            licence="no commercial use, redistribution under the same terms",
            source="https://grouplens.org/datasets/movielens/latest/",
            files=(File(
                "movielens/ml-latest-small.zip", "https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",
                "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
                ("ml-latest-small/movies.csv", "ml-latest-small/ratings.csv"),
            ),),
            reader="datasets.ratings()",
        ),
    )
}  # fmt: skip
