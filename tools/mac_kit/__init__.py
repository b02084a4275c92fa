"""The steps and the report of tools/first_mac.py. Standard library only, Python 3.9."""
