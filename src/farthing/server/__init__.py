"""The server: many analysts, one ledger. HTTP and its page speak to one `Service`, which plans, asks and tells.

    people      who may ask: names, roles, tokens
    datasets    what may be asked: declared tables, each with a budget and a ledger
    tickets     a plan that can be confirmed
    service     plan, ask, history: what every face of the server does
    shapes      answers, plans and errors as plain values
    app         HTTP

Needs the extra `server`.
"""
