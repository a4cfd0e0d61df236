"""Pictures for dark pages."""

import io

import numpy as np
import pytest
from PIL import Image

from tfviz.suite.dark_images import darken


def png(colours, palette=False):
    picture = Image.fromarray(np.array([colours], dtype=np.uint8))
    made = io.BytesIO()
    (picture.quantize(8) if palette else picture).save(made, "PNG")
    return made.getvalue()


def seen(made):
    return np.array(Image.open(io.BytesIO(made)).convert("RGB"))[0].tolist()


@pytest.mark.parametrize("palette", [True, False])
def test_it_is_what_a_browser_makes_of_the_filter(palette):
    """The numbers were read from a Chromium's screenshot of `filter: invert(93%) hue-rotate(180deg)`."""
    given = [[255, 255, 255], [0, 0, 0], [200, 30, 60]]
    browser = [[18, 18, 18], [237, 237, 237], [255, 145, 171]]
    assert np.abs(np.array(seen(darken(png(given, palette)))) - browser).max() <= 1


def test_what_is_no_picture_is_told():
    with pytest.raises(ValueError, match="no picture"):
        darken(b"nothing")
