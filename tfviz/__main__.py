"""`python -m tfviz`: the command, where its script is not on the path."""

from tfviz.suite.cli import main

if __name__ == "__main__":  # workers of `tfviz run` import this module
    main(prog_name="tfviz")
