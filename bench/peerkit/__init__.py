"""What bench/peers.py is made of. Only run_*.py and plot.py need packages, those of the peers' own environment."""
