"""Studios: pages in which a trained model can be explored, with or without a kernel."""
