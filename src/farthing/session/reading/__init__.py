"""What an analyst writes, read and checked: the question, and the target or the price."""
