"""`vane rules test`: input series, a time and a Pod in; what each rule says of each node out, compared with the file.

Read `reader` first, then `runner`, then `command`. Nothing here says what a rule means: queries go to the embedded
evaluator or to a real Prometheus, and everything behind them is the running scheduler's own.
"""
