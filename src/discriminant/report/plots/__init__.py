"""Figures by matplotlib (extra `plot`), one family a file; each function returns the Axes.

Nothing here fits or measures: models, assessments and curves come in ready, and are asked. Models
are known by what they can do (`predict`, `decide`, `transform`, ...), so that anybody's will do.
Matplotlib is imported when a figure is drawn, and pyplot only where no Axes are handed in.
"""
