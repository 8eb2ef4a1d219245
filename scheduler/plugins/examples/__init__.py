"""Two plugins as a user would write them: `label_score` in columns, `team_nodes` node by node.

No profile runs them unless its configuration names them by import path, as
`scheduler.plugins.examples.label_score:LabelScore`.
"""
