"""Studios: a trained model to question, in a page with no kernel or with one."""
