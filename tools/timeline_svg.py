"""The timeline of a run, from the timeline.csv of `armilla run --csv`, as an SVG picture.

Used by generate_reference.py. One row per track; lanes of one track ("collectives (2)") are thin rows without a label.
Slices narrower than a hair are left out, so that the picture stays small.
"""

import csv
import io
import re
from xml.sax.saxutils import escape

LABELS, WIDTH, ROW, LANE, GAP, MARGIN = 150, 800, 26, 10, 8, 12  # pixels
HAIR = 0.05
PAPER, INK, GRID = "#ffffff", "#30343c", "#dcdfe4"
COLOURS = {
    "forward": "#4c78a8",
    "input gradient": "#72b7b2",
    "weight gradient": "#54a24b",
    "gradient exchange": "#e45756",
    "optimizer": "#b279a2",
    "chunk": "#f2a65a",
}


def _tracks(records):
    """{label: lanes}, a lane being its records; "collectives (2)" is the second lane of "collectives"."""
    tracks = {}
    for record in records:
        label, lane = re.fullmatch(r"(.*?)(?: \((\d+)\))?", record["track"]).groups()
        lanes = tracks.setdefault(label, {})
        lanes.setdefault(int(lane or 1), []).append(record)
    return {label: [lanes[i] for i in sorted(lanes)] for label, lanes in tracks.items()}


def _step(milliseconds):
    """A round distance of grid lines that makes five to ten of them."""
    return next(step for step in (m * 10.0**e for e in range(-6, 10) for m in (1, 2, 5)) if milliseconds / step <= 10)


def svg(text, title):
    records = list(csv.DictReader(io.StringIO(text)))
    end = max(float(record["end_s"]) for record in records)
    scale = WIDTH / end
    bars, grid, y = [], [], MARGIN + 22
    top = y
    for label, lanes in _tracks(records).items():
        height = ROW if len(lanes) == 1 else LANE
        middle = y + height * len(lanes) / 2 + 4
        bars.append(f'<text x="{MARGIN}" y="{middle:.0f}">{escape(label)}</text>')
        for lane in lanes:
            for record in lane:
                start, width = float(record["start_s"]) * scale, (float(record["end_s"]) - float(record["start_s"])) * scale
                if width >= HAIR:
                    bars.append(f'<rect x="{LABELS + start:.2f}" y="{y}" width="{width:.2f}" height="{height - 1}" '
                                f'fill="{COLOURS.get(record["category"], INK)}"/>')
            y += height
        y += GAP
    step = _step(end * 1e3)
    for i in range(int(end * 1e3 / step) + 1):
        x = LABELS + i * step * 1e-3 * scale
        grid.append(f'<path d="M{x:.1f} {top}V{y}" stroke="{GRID}"/>')
        grid.append(f'<text x="{x:.1f}" y="{y + 14}" text-anchor="middle">{i * step:g} ms</text>')
    legend, x = [], LABELS
    for category in [c for c in COLOURS if any(record["category"] == c for record in records)]:
        legend.append(f'<rect x="{x}" y="{y + 28}" width="12" height="12" fill="{COLOURS[category]}"/>'
                      f'<text x="{x + 17}" y="{y + 39}">{category}</text>')
        x += 36 + 7 * len(category)
    width, height = LABELS + WIDTH + 2 * MARGIN, y + 50
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" fill="{INK}" '
        'font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="12">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        f'<text x="{LABELS}" y="{MARGIN + 8}" font-weight="bold">{escape(title)}</text>',
        *grid, *bars, *legend, "</svg>"]) + "\n"
