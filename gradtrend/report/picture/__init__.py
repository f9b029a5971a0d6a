"""One chart of one run as a picture, for an issue or a slide: `scene.py` says what is where, svg and png draw it."""
