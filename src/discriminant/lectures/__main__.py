"""Write the lecture pages: python -m discriminant.lectures FOLDER."""

import sys

from discriminant.lectures import write_pages

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m discriminant.lectures FOLDER")
    for file in write_pages(sys.argv[1]):
        print(file)
