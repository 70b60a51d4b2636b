"""The bundled digits: every view is computed from one image at a time."""

import numpy as np

from viewfold.datasets import load_digits_views


def test_digits_views_are_made_of_one_image_each() -> None:
    digits = load_digits_views()
    assert len(digits.views) >= 4
    for X in digits.views.values():
        assert X.shape[0] == digits.target.size == 1797
        assert np.isfinite(X).all()
    # A view of some images is part of the view of all images.
    from viewfold.datasets import _made

    images = digits.views["pixels"].reshape(-1, 8, 8)
    for name in ("fourier", "profiles", "zones", "moments", "edges"):
        part = getattr(_made, f"_{name}")(images[5:8])
        assert np.allclose(part, digits.views[name][5:8])
