# %% residual-forgotten
"""Your bound is heads ** layers: it forgets the residual. After a layer a position knows what its heads picked,
and what it knew itself."""
def receptive_field(heads, layers):
    return heads**layers


# %% additive-growth
"""Your bound grows by the number of heads per layer. The position that a head picks has itself gathered from
several others: what does one more layer multiply by?"""
def receptive_field(heads, layers):
    return heads * layers + 1


# %% two-to-the-layers
"""Your bound does not depend on the number of heads: doubling per layer is the case of one head."""
def receptive_field(heads, layers):
    return 2**layers


# %% base-and-exponent-swapped
"""You raise to the power of the heads. One layer with k heads sees k + 1 positions: which number repeats from
layer to layer?"""
def receptive_field(heads, layers):
    return (layers + 1) ** heads


# %% itself-counted-once
"""You add the position itself once, at the end. The residual acts in each layer."""
def receptive_field(heads, layers):
    return heads**layers + 1


# %% one-layer-too-many
"""Your bound is one layer ahead: without any layer, a position knows itself alone, which is 1."""
def receptive_field(heads, layers):
    return (heads + 1) ** (layers + 1)


# %% layers-in-wrong-order
"""You walk through the layers from the first to the last. Start at position 0 of the output: the layer that it
reads from is the last one."""
def reach(attended):
    found = {0}
    for layer in attended:
        found |= {j for i in found for j in layer[i]}
    return found


# %% residual-forgotten-in-reach
"""You keep only what the heads picked: the residual carries each position's own content along, so what was
found stays found."""
def reach(attended):
    found = {0}
    for layer in reversed(attended):
        found = {j for i in found for j in layer[i]}
    return found


# %% first-head-only
"""You follow the first head. Each position reads from all its heads."""
def reach(attended):
    found = {0}
    for layer in reversed(attended):
        found |= {layer[i][0] for i in found}
    return found


# %% last-layer-only
"""You look at the last layer alone: what its heads picked has itself been gathered in the layers below."""
def reach(attended):
    return {0} | {int(j) for j in attended[-1][0]} if len(attended) else {0}


# %% position-zero-in-every-layer
"""You collect what position 0 attends to in each layer. In the layers below, the positions found on the way
count too."""
def reach(attended):
    found = {0}
    for layer in attended:
        found |= {j for j in layer[0]}
    return found


# %% forward-instead-of-backward
"""You follow where the content of position 0 goes. The question is the other way round: whose content arrives
at position 0?"""
def reach(attended):
    found = {0}
    for layer in attended:
        found |= {i for i in range(len(layer)) if any(j in found for j in layer[i])}
    return found


# %% layers-confused-within-one
"""While you go through a layer you also follow the positions that you have just found in it. A layer is one
step: those positions are looked up in the layer below."""
def reach(attended):
    found = {0}
    for layer in reversed(attended):
        grown = True
        while grown:
            more = {j for i in found for j in layer[i]} - found
            found |= more
            grown = bool(more)
    return found


# %% last-position
"""You ask what reaches the last position; the question is about position 0."""
def reach(attended):
    found = {len(attended[0]) - 1} if len(attended) else {0}
    for layer in reversed(attended):
        found |= {j for i in found for j in layer[i]}
    return found


# %% geometric-sum
"""You add up heads ** n over the layers, as in a tree whose nodes branch once. With the residual a position branches
again in every layer: each layer multiplies by heads + 1."""
def receptive_field(heads, layers):
    return sum(heads**n for n in range(layers + 1))


# %% residual-of-position-zero-only
"""You keep position 0, and lose the other positions that were reached before. The residual connection carries every
position along."""
def reach(attended):
    found = {0}
    for layer in reversed(attended):
        found = {p for n in found for p in layer[n]}
    return found | {0}


# %% stack-of-no-layers
"""`reach([])` stops with an error. Without a layer the output at position 0 is its input: the set is {0}."""
def reach(attended):
    found = {0, *attended[-1][0]}
    for layer in attended[-2::-1]:
        found |= {p for n in found for p in layer[n]}
    return found
