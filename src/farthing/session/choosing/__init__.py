"""Which groups are the largest: chosen privately, ranked, or proven by their counts."""
