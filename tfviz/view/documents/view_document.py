"""The union of the documents that a view may have."""

from tfviz.view.documents.charts import MasksDocument, PointsDocument, TablesDocument, TokensDocument
from tfviz.view.documents.heads import HeadsDocument
from tfviz.view.documents.interact import InteractDocument
from tfviz.view.documents.neurons import NeuronsDocument
from tfviz.view.documents.studios import StudioDocument

ViewDocument = (
    HeadsDocument
    | MasksDocument
    | TablesDocument
    | TokensDocument
    | PointsDocument
    | NeuronsDocument
    | InteractDocument
    | StudioDocument
)
