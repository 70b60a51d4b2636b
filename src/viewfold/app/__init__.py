"""What can be done with a state, and how it is described: the same for commands and for the page.

Functions take paths and plain values and return facts; callers show them as text or as JSON.
Heavy imports wait until something is done, so that the command line answers at once.
"""
