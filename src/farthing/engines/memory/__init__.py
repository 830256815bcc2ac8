"""The slow, obvious oracle of the tests: `engine.MemoryEngine`."""
