"""Markup in everything of a student's that could end up on a page."""

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)></pre></li><iframe src='javascript:alert(3)'></iframe>{{ 7*7 }}"

PRINTS = f"""
EVIL = {EVIL!r}
print(EVIL)
from IPython.display import HTML, display
display(HTML(EVIL))
"""
ANSWERS = """
Odd = type(EVIL, (Exception,), {})

def row_weights(scores, blocked=None):
    raise Odd(EVIL)

class Gate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("<b>bold</b>", torch.ones(1))
        self.linear = nn.Linear(dim, dim)

    def forward(self, x):
        raise ValueError("<b>bold</b>")  # <script>alert(4)</script>

def make_kernel(width):
    return EVIL

def describe(values):
    return {EVIL: EVIL, "count": EVIL, "mean": EVIL, "trend": EVIL}
"""
BROKEN = "def f(:\n    '<script>alert(5)</script>'"


def make(kit):
    cells = [
        kit.cell(PRINTS, EVIL, tags=[EVIL], name=EVIL),
        kit.cell(BROKEN, f"{EVIL}2"),
        kit.cell("raise ValueError(EVIL)", "\"><script>alert(6)</script>"),
        kit.cell(ANSWERS, "<svg onload=alert(7)>"),
    ]
    metadata = {"title": EVIL, "authors": [{"name": EVIL}], "kernelspec": {"display_name": EVIL, "name": EVIL}}
    for cell in cells:
        cell["outputs"] = [{"output_type": "display_data", "data": {"text/html": EVIL}, "metadata": {}}]
        cell["id"] = EVIL
    return kit.notebook(cells, metadata=metadata)
