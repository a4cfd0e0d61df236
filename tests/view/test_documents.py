"""View documents match their declared types, in Python and in the page's scripts."""

import pytest
from static_pictures import STILLS
from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

from tfviz import view
from tfviz.view.documents.generate import generated_files
from tfviz.view.documents.view_document import ViewDocument

EACH = CollectionCheckStrategy.ALL_ITEMS


@pytest.mark.parametrize(("path", "text"), generated_files().items(), ids=lambda value: getattr(value, "name", ""))
def test_generated_files_are_up_to_date(path, text):
    assert path.read_text("utf-8") == text, "stale: python -m tfviz.view.documents.generate"


@pytest.mark.parametrize("name", STILLS)
def test_document_matches_its_type(name):
    made = STILLS[name]()
    if isinstance(made, view.View):
        check_type(made.document, ViewDocument, collection_check_strategy=EACH)
        with pytest.raises(TypeCheckError):
            check_type(made.document | {"other": 0}, ViewDocument, collection_check_strategy=EACH)
