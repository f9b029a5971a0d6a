"""The picture as PNG, drawn by Pillow, which brings the font with it."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from gradtrend.errors import ConfigError
from gradtrend.model.report import Report
from gradtrend.report.picture.looks import LOOKS
from gradtrend.report.picture.scene import HEIGHT, WIDTH, Box, Line, Shape, Words, scene_of
from gradtrend.report.wording.style import Style

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

_SCALE = 2  # pixels of the file for one of the scene: sharp on a slide
_FINER = 2  # it is drawn larger by this and then made smaller, which makes lines smooth
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
_DASH, _GAP = 6, 4


def check_pillow() -> None:
    """Raise `ConfigError` where Pillow is not installed."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise ConfigError(
            "--format png needs Pillow, which is not installed",
            "pip install 'gradtrend[png]', or take --format svg, which needs nothing.",
        ) from None


def render_png(report: Report, style: Style) -> bytes:
    """The bytes of a PNG file of 1920 x 880 pixels. Raises `ConfigError` where Pillow is not installed."""
    check_pillow()
    from PIL import Image, ImageDraw

    scale = _SCALE * _FINER
    image = Image.new("RGB", (WIDTH * scale, HEIGHT * scale), "#ffffff")
    draw = ImageDraw.Draw(image, "RGBA")
    for shape in scene_of(report):
        _put(draw, shape, scale)
    file = BytesIO()
    image.resize((WIDTH * _SCALE, HEIGHT * _SCALE), Image.Resampling.LANCZOS).save(file, "PNG", optimize=True)
    return file.getvalue()


def _put(draw: ImageDraw, shape: Shape, scale: int) -> None:
    colour, opacity = LOOKS[shape.look]
    fill = f"{colour}{round(opacity * 255):02x}"
    if isinstance(shape, Box):
        ends = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
        draw.rectangle([end * scale for end in ends], fill=fill)
    elif isinstance(shape, Line):
        for part in _dashes(shape) if shape.dashed else [shape.points]:
            points = [(x * scale, y * scale) for x, y in part]
            draw.line(points, fill=fill, width=round(shape.width * scale), joint="curve")
    else:
        _write(draw, shape, fill, scale)


def _write(draw: ImageDraw, words: Words, fill: str, scale: int) -> None:
    from PIL import ImageFont

    font = ImageFont.load_default(words.size * scale)
    stroke = round(scale * 0.2) if words.bold else 0
    place = (words.x * scale, words.y * scale)
    draw.text(place, words.text, fill, font, _ANCHORS[words.anchor], stroke_width=stroke, stroke_fill=fill)


def _dashes(line: Line) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The dashes of an upright line."""
    (x, top), (_, bottom) = line.points
    starts = range(round(top), round(bottom), _DASH + _GAP)
    return [((x, y), (x, min(bottom, y + _DASH))) for y in starts]
