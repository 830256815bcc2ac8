"""How each kind of question is planned, measured, stored and answered again."""
