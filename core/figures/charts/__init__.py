"""Charts: one function per kind of question, from a table to an Altair specification.

Each function returns a Vega-Lite specification as a dict, for a table with the columns named in
its docstring. The dict does not change from call to call, so that the browser keeps the picture
and swaps the data. Words on axes come as "007 word": a number that sorts, and a word that is shown.
"""
