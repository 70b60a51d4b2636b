"""The page of a state on this machine: drop a file on it, fold it, see what moved.

A small server for one person's browser: `viewfold ui s.vf`. docs/ui.md describes its JSON interface
and who can reach it. What it needs is the extra ``[ui]``, imported when the command runs.
"""
