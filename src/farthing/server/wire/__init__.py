"""The PostgreSQL wire: psql, pandas and dashboards connect as to any database.

The user is the name of a token, the password the token.

values      texts and bytes of values, by type
catalog     what clients ask about the database itself: answered from empty tables, no row ever
desk        one statement: a setting, a question of the catalog, or a question that is paid for
listener    connections
"""
