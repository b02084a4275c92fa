"""The parts of tools/battery.sh, their results and how they run. tools/battery_table.py writes the results into docs/status.md."""
