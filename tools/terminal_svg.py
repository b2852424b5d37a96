"""What a program prints on a terminal as an SVG picture: text in a fixed-width font with the colours of its SGR codes.

Used by generate_reference.py for the pictures under docs/images. Every run of characters is as wide as its columns
whatever font the viewer has; block characters are drawn as rectangles, so that bars have no gaps. The plain text is
the picture's description (<desc>), for readers who see no pictures and for comparisons.
"""

import os
import pty
import re
import subprocess
from xml.sax.saxutils import escape, unescape

COLUMN, LINE, MARGIN = 8.4, 19, 16  # pixels
PAPER, INK = "#1e2127", "#d7dae0"
STYLES = {
    "1": f'fill="{INK}" font-weight="bold"',
    "2": 'fill="#8b919d"',
    "31": 'fill="#e06c75"',
    "32": 'fill="#98c379"',
    "33": 'fill="#e5c07b"',
    "34": 'fill="#61afef"',
}
BLOCKS = {"█": 1.0, "▓": 0.6, "░": 0.25}  # opacity
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def terminal_output(command, environment):
    """What `command` prints when its output is a terminal."""
    own, programs = pty.openpty()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=programs, stderr=programs, env=environment) as process:
        os.close(programs)
        pieces = []
        while True:
            try:
                piece = os.read(own, 65536)
            except OSError:  # what Linux says once the other side is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(own)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} exits with {process.returncode}")
    return b"".join(pieces).decode("utf-8").replace("\r\n", "\n")


def plain(text):
    return SGR.sub("", text)


def _runs(line):
    """(column, characters, style) of a line: stretches of one style that hold one kind of block or no blocks."""
    style, column = "", 0
    for i, part in enumerate(SGR.split(line)):
        if i % 2 == 1:
            style = part if part in STYLES else ""
            continue
        for run in re.findall("█+|▓+|░+|[^█▓░]+", part):
            yield column, run, style
            column += len(run)


def _drawn(line, top):
    for column, run, style in _runs(line):
        paint = STYLES.get(style, f'fill="{INK}"')
        if run[0] in BLOCKS:
            yield (f'<rect x="{MARGIN + column * COLUMN:.1f}" y="{top + 3}" width="{len(run) * COLUMN:.1f}" '
                   f'height="{LINE - 5}" {paint} fill-opacity="{BLOCKS[run[0]]}"/>')
        elif run.strip():
            start = len(run) - len(run.lstrip())
            text = run.strip()
            x = MARGIN + (column + start) * COLUMN
            yield (f'<text x="{x:.1f}" y="{top + 14}" textLength="{len(text) * COLUMN:.1f}" {paint}>'
                   f'{escape(text)}</text>')


def svg(text):
    lines = text.rstrip("\n").split("\n")
    width = 2 * MARGIN + max(len(plain(line)) for line in lines) * COLUMN
    height = 2 * MARGIN + len(lines) * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" xml:space="preserve" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">',
        f"<desc>{escape(plain(text))}</desc>",
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
    ]
    for number, line in enumerate(lines):
        parts.extend(_drawn(line, MARGIN + number * LINE))
    return "\n".join([*parts, "</svg>"]) + "\n"


def described(picture):
    """The plain text that `svg` made a picture of."""
    found = re.search("<desc>(.*?)</desc>", picture, re.DOTALL)
    return unescape(found.group(1)) if found else ""
