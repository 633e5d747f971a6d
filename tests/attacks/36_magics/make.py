"""Shell lines, cell magics and another kernel; the honest answers among them still count."""


def make(kit):
    canaries = " ".join(kit.places["@CANARIES@"].split("|"))
    cells = [
        kit.cell(f"!rm -rf {canaries} ~ /tmp/{kit.places['@TOKEN@']}\n!!touch {canaries}\nfiles = !ls {canaries}"),
        kit.cell(f"%%bash\nrm -f {canaries}\ntouch /tmp/{kit.places['@TOKEN@']}"),
        kit.cell(f"%%writefile {canaries.split()[0]}\nmine"),
        kit.cell(f"%run {kit.places['@COURSE@']}/solutions/hw9_target.py\n%load {canaries}\n%cd /\n%env SECRET_TOKEN"),
        kit.cell(f"get_ipython().system('rm -f {canaries}')\nget_ipython().run_cell('1')"),
        kit.cell("%%javascript\nalert(1)"),
        kit.cell("%%html\n<script>alert(1)</script>"),
        kit.cell("%%timeit -n 10000000\nimport time; time.sleep(10)"),
        kit.cell("%matplotlib inline\n%load_ext autoreload\n?print\nprint??\n" + kit.answers["q9_1"], "q9_1"),
        kit.cell(kit.answers["q9_2"] + "\n!pip install torch\n", "q9_2"),
        kit.cell(
            "%%capture out\n%%time\n" + kit.answers["q9_3"] + "\nfiles = !ls\n%time shown = len(files)\nprint(shown)",
            "q9_3",
        ),
        kit.cell("%%timeit -n 3\n" + kit.answers["q9_4"], "q9_4"),
    ]
    return kit.notebook(cells, metadata={"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}})
