"""Reproductions of published figures and claims: one module each, run by `tools/reproduce.py`.

A module has a docstring whose first line summarizes it, `SIZES` (its measures by the names `quick` and `full`) and
`reproduce(size)`, which returns a `reproductions.report.Report`. All training uses ganlab's own loop and the experiment
files in gin/paper.
"""
