"""Messages speak of options as Python has them; here they become those of the command line.

>>> in_options("Name it in missing_texts, or drop such rows with missing='drop' (--missing drop).")
'Name it with --missing-text, or drop such rows with --missing drop.'
"""

from __future__ import annotations

import re

_SAID = (
    (r"--unseen count\b", "--unknown count"),  # of classes, when a model is assessed
    (r"\b(categories|exclude|columns|ordered)=\[('[^']*')\]", r"--\1 \2"),
    (r"\bcolumns=\[\.\.\.\]", "--columns"),
    (r"\bpass pushdown=False\b", "leave --pushdown out"),
    (r"\bpushdown=True\b", "--pushdown"),
    (r"\breference=None\b", "--reference none"),
    (r"\b(max_levels|max_classes|max_bytes|folds|seed|engine)=(?=[\w'-])", r"--\1 "),
    (r"\b(exclude|ordered|delimiter|decimal|encoding)='(?=[^']*' is not possible)", r"--\1 '"),
    (r"\bengine= out\b", "--engine out"),
    (r"\bin (missing_texts|categories|exclude|columns)\b=?", r"with --\1"),
    (r"(?<![\w'-])(missing_texts|max_levels|max_classes|max_bytes)\b(?!')", r"--\1"),
    (r"\bor in exclude\b", "or with --exclude"),
    (r": moments\.select\(\[\.\.\.\]\)", ": --exclude"),
    (r" ?\(moments\.select\(\[\.\.\.\]\)\)", " (--exclude)"),
    (r"Pass bias_reduction=\"jeffreys\" \(Firth\) or ridge > 0", "Take --model logistic"),
    (r"\bUse LinearRegression\b", "In Python, LinearRegression fits it"),
    (r"write '\.'\.", "write '.', or say --decimal ,"),
    (r"\b(thousands|decimal)='(.)'", r"--\1 \2"),
)
_NAMES = {
    "--missing_texts": "--missing-text",
    "--categories": "--category",
    "--columns": "--column",
    "--max_levels": "--max-levels",
    "--max_classes": "--max-classes",
    "--max_bytes": "--max-bytes",
}
_CHOICES = re.compile(  # missing='mean', 'indicator' or 'marginal'
    r"\b(missing|unseen|reference)=('\w+'(?:, '\w+')*(?:,? or '\w+')?)"
)
_TWICE = re.compile(r"(--[\w-]+(?: [\w']+)?) \(\1\)")


_ANSWERING = (  # what a fitted model leaves to choose
    (r", or name the column with --category if it is no number, or with --exclude\.", "."),
    (r"\bor fit with --unseen\b", "or pass --unseen"),
    (r"\bor fit with --missing\b", "or fit the model again with --missing"),
)


def in_options(text: str, *, command: str = "") -> str:
    """The same message for whoever sits at a command line, and has the options of a command.

    >>> in_options("Correct it, or fit with unseen='ignore'.", command="predict")
    'Correct it, or pass --unseen ignore.'
    """
    text = _CHOICES.sub(lambda found: f"--{found[1]} {found[2].replace(chr(39), '')}", text)
    for pattern, instead in _SAID:
        text = re.sub(pattern, instead, text)
    for name, option in _NAMES.items():
        text = text.replace(name, option)
    for pattern, instead in _ANSWERING if command == "predict" else ():
        text = re.sub(pattern, instead, text)
    return _TWICE.sub(r"\1", text)
