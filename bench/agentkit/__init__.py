"""The parts of bench/agent_trace.py and bench/agent_replay.py."""
