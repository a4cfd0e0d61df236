"""`python -m tfviz`: the command, where its script is not on the path."""

from tfviz.suite.cli import main

main(prog_name="tfviz")
