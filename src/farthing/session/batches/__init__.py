"""Many questions under one budget."""
