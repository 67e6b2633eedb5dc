"""Archives runs in one file, unpacks such files, which may be a stranger's, and removes runs."""

from ganlab_archive.archiving import Archived, archive
from ganlab_archive.members import Limits
from ganlab_archive.unpacking import unarchive

__all__ = ["Archived", "Limits", "archive", "unarchive"]
