"""colors_test.py BINARY: the colors of a page's categories stay apart for any color vision, on light and on dark."""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

# What each vision makes of linear light: Machado, Oliveira and Fernandes 2009, table of severity 1.
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "without long waves": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "without middle waves": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "without short waves": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LEAST = 12  # CIE 1976; about 2.3 is just noticed side by side


def linear(color):
    parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]


def lab(light):
    white = (0.9505, 1, 1.089)
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(a * b for a, b in zip(row, light)) / w for row, w in zip(rows, white))
    root = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return 116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])


def seen(color, vision):
    light = linear(color)
    return lab([min(1, max(0, sum(a * b for a, b in zip(row, light)))) for row in vision])


def nearest(colors, vision):
    places = {name: seen(color, vision) for name, color in colors.items()}
    return min((sum((a - b) ** 2 for a, b in zip(places[p], places[q])) ** 0.5, p, q)
               for p, q in itertools.combinations(places, 2))


with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "page.html")
    subprocess.run([sys.argv[1], "fit", "llama3.2-1b", "--gpus", "1xH100-80GB", "--tp", "1", "--pp", "1", "--quiet", "--html", file],
                   check=True, stdout=subprocess.DEVNULL)
    style = file.read_text().split("</style>")[0]

failures = []
if nearest({"a": "#8b909a", "b": "#cc79a7"}, VISIONS["without middle waves"])[0] >= LEAST:
    failures.append("two colors that are alike without middle waves passed")
fills = dict(re.findall(r"\.c-([a-z-]+) { fill: ([^;]+); }", style))
if len(fills) != 11:
    failures.append(f"{len(fills)} of 11 categories have a color")
contexts = re.findall(r"--context: (#[0-9a-f]{6})", style)
worst = []
for back, context in zip(("light", "dark"), contexts[:2]):
    colors = {name: context if fill.startswith("var") else fill for name, fill in fills.items()}
    for name, vision in VISIONS.items():
        distance, p, q = nearest(colors, vision)
        worst.append(distance)
        if distance < LEAST:
            failures.append(f"{p} and {q} are {distance:.1f} apart {name}, on {back}")
print("\n".join(failures) or f"{len(fills)} colors, at least {min(worst):.1f} apart for {len(VISIONS)} kinds of vision")
sys.exit(len(failures) > 0)
