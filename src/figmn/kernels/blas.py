"""Matrix products and triangular solves in place, callable from compiled code.

SciPy publishes the addresses of its BLAS; calling them directly allows what
``numpy.matmul`` does not: to add to a block of a larger matrix without a copy.
All of them go to one library with one pool of threads, and run without the
interpreter lock.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic

from figmn._typing import Array
from figmn.kernels.compiler import compiled_once, inlined

_pointer: Any = types.CPointer
_copied: Any = cgutils.alloca_once_value
_CHAR, _INT, _DOUBLE = (_pointer(kind) for kind in (types.uint8, types.int32, types.float64))
_ARRAY = types.uintp
_YES, _NO = ord("T"), ord("N")
_LEFT, _RIGHT, _UPPER = ord("L"), ord("R"), ord("U")


def _external(name: str, *arguments: Any) -> Any:
    """A BLAS routine under a name that compiled code, also from the cache, links to."""
    symbol = f"figmn_{name}"
    llvm.add_symbol(symbol, get_cython_function_address("scipy.linalg.cython_blas", name))
    return types.ExternalFunction(symbol, types.void(*arguments))


_dgemm = _external(
    "dgemm",
    *(_CHAR, _CHAR, _INT, _INT, _INT),
    *(_DOUBLE, _ARRAY, _INT, _ARRAY, _INT, _DOUBLE, _ARRAY, _INT),
)
_dgemv = _external(
    "dgemv", _CHAR, _INT, _INT, _DOUBLE, _ARRAY, _INT, _ARRAY, _INT, _DOUBLE, _ARRAY, _INT
)
_dtrsm = _external(
    "dtrsm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _DOUBLE, _ARRAY, _INT, _ARRAY, _INT
)
_dsymm = _external(
    "dsymm",
    *(_CHAR, _CHAR, _INT, _INT),
    *(_DOUBLE, _ARRAY, _INT, _ARRAY, _INT, _DOUBLE, _ARRAY, _INT),
)
_dsyrk = _external("dsyrk", _CHAR, _CHAR, _INT, _INT, _DOUBLE, _ARRAY, _INT, _DOUBLE, _ARRAY, _INT)


def _reference_to(typing_context: Any, value: Any) -> Any:
    """Address of a copy of a scalar, as Fortran takes its arguments."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _copied(builder, arguments[0])

    return _pointer(value)(value), generate


_reference: Any = intrinsic(_reference_to)


@inlined
def _multiply(
    alpha: float,
    matrix: Array,
    turned: bool,
    step: int,
    n_rows: int,
    n_columns: int,
    vector: Array,
    vector_stride: int,
    beta: float,
    out: Array,
    out_stride: int,
) -> None:
    """The product of a matrix, row-major or ``turned``, with a vector."""
    # Rows and columns are those of the view; what lies in memory row by row is
    # the view itself or, if either (but not both) is turned, its transpose.
    stored_rows = n_columns if matrix.strides[1] != matrix.itemsize else n_rows
    stored_columns = n_rows + n_columns - stored_rows
    _dgemv(
        _reference(np.uint8(_NO if turned else _YES)),
        _reference(np.int32(stored_columns)),
        _reference(np.int32(stored_rows)),
        _reference(alpha),
        matrix.ctypes.data,
        _reference(np.int32(step)),
        vector.ctypes.data,
        _reference(np.int32(max(vector_stride // vector.itemsize, 1))),
        _reference(beta),
        out.ctypes.data,
        _reference(np.int32(max(out_stride // out.itemsize, 1))),
    )


@compiled_once("void(float64, float64[:, :], float64[:, :], float64, float64[:, :])")
def add_product(alpha: float, a: Array, b: Array, beta: float, c: Array) -> None:
    """Replace ``c`` by ``alpha a b + beta c``.

    Parameters
    ----------
    alpha, beta : float
    a, b, c : arrays of shape (m, k), (k, n) and (m, n)
        Views of row-major arrays; ``a`` and ``b`` may also be transposed ones.
    """
    m, k = a.shape
    _, n = b.shape
    if m == 0 or n == 0:
        return
    if k == 0:
        for i in range(m):
            for j in range(n):
                c[i, j] = beta * c[i, j] if beta != 0.0 else 0.0
        return
    item = a.itemsize
    # To Fortran a row-major matrix is its transpose: c' = b' a'.
    a_turned, b_turned = a.strides[1] != item, b.strides[1] != item
    a_step = max(a.strides[0] // item, k) if not a_turned else max(a.strides[1] // item, m)
    b_step = max(b.strides[0] // item, n) if not b_turned else max(b.strides[1] // item, k)
    if m == 1:  # c' = b' a', with vectors a and c
        _multiply(alpha, b, not b_turned, b_step, k, n, a, a.strides[1], beta, c, c.strides[1])
        return
    if n == 1:
        _multiply(alpha, a, a_turned, a_step, m, k, b, b.strides[0], beta, c, c.strides[0])
        return
    _dgemm(
        _reference(np.uint8(_YES if b_turned else _NO)),
        _reference(np.uint8(_YES if a_turned else _NO)),
        _reference(np.int32(n)),
        _reference(np.int32(m)),
        _reference(np.int32(k)),
        _reference(alpha),
        b.ctypes.data,
        _reference(np.int32(b_step)),
        a.ctypes.data,
        _reference(np.int32(a_step)),
        _reference(beta),
        c.ctypes.data,
        _reference(np.int32(max(c.strides[0] // item, n))),
    )


@compiled_once("void(float64[:, :], float64[:, :])")
def solve_lower(triangle: Array, values: Array) -> None:
    """Replace ``values`` by ``inv(triangle) values``.

    Parameters
    ----------
    triangle : array of shape (n, n)
        Row-major; only the lower triangle is read.
    values : array of shape (n, m)
        Row-major.
    """
    n, m = values.shape
    if n == 0 or m == 0:
        return
    item = values.itemsize
    # To Fortran: values' <- values' inv(triangle'), with an upper triangle.
    _dtrsm(
        _reference(np.uint8(_RIGHT)),
        _reference(np.uint8(_UPPER)),
        _reference(np.uint8(_NO)),
        _reference(np.uint8(_NO)),
        _reference(np.int32(m)),
        _reference(np.int32(n)),
        _reference(1.0),
        triangle.ctypes.data,
        _reference(np.int32(max(triangle.strides[0] // item, n))),
        values.ctypes.data,
        _reference(np.int32(max(values.strides[0] // item, m))),
    )


@compiled_once("void(float64[:, ::1], float64[:, ::1], float64[:, ::1])")
def multiply_symmetric(rows: Array, matrix: Array, out: Array) -> None:
    """Write ``rows matrix`` to ``out``, both of shape (N, D).

    Parameters
    ----------
    rows, out : arrays of shape (N, D)
    matrix : array of shape (D, D)
        Symmetric; only the lower triangle is read.
    """
    n_rows, n_features = rows.shape
    size = _reference(np.int32(max(n_features, 1)))
    # To Fortran: out' = matrix rows', and the lower triangle is the upper one.
    _dsymm(
        _reference(np.uint8(_LEFT)),
        _reference(np.uint8(_UPPER)),
        _reference(np.int32(n_features)),
        _reference(np.int32(n_rows)),
        _reference(1.0),
        matrix.ctypes.data,
        size,
        rows.ctypes.data,
        size,
        _reference(0.0),
        out.ctypes.data,
        size,
    )


@compiled_once("void(float64[:, ::1], float64[:, ::1])")
def subtract_squares(rows: Array, matrix: Array) -> None:
    """Replace ``matrix`` by ``matrix - rows' rows``.

    Parameters
    ----------
    rows : array of shape (N, D)
    matrix : array of shape (D, D)
        Symmetric; only the lower triangle is read and written.
    """
    n_rows, n_features = rows.shape
    size = _reference(np.int32(max(n_features, 1)))
    _dsyrk(
        _reference(np.uint8(_UPPER)),
        _reference(np.uint8(_NO)),
        _reference(np.int32(n_features)),
        _reference(np.int32(n_rows)),
        _reference(-1.0),
        rows.ctypes.data,
        size,
        _reference(1.0),
        matrix.ctypes.data,
        size,
    )


def product(a: Array, b: Array) -> Array:
    """``a @ b`` by this module's BLAS.

    NumPy has one of its own, whose threads would wait for the same cores.
    """
    out = np.empty((len(a), b.shape[1]))
    add_product(1.0, _straight(a), _straight(b), 0.0, out)
    return out


def _straight(matrix: Array) -> Array:
    """Itself, or a copy if neither its rows nor its columns lie together."""
    return matrix if matrix.itemsize in matrix.strides else np.ascontiguousarray(matrix)
