"""What would be understood of a file, before anything is folded: `inspect_views`.

Files that a fold would refuse are looked at, too: what is missing is proposed and told.
"""

from viewfold.inspection._facts import ColumnFacts, Inspection, SampleFacts
from viewfold.inspection._inspect import inspect_views

__all__ = ["ColumnFacts", "Inspection", "SampleFacts", "inspect_views"]
