# %% residual-forgotten
"""Your bound is heads ** layers: it forgets the residual. After a layer a position knows what its heads picked,
and what it knew itself."""
replace("(heads + 1) ** layers", "heads**layers")

# %% additive-growth
"""Your bound grows by the number of heads per layer. The position that a head picks has itself gathered from
several others: what does one more layer multiply by?"""
replace("(heads + 1) ** layers", "heads * layers + 1")

# %% two-to-the-layers price=0.3
"""Your bound does not depend on the number of heads: doubling per layer is the case of one head."""
replace("(heads + 1) ** layers", "2**layers")

# %% base-and-exponent-swapped
"""You raise to the power of the heads. One layer with k heads sees k + 1 positions: which number repeats from
layer to layer?"""
replace("(heads + 1) ** layers", "(layers + 1) ** heads")

# %% itself-counted-once price=0.3
"""You add the position itself once, at the end. The residual acts in each layer."""
replace("(heads + 1) ** layers", "heads**layers + 1")

# %% one-layer-too-many price=0.25
"""Your bound is one layer ahead: without any layer, a position knows itself alone, which is 1."""
replace("(heads + 1) ** layers", "(heads + 1) ** (layers + 1)")

# %% layers-in-wrong-order
"""You walk through the layers from the first to the last. Start at position 0 of the output: the layer that it
reads from is the last one."""
replace("reversed(attended)", "attended")

# %% residual-forgotten-in-reach
"""You keep only what the heads picked: the residual carries each position's own content along, so what was
found stays found."""
replace("found |= {int(position)", "found = {int(position)")

# %% first-head-only price=0.3
"""You follow the first head. Each position reads from all its heads."""
replace("for position in layer[n]", "for position in layer[n][:1]")

# %% last-layer-only price=0.3
"""You look at the last layer alone: what its heads picked has itself been gathered in the layers below."""
replace("reversed(attended)", "attended[-1:]")

# %% position-zero-in-every-layer
"""You collect what position 0 attends to in each layer. In the layers below, the positions found on the way
count too."""
replace("for n in found for position", "for n in [0] for position")

# %% forward-instead-of-backward
"""You follow where the content of position 0 goes. The question is the other way round: whose content arrives
at position 0?"""
replace("reversed(attended)", "attended")
replace("int(position) for n in found for position in layer[n]",
        "n for n in range(len(layer)) if found & set(layer[n])")

# %% layers-confused-within-one
"""While you go through a layer you also follow the positions that you have just found in it. A layer is one
step: those positions are looked up in the layer below."""
replace("found |= {", """for _ in layer:  # over and over
            found |= {""")

# %% last-position
"""You ask what reaches the last position; the question is about position 0."""
replace("found = {0}", "found = {len(attended[0]) - 1} if len(attended) else {0}")

# %% geometric-sum price=0.3
"""You add up heads ** n over the layers, as in a tree whose nodes branch once. With the residual a position branches
again in every layer: each layer multiplies by heads + 1."""
replace("(heads + 1) ** layers", "sum(heads**n for n in range(layers + 1))")

# %% residual-of-position-zero-only price=0.25
"""You keep position 0, and lose the other positions that were reached before. The residual connection carries every
position along."""
replace("found |= {int(position)", "found = {int(position)")
replace("return found", "return found | {0}")

# %% stack-of-no-layers price=0.1
"""`reach([])` stops with an error. Without a layer the output at position 0 is its input: the set is {0}."""
replace("found = {0}", "found = {0, *attended[-1][0]}")
replace("reversed(attended)", "attended[-2::-1]")

# %% every-position-followed
"""In each layer you follow the heads of *all* positions. Only those positions matter that are in the set so far: the
others have no way to the output."""
replace("for n in found for position in layer[n]", "for heads in layer for position in heads")

# %% position-zero-only-if-looked-at price=0.2
"""Position 0 itself is missing where no head looks at it: the residual connection keeps it, always."""
replace("return found", "return {int(p) for layer in attended for n in found for p in layer[n]} & found if attended else found")
