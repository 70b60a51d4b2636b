"""What would be understood of a file, before anything is folded: `inspect_views`.

Files that a fold would refuse are looked at, too: what is missing is proposed and told.
"""

from viewfold.app._facts import ColumnFacts, Inspection, SampleFacts
from viewfold.app._inspect import inspect_views

__all__ = ["ColumnFacts", "Inspection", "SampleFacts", "inspect_views"]
