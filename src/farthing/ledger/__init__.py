"""The durable books: what was charged, to what question, and what was released for it."""
