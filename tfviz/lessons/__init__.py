"""The command `tfviz`, and the tools that run, check and publish the lessons (notebooks)."""
