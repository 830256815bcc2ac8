"""One file a command: its options, and the call of what it does. Each imports what it needs when it runs."""
