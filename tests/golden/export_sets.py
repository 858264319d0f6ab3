"""Write the data sets for R, 17 digits, so that both languages read the same doubles.

    python tests/golden/export_sets.py FOLDER

The sets come with scikit-learn; FOLDER is temporary and not kept. The columns are x1 to xd, then
the class code y. `SETS` is also what make_sklearn.py uses.
"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_iris, load_wine

SETS = {  # name: (loader, features kept, one row in so many is stored, unequal priors)
    "iris": (load_iris, 4, 5, [0.1, 0.2, 0.7]),
    "wine": (load_wine, 13, 5, [0.2, 0.3, 0.5]),
    "breast_cancer": (load_breast_cancer, 10, 20, [0.3, 0.7]),
}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        features, codes = rows_of(name)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow([f"x{j + 1}" for j in range(features.shape[1])] + ["y"])
            for row, code in zip(features, codes, strict=True):
                out.writerow([format(value, ".17g") for value in row] + [code])


def rows_of(name):
    loader, width, _, _ = SETS[name]
    features, codes = loader(return_X_y=True)
    return features[:, :width], codes


if __name__ == "__main__":
    main(Path(sys.argv[1]))
