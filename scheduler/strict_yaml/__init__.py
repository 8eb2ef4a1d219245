"""The one strict reader of YAML: every value with its place, all problems at once, "did you mean". Pure.

`composer` makes nodes of a text. Whoever reads them field by field (rule files, tests of rules,
KubeSchedulerConfiguration) uses `fields` and `values`; whoever has a model of their own for plain data (settings,
arguments of plugins) uses `document`. Both say what is wrong through `report`.
"""
