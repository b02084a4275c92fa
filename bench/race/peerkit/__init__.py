"""Modules of bench/race/peers.py. Only mix_openvino.py, run_*.py and plot.py need packages, which are in the peers' environment."""
