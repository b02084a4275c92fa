"""Parts of bench/race/peers.py. Only run_*.py, mix_openvino.py and plot.py need packages, from the other engines' environment."""
