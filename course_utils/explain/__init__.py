"""How a check speaks: what it found, in words; how known mistakes are recognised."""
