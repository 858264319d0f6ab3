"""Plots with matplotlib (extra `plot`); each function returns the Axes.

Plots are drawn from fitted models, assessments and curves; they neither fit nor measure anything.
Models need only the methods that a plot calls (`predict`, `decide`, `transform`, ...), so models of
other libraries work too.
Matplotlib is imported when a plot is drawn, and pyplot only if no Axes are given.
"""
