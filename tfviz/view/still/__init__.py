"""The still half: what matplotlib draws, and the colours and fonts it draws with."""
