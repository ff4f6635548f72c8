"""A small writer of SVG: bars, lines and flame graphs, without any script or font of others."""
import html
import math

FONT = "font-family='system-ui,sans-serif'"
COLOURS = ("#2563a8", "#c2571a", "#3b8044", "#8a4fa3", "#a8323e", "#4a6b73")
INK, FAINT, PAPER = "#222", "#ccc", "#fff"


class Drawing:
    def __init__(self, width, height):
        self.width, self.height, self.parts = width, height, []
        self.rect(0, 0, width, height, PAPER)

    def rect(self, x, y, width, height, fill, title=None):
        inside = f"<title>{html.escape(title)}</title>" if title else ""
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(width, 0):.1f}' height='{height:.1f}' fill='{fill}'"
                          + (f">{inside}</rect>" if inside else "/>"))

    def text(self, x, y, text, size=12, anchor="start", fill=INK, bold=False):
        weight = " font-weight='600'" if bold else ""
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' fill='{fill}'{weight}>"
                          f"{html.escape(text)}</text>")

    def line(self, x1, y1, x2, y2, stroke=FAINT, width=1):
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{stroke}' "
                          f"stroke-width='{width}'/>")

    def path(self, points, stroke):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f"<polyline points='{joined}' fill='none' stroke='{stroke}' stroke-width='2'/>")
        for x, y in points:
            self.parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{stroke}'/>")

    def finish(self):
        return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {self.width} {self.height}' {FONT}>\n"
                + "\n".join(self.parts) + "\n</svg>\n")


def number(value):
    """As a person writes it: 1.5M, 300k, 0.45."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9995:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def ticks(most):
    """Round numbers from 0 to about the largest value."""
    if most <= 0:
        return [0, 1]
    step = 10 ** math.floor(math.log10(most / 4))
    step *= next(k for k in (1, 2, 5, 10) if most / (step * k) <= 5)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def bars(title, unit, values, note=""):
    """Horizontal bars, one for each (name, value)."""
    left, top, row, width = 275, 56, 26, 820
    drawing = Drawing(width, top + row * len(values) + 40)
    drawing.text(12, 24, title, 15, bold=True)
    drawing.text(12, 42, note or unit, 11, fill="#666")
    scale = ticks(max((value for _, value in values), default=0))
    per_unit = (width - left - 90) / scale[-1]
    for tick in scale:
        x = left + tick * per_unit
        drawing.line(x, top - 4, x, top + row * len(values))
        drawing.text(x, top + row * len(values) + 16, number(tick), 10, "middle", "#666")
    for at, (name, value) in enumerate(values):
        y = top + row * at
        drawing.text(left - 8, y + 16, name, 12, "end")
        drawing.rect(left, y + 4, value * per_unit, row - 8, COLOURS[0], f"{name}: {number(value)} {unit}")
        drawing.text(left + value * per_unit + 6, y + 16, number(value), 11)
    return drawing.finish()


def lines(title, x_unit, y_unit, series, x_names=None, logarithmic=False):
    """{name: [(x, y)]}. With x_names the x are places on an axis that has these names. Logarithmic: the y axis."""
    left, top, width, height = 78, 44, 820, 320
    right, bottom = width - 190, height - 46
    drawing = Drawing(width, height)
    drawing.text(12, 24, title, 15, bold=True)
    points = [point for one in series.values() for point in one]
    x_most = max((x for x, _ in points), default=1) or 1
    y_ticks = decades([y for _, y in points]) if logarithmic else ticks(max((y for _, y in points), default=1))

    def place(x, y):
        if logarithmic:
            low, high = math.log10(y_ticks[0]), math.log10(y_ticks[-1])
            share = (math.log10(max(y, y_ticks[0])) - low) / (high - low)
        else:
            share = y / y_ticks[-1]
        return left + (right - left) * x / x_most, bottom - (bottom - top) * share

    for tick in y_ticks:
        _, y = place(0, tick)
        drawing.line(left, y, right, y)
        drawing.text(left - 6, y + 4, number(tick), 10, "end", "#666")
    for tick, name in enumerate(x_names) if x_names else ((t, number(t)) for t in ticks(x_most) if t <= x_most):
        x, _ = place(tick, y_ticks[-1])
        drawing.text(x, bottom + 16, name, 10, "middle", "#666")
    drawing.text((left + right) / 2, height - 10, x_unit, 11, "middle", "#666")
    drawing.text(left, top - 6, y_unit, 11, fill="#666")
    for at, (name, one) in enumerate(series.items()):
        colour = COLOURS[at % len(COLOURS)]
        drawing.path([place(x, y) for x, y in one], colour)
        drawing.rect(right + 14, top + 20 * at, 12, 12, colour)
        drawing.text(right + 32, top + 20 * at + 10, name, 11)
    return drawing.finish()


def decades(values):
    """Powers of ten around the values."""
    positive = [value for value in values if value > 0] or [1]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    return [10.0 ** power for power in range(low, max(high, low + 1) + 1)]


class Frame:
    def __init__(self):
        self.count, self.below = 0, {}


def flame(title, stacks, colour_of, legend, least=0.002):
    """stacks: {(frame, frame, …): samples}, the outermost first. colour_of(frame): its colour; legend: {name: colour}.
    Frames with less than this share of all samples are left out."""
    root = Frame()
    for stack, count in stacks.items():
        root.count += count
        at = root
        for frame in stack:
            at = at.below.setdefault(frame, Frame())
            at.count += count
    width, row, top = 1200, 17, 50
    depth = depth_of(root, root.count * least)
    drawing = Drawing(width, top + row * depth + 12)
    drawing.text(12, 22, title, 15, bold=True)
    for at, (name, colour) in enumerate(legend.items()):
        drawing.rect(12 + 150 * at, 30, 12, 12, colour)
        drawing.text(28 + 150 * at, 40, name, 11)
    draw_frames(drawing, root, 0, (width, row, top, depth, root.count, least), colour_of)
    return drawing.finish()


def depth_of(frame, least):
    return max((1 + depth_of(below, least) for below in frame.below.values() if below.count >= least), default=0)


def draw_frames(drawing, frame, begun, shape, colour_of, level=0):
    width, row, top, depth, total, least = shape
    for name, below in sorted(frame.below.items()):
        if below.count >= total * least:
            x, wide = width * begun / total, width * below.count / total
            y = top + row * (depth - level - 1)
            drawing.rect(x, y, wide - 0.5, row - 1, colour_of(name), f"{name[0]} {below.count / total:.1%}")
            letters = int(wide / 6.2)
            if letters >= 3:
                text = name[0] if len(name[0]) <= letters else name[0][:letters - 1] + "…"
                drawing.text(x + 2, y + 12, text, 10)
            draw_frames(drawing, below, begun, shape, colour_of, level + 1)
        begun += below.count
