#!python
"""The `octavo` command: executes the program inside the package, without importing the package."""

import importlib.util
import os
import sys

package = importlib.util.find_spec("octavo").submodule_search_locations[0]
program = os.path.join(package, "bin", "octavo")
os.execv(program, [program, *sys.argv[1:]])
