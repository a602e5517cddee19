#include "measure/linear.h"

#include <Eigen/Cholesky>

namespace llmperf::measure {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

// Copies, as how Eigen sums depends on what it knows of the alignment of its operands.
MatrixXd read(const Matrix& a) {
  return Eigen::Map<const MatrixXd>(a.values.data(), static_cast<Eigen::Index>(a.rows),
                                    static_cast<Eigen::Index>(a.columns));
}
VectorXd read(std::span<const double> x) { return Eigen::Map<const VectorXd>(x.data(), std::ssize(x)); }

std::vector<double> written(const VectorXd& x) { return {x.begin(), x.end()}; }
Matrix written(const MatrixXd& a) {
  Matrix result(static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(a.cols()));
  result.values.assign(a.data(), a.data() + a.size());
  return result;
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) { return read(a).dot(read(b)); }

std::vector<double> product(const Matrix& a, std::span<const double> x) {
  const VectorXd result = read(a) * read(x);
  return written(result);
}

std::vector<double> transposed_product(const Matrix& a, std::span<const double> x) {
  const VectorXd result = read(a).transpose() * read(x);
  return written(result);
}

Matrix gram(const Matrix& a) {
  const MatrixXd of = read(a);
  const MatrixXd result = of.transpose() * of;
  return written(result);
}

std::vector<double> solve(const Matrix& a, std::span<const double> b) {
  const VectorXd result = read(a).ldlt().solve(read(b));
  return written(result);
}

Matrix inverse(const Matrix& a) {
  const MatrixXd of = read(a);
  const MatrixXd result = of.llt().solve(MatrixXd::Identity(of.rows(), of.cols()));
  return written(result);
}

}  // namespace llmperf::measure
