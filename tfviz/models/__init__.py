"""Models: the Transformer family, its predecessors and relatives, one module for each paper."""

from tfviz.models import classifier, pretrained
from tfviz.models.bert import BERT, BERTClassifier
from tfviz.models.classifier import Classifier
from tfviz.models.convolution import ConvLM
from tfviz.models.gpt import GPT
from tfviz.models.graph_attention import GraphAttention
from tfviz.models.lstmn import LSTMN
from tfviz.models.recommender import Recommender
from tfviz.models.recurrent import RecurrentLM
from tfviz.models.self_attention import SelfAttention
from tfviz.models.seq2seq import Seq2Seq
from tfviz.models.sparse import SparseTransformer
from tfviz.models.transformer import Transformer
from tfviz.models.transformer_xl import TransformerXL
from tfviz.validation import validate_public

__all__ = [
    "BERT", "GPT", "LSTMN", "BERTClassifier", "Classifier", "ConvLM", "GraphAttention", "Recommender",
    "RecurrentLM", "SelfAttention", "Seq2Seq", "SparseTransformer", "Transformer", "TransformerXL", "classifier",
    "pretrained",
]  # fmt: skip

validate_public(globals(), __all__)
validate_public(vars(pretrained), ["gpt2", "bert"])
