import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "core"))

from front_end import built_natives, fake, fake_natives  # noqa: F401
