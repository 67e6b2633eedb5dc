"""Published figures and claims, measured again: one module each, run by `tools/reproduce.py`.

A module has a docstring whose first line says what it shows, `SIZES` (its measures by the names `quick` and `full`) and
`reproduce(size)`, which gives a `reproductions.report.Report`. What is trained is trained by ganlab's own loop, from
the experiment files in gin/paper.
"""
