"""Instruments that run beside an answer: unusual calls, counted work, no autograd, torch's own modules as a match."""
