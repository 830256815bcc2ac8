"""A publication: a folder of tables, with a statement for people and a record for machines. Released numbers only.

It is made of answers and of what the books tell to anybody; it asks nothing and costs nothing. The same answers make
the same bytes.
"""
