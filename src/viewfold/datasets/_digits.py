"""Views of the handwritten digits that come with scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sklearn.utils import Bunch

Images = NDArray[np.float64]


def load_digits_views() -> Bunch:
    """Load 1797 handwritten digits, described in six ways.

    The images (8 × 8 grey values) come with scikit-learn; the views are computed from them, in the
    manner of the classical multiple-features set.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays: pixels (64), fourier (magnitudes of the 2-D transform, 39),
        profiles (projections on rows, columns and diagonals, 46), zones (mean and direction of the
        stroke in 16 zones, 48), moments (mass, centre and central moments up to order four, 15) and
        edges (histograms of gradient directions in nine cells, 72); ``target``, the digits.

    Examples
    --------
    >>> from viewfold.datasets import load_digits_views
    >>> digits = load_digits_views()
    >>> {name: X.shape for name, X in digits.views.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'pixels': (1797, 64), 'fourier': (1797, 39), 'profiles': (1797, 46), 'zones': (1797, 48),
     'moments': (1797, 15), 'edges': (1797, 72)}
    """
    from sklearn.datasets import load_digits
    from sklearn.utils import Bunch

    digits = load_digits()
    images: Images = digits.images / 16
    views = {
        "pixels": images.reshape(len(images), -1),
        "fourier": _fourier(images),
        "profiles": _profiles(images),
        "zones": _zones(images),
        "moments": _moments(images),
        "edges": _edges(images),
    }
    return Bunch(views=views, target=digits.target)


def _fourier(images: Images) -> Images:
    spectrum = np.abs(np.fft.rfft2(images))  # the constant term is the mass, which others have
    return spectrum.reshape(len(images), -1)[:, 1:]


def _profiles(images: Images) -> Images:
    def diagonals(stack: Images) -> list[Images]:
        return [np.trace(stack, k, axis1=1, axis2=2) for k in range(-7, 8)]

    sums = [*images.sum(axis=1).T, *images.sum(axis=2).T]
    return np.column_stack([*sums, *diagonals(images), *diagonals(images[:, :, ::-1])])


def _cells(images: Images, size: int, step: int) -> Images:
    """Cut images into square cells: images × cells × size × size."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (size, size), axis=(1, 2))
    return windows[:, ::step, ::step].reshape(len(images), -1, size, size)


def _zones(images: Images) -> Images:
    down, right = np.gradient(images, axis=(1, 2))
    parts: tuple[Images, ...] = (images, down * right, down**2 - right**2)  # type: ignore[assignment]
    return np.column_stack([_cells(part, 2, 2).mean(axis=(2, 3)) for part in parts])


def _moments(images: Images) -> Images:
    y, x = np.mgrid[:8, :8]
    mass = images.sum(axis=(1, 2))

    def mean(values: Images) -> Images:
        return np.asarray((images * values).sum(axis=(1, 2)) / mass)

    dx = x - mean(x)[:, None, None]
    dy = y - mean(y)[:, None, None]
    orders = [(p, q) for p in range(5) for q in range(5) if 2 <= p + q <= 4]
    moments = [mean(dx**p * dy**q) for p, q in orders]
    return np.column_stack([mass, mean(x), mean(y), *moments])


def _edges(images: Images) -> Images:
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    direction = np.arctan2(down, right) / (2 * np.pi) * 8 % 8
    histogram = []
    for k in range(8):
        apart = np.abs(direction - k)
        share: Images = np.clip(
            1 - np.minimum(apart, 8 - apart), 0, 1
        )  # between its two next directions
        histogram.append(_cells(strength * share, 4, 2).sum(axis=(2, 3)))
    return np.column_stack(histogram)
