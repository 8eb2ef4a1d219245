"""PromQL as Prometheus 3 reads it: from text to a typed tree, or to the first mistake and its place.

Start with `parse.parse`. `lexer` makes tokens, `grammar` makes the tree of `nodes`, `checks` looks at types; `regex`
says which regular expressions Prometheus takes. The verdict is that of Prometheus' own parser, flag by flag: see
`tests/promql`.
"""
