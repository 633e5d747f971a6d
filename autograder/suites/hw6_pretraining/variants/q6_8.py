# %% by-regular-expressions
"""Goes through what is there, by patterns, and looks for gaps at the end."""
import re


def from_gpt2(state):
    pattern = re.compile(r"^(?:transformer\.)?(.*)$")
    clean = {pattern.match(name)[1]: t.detach() for name, t in state.items()}
    L = 1 + max(int(m[1]) for m in (re.match(r"h\.(\d+)\.", n) for n in clean) if m)
    table = {"ln_1": ["norm1"], "ln_2": ["norm2"], "attn.c_proj": ["attn.o_proj"], "mlp.c_fc": ["ff.fc1"],
             "mlp.c_proj": ["ff.fc2"], "attn.c_attn": ["attn.q_proj", "attn.k_proj", "attn.v_proj"]}
    wanted = {"wte.weight": ["token_embed.weight"], "wpe.weight": ["position_embed.weight"],
              "ln_f.weight": ["final_norm.weight"], "ln_f.bias": ["final_norm.bias"]}
    for i in range(L):
        for theirs, mine in table.items():
            for kind in ("weight", "bias"):
                wanted[f"h.{i}.{theirs}.{kind}"] = [f"blocks.{i}.{m}.{kind}" for m in mine]
    absent = [name for name in wanted if name not in clean]
    if absent:
        raise ValueError("missing: " + ", ".join(absent))
    out = {}
    for theirs, mine in wanted.items():
        t = clean[theirs]
        t = t.t() if ".c_" in theirs and t.ndim == 2 else t
        out.update(zip(mine, torch.chunk(t, len(mine), dim=0), strict=True))
    return out


# %% a-getter-that-complains
"""A helper that looks under both names and raises a KeyError of its own; layers counted up."""
def from_gpt2(state):
    def get(name):
        for key in (name, "transformer." + name):
            if key in state:
                return state[key]
        raise KeyError(f"the published tensor {name} is not there")

    numbers = set()
    for key in state:
        parts = key.removeprefix("transformer.").split(".")
        if parts[0] == "h":
            numbers.add(int(parts[1]))
    new = {"token_embed.weight": get("wte.weight"), "position_embed.weight": get("wpe.weight")}
    new.update({"final_norm." + kind: get("ln_f." + kind) for kind in ("weight", "bias")})
    D = new["token_embed.weight"].size(1)
    for i in range(max(numbers) + 1):
        a, b = f"h.{i}.", f"blocks.{i}."
        w, bias = get(a + "attn.c_attn.weight"), get(a + "attn.c_attn.bias")
        for j, c in enumerate(("q", "k", "v")):
            new[b + f"attn.{c}_proj.weight"] = w[:, j * D : j * D + D].t().contiguous()
            new[b + f"attn.{c}_proj.bias"] = bias[j * D : j * D + D]
        for x, y in {"attn.c_proj": "attn.o_proj", "mlp.c_fc": "ff.fc1", "mlp.c_proj": "ff.fc2"}.items():
            new[b + y + ".weight"] = get(a + x + ".weight").transpose(0, 1)
            new[b + y + ".bias"] = get(a + x + ".bias")
        for x, y in {"ln_1": "norm1", "ln_2": "norm2"}.items():
            new[b + y + ".weight"], new[b + y + ".bias"] = get(a + x + ".weight"), get(a + x + ".bias")
    return new


# %% with-a-second-name
"""Gives the tied weight under a second name, too, for a GPT that has one."""
def from_gpt2(state):
    s = {}
    for key, value in state.items():
        s[key[len("transformer."):] if key.startswith("transformer.") else key] = value
    out = {"token_embed.weight": s["wte.weight"], "head.weight": s["wte.weight"], "position_embed.weight": s["wpe.weight"],
           "final_norm.weight": s["ln_f.weight"], "final_norm.bias": s["ln_f.bias"]}
    i = max(int(k.split(".")[1]) for k in s if k.startswith("h."))
    while i >= 0:
        q, k, v = s[f"h.{i}.attn.c_attn.weight"].T.tensor_split(3)
        qb, kb, vb = s[f"h.{i}.attn.c_attn.bias"].tensor_split(3)
        p = f"blocks.{i}."
        out |= {p + "attn.q_proj.weight": q, p + "attn.k_proj.weight": k, p + "attn.v_proj.weight": v}
        out |= {p + "attn.q_proj.bias": qb, p + "attn.k_proj.bias": kb, p + "attn.v_proj.bias": vb}
        out |= {p + "attn.o_proj.weight": s[f"h.{i}.attn.c_proj.weight"].T, p + "attn.o_proj.bias": s[f"h.{i}.attn.c_proj.bias"]}
        out |= {p + "ff.fc1.weight": s[f"h.{i}.mlp.c_fc.weight"].T, p + "ff.fc1.bias": s[f"h.{i}.mlp.c_fc.bias"]}
        out |= {p + "ff.fc2.weight": s[f"h.{i}.mlp.c_proj.weight"].T, p + "ff.fc2.bias": s[f"h.{i}.mlp.c_proj.bias"]}
        out |= {p + "norm1.weight": s[f"h.{i}.ln_1.weight"], p + "norm1.bias": s[f"h.{i}.ln_1.bias"]}
        out |= {p + "norm2.weight": s[f"h.{i}.ln_2.weight"], p + "norm2.bias": s[f"h.{i}.ln_2.bias"]}
        i -= 1
    return out
