"""The picture as SVG: no script, no style sheet, no link, so that every viewer of issues shows it."""

from __future__ import annotations

import html

from gradtrend.model.report import Report
from gradtrend.report.picture.looks import LOOKS
from gradtrend.report.picture.scene import HEIGHT, WIDTH, Box, Line, Shape, Words, scene_of
from gradtrend.report.wording.style import Style

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
# Characters that XML has not, not even as references; those that other formats have not either are escaped already.
_NOT_IN_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


def render_svg(report: Report, style: Style) -> str:
    """The picture of the run, or of the worst of several; the style plays no part."""
    shapes = scene_of(report)
    title = next(shape.text for shape in shapes if isinstance(shape, Words))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="{_FONT}" role="img">\n<title>{_text(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n'
        + "".join(f"{_element(shape)}\n" for shape in shapes)
        + "</svg>\n"
    )


def _element(shape: Shape) -> str:
    colour, opacity = LOOKS[shape.look]
    if isinstance(shape, Box):
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}"'
        return f'<rect {place} fill="{colour}" fill-opacity="{opacity}"/>'
    if isinstance(shape, Line):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
        dash = ' stroke-dasharray="6 4"' if shape.dashed else ""
        looks = f'stroke="{colour}" stroke-width="{shape.width}" stroke-linejoin="round"{dash}'
        return f'<polyline points="{points}" fill="none" {looks}/>'
    weight = ' font-weight="600"' if shape.bold else ""
    place = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size}" text-anchor="{shape.anchor}"'
    return f'<text {place} fill="{colour}"{weight}>{_text(shape.text)}</text>'


def _text(words: str) -> str:
    return html.escape(words.translate(_NOT_IN_XML))
