"""The other end of a widget, without a page."""


def ask_widget(live, **question):
    """What a widget sends back to a view that asks: its answer, and the buffers with it."""
    question = {"id": "7", **question}
    sent = []
    live.send = lambda content, buffers=None: sent.append((content, buffers))
    live._on_message(live, question, [])
    ((content, buffers),) = sent
    assert content["id"] == question["id"]
    return content, buffers
