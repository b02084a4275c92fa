"""The environment with Dynamo's runtime: its indexer, its selection service and its simulator of engines."""

from pathlib import Path

import tool_venv

# Without dependencies: these parts need none of the runtime's others.
PACKAGES = ("ai-dynamo-runtime==1.6.1", "pydantic==2.13.5", "pydantic-core==2.46.5", "annotated-types==0.8.0", "typing-extensions==4.16.0",
            "typing-inspection==0.4.5", "uvloop==0.23.0")


def python() -> Path | None:
    """The environment's interpreter; None if it cannot be made."""
    return tool_venv.python("dynamo-venv", PACKAGES, ["-m", "dynamo.indexer", "--help"])
