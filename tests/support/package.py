"""Where the tested kerncap lies, for programs that a test starts."""

from pathlib import Path

import kerncap

# The installed package has its native part beside it; a source tree has none.
APP = Path(kerncap.__file__).resolve().parents[1]
