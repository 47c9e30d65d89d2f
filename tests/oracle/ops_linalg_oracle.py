"""Linear algebra, Fourier transforms and Einsum.

The signs of eigenvectors and singular vectors are not determined: tests/ops/decompose.c checks them."""
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, add, cases, generator, main, raw, values

REAL = [np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]


def numbers(shape, dtype):
    if np.issubdtype(np.dtype(dtype), np.complexfloating):
        return (values(shape, np.float64) + 1j * values(shape, np.float64)).astype(dtype)
    return values(shape, dtype)


def limit(dtype):
    return {np.float64: 1e-10, np.complex128: 1e-10}.get(dtype, 2e-3)


def near(name, dtype, scale=1, **arguments):
    add(name, scale * limit(dtype), **arguments)


def factor_cases():
    for dtype in REAL + COMPLEX:
        for batch in [[], [3], [2, 1], [0]]:
            for n in [1, 2, 5, 17, 0] + [150] * (batch == []):
                x = numbers(batch + [n, n], dtype) + max(3, n) * np.eye(n).astype(dtype)
                definite = np.matmul(x, np.conj(np.swapaxes(x, -1, -2))) + np.eye(n).astype(dtype)
                near("Cholesky", dtype, input=definite)
                for adjoint in [False, True]:
                    near("MatrixInverse", dtype, 10, input=x, adjoint=adjoint)
                    rhs = numbers(batch + [n, max(3, n)], dtype)
                    near("MatrixSolve", dtype, 10, matrix=x, rhs=rhs, adjoint=adjoint)
                    for lower in [False, True]:
                        triangle = np.tril(x) + 5 * np.eye(n).astype(dtype)
                        matrix = triangle if lower else np.swapaxes(triangle, -1, -2)
                        near("MatrixTriangularSolve", dtype, 10, matrix=matrix,
                             rhs=numbers([2] + batch + [n, 3], dtype), lower=lower, adjoint=adjoint)
                near("MatrixDeterminant", dtype, input=x)
                near("LogMatrixDeterminant", dtype, input=x)
                if n > 0:
                    for index in [np.int32, np.int64]:
                        near("Lu", dtype, input=x, output_idx_type=index)
        near("MatrixDeterminant", dtype, input=np.ones([3, 3], dtype))
        near("LogMatrixDeterminant", dtype, input=np.ones([3, 3], dtype))
        for rows, columns in [(7, 4), (4, 7), (5, 5), (1, 3)]:
            x, y = numbers([2, rows, columns], dtype), numbers([2, rows, 3], dtype)
            for regularizer in [0.0, 0.3]:
                near("MatrixSolveLs", dtype, 10, matrix=x, rhs=y, l2_regularizer=regularizer, fast=True)
            near("MatrixSolveLs", dtype, 10, matrix=x, rhs=y, l2_regularizer=0.0, fast=False)


def decompose_cases():
    for dtype in REAL + COMPLEX:
        for rows, columns in [(5, 5), (7, 4), (4, 7), (1, 1), (6, 1), (1, 6), (0, 3), (3, 0), (90, 60), (60, 150)]:
            x = numbers([2, rows, columns], dtype)
            for full in [False, True]:
                near("Qr", dtype, input=x, full_matrices=full)
            near("Svd", dtype, input=x, compute_uv=False)
        for n in [1, 2, 6, 20, 120]:
            x = numbers([3, n, n], dtype)
            x = x + np.conj(np.swapaxes(x, -1, -2))
            near("SelfAdjointEigV2", dtype, input=x, compute_v=False)


def function_cases():
    for dtype in REAL + COMPLEX:
        for batch in [[], [3], [2, 1], [0]]:
            for n in [1, 2, 5, 12, 0]:
                x = numbers(batch + [n, n], dtype)
                definite = np.matmul(x, np.conj(np.swapaxes(x, -1, -2))) + np.eye(n).astype(dtype)
                near("MatrixSquareRoot", dtype, input=definite)
                if dtype in COMPLEX:
                    near("MatrixSquareRoot", dtype, 10, input=x)
                    near("MatrixLogarithm", dtype, input=definite)
                    near("MatrixLogarithm", dtype, 10, input=x)
                else:
                    l = np.tril(x) + 5 * np.eye(n).astype(dtype)
                    near("CholeskyGrad", dtype, l=l, grad=numbers(batch + [n, n], dtype))
    near("CholeskyGrad", np.float64, l=numbers([70, 70], np.float64) + 90 * np.eye(70),
         grad=numbers([70, 70], np.float64))


def tridiagonal_cases():
    for dtype in REAL + COMPLEX:
        for batch in [[], [3], [2, 1], [0]]:
            for n in [1, 2, 3, 5, 40, 0]:
                for k in [1, 3, 0]:
                    x, rhs = numbers(batch + [3, n], dtype), numbers(batch + [n, k], dtype)
                    near("TridiagonalSolve", dtype, 10, diagonals=x, rhs=rhs)
                    x[..., 1, :] += 20
                    near("TridiagonalSolve", dtype, diagonals=x, rhs=rhs, partial_pivoting=False)
                    diagonals = [numbers(batch + [1, n], dtype) for _ in range(3)]
                    if n > 0:
                        near("TridiagonalMatMul", dtype, superdiag=diagonals[0], maindiag=diagonals[1],
                             subdiag=diagonals[2], rhs=rhs)


def fourier_cases():
    for complex_type, real in [(np.complex64, np.float32), (np.complex128, np.float64)]:
        tolerance = 1e-5 if complex_type == np.complex64 else 1e-12
        sizes = [1, 2, 3, 4, 5, 6, 7, 8, 12, 30, 31, 37, 64, 74, 97, 128, 210, 256, 1000, 1009]
        for n in sizes:
            for name in ["FFT", "IFFT"]:
                add(name, tolerance, input=numbers([3, n], complex_type))
            add("RFFT", tolerance, input=values([3, n], real), fft_length=[n], Tcomplex=complex_type)
            add("IRFFT", tolerance, input=numbers([3, n // 2 + 1], complex_type), fft_length=[n], Treal=real)
        for shape in [[17, 30], [8, 64], [1, 2047], [1, 2048], [3, 2310], [4, 2310], [1, 4098], [2, 2053], [1, 16384]]:
            for name in ["FFT", "IFFT"]:  # groups of rows, and few long ones
                add(name, tolerance, input=numbers(shape, complex_type))
        for shape in [[4, 5], [2, 8, 6], [2, 1, 37], [9, 3, 40]]:
            for name in ["FFT2D", "IFFT2D"]:
                add(name, tolerance, input=numbers(shape, complex_type))
        for name in ["FFT3D", "IFFT3D"]:
            add(name, tolerance, input=numbers([2, 4, 5, 6], complex_type))
        for length in [[8, 6], [5, 4], [3, 5]]:
            add("RFFT2D", tolerance, input=values([2, 8, 6], real), fft_length=length, Tcomplex=complex_type)
            add("IRFFT2D", tolerance, input=numbers([2, 8, 4], complex_type), fft_length=length, Treal=real)
        add("RFFT3D", tolerance, input=values([2, 4, 8, 6], real), fft_length=[4, 7, 6], Tcomplex=complex_type)
        add("IRFFT3D", tolerance, input=numbers([2, 4, 8, 4], complex_type), fft_length=[4, 7, 6], Treal=real)
    add("FFT", 1e-5, input=np.zeros([0, 4], np.complex64))


def einsum_cases():
    equations = [
        ("ij->ji", [[3, 4]]), ("ij->", [[3, 4]]), ("ii->i", [[4, 4]]), ("i->ii", [[4]]), ("iij->ji", [[3, 3, 2]]),
        ("...ij->...ji", [[2, 3, 4]]), ("ij,jk->ik", [[3, 4], [4, 5]]), ("ij,kj->ik", [[3, 4], [5, 4]]),
        ("bij,bjk->bik", [[2, 3, 4], [2, 4, 5]]), ("bij,bkj->bki", [[2, 3, 4], [2, 5, 4]]),
        ("...ij,...jk->...ik", [[2, 3, 4], [4, 5]]), ("...ij,...jk->...ik", [[1, 6, 3, 4], [2, 1, 4, 5]]),
        ("i,j->ij", [[3], [4]]), ("i,i->", [[5], [5]]), ("abc,cd->abd", [[2, 3, 4], [4, 5]]),
        ("BTNH,BFNH->BNFT", [[2, 3, 4, 5], [2, 6, 4, 5]]), ("ab,cd->ac", [[2, 3], [4, 5]]),
        ("aab,bcc->ac", [[2, 2, 3], [3, 4, 4]]), (",ij->ij", [[], [2, 3]]), ("ij,jk->ik", [[3, 0], [0, 5]]),
        ("i...j,j...->...i", [[2, 3, 4, 5], [5, 3, 4]]),
    ]
    for dtype in REAL + COMPLEX + HALVES + [np.int32, np.int64]:
        tolerance = 5e-2 if dtype in HALVES else 2e-5 if dtype in (np.float32, np.complex64) else 1e-12
        for equation, shapes in equations:
            add("Einsum", tolerance, inputs=[numbers(shape, dtype) for shape in shapes], equation=equation)


if __name__ == "__main__":
    main(factor_cases, decompose_cases, function_cases, tridiagonal_cases, fourier_cases, einsum_cases)
