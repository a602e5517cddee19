// The dense linear algebra of fits, behind a header without Eigen, which takes longer to compile than all that calls
// it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace llmperf::measure {

struct Matrix {
  Matrix() = default;
  Matrix(std::size_t of_rows, std::size_t of_columns)
      : rows(of_rows), columns(of_columns), values(of_rows * of_columns) {}

  double operator()(std::size_t row, std::size_t column) const { return values[column * rows + row]; }
  double& operator()(std::size_t row, std::size_t column) { return values[column * rows + row]; }

  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> values;  // column after column
};

double dot(std::span<const double> a, std::span<const double> b);
std::vector<double> product(const Matrix& a, std::span<const double> x);
std::vector<double> transposed_product(const Matrix& a, std::span<const double> x);  // A^T x
Matrix gram(const Matrix& a);                                                        // A^T A
// x of A x = b, for a symmetric A.
std::vector<double> solve(const Matrix& a, std::span<const double> b);
// Of a symmetric, positive definite one.
Matrix inverse(const Matrix& a);

}  // namespace llmperf::measure
