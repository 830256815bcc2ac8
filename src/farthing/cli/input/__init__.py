"""Reading what was typed, and the files that were named."""
