"""What is done with a state, and told of it: the same for commands and for the page.

Functions take paths and plain values and return facts; who asks says them in words or as JSON.
Heavy imports wait until something is done, so that the command line answers at once.
"""
