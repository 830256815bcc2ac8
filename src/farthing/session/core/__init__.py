"""What every question goes through: the transaction, the door to the rows, and what the ledger keeps."""
