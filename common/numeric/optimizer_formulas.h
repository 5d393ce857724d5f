// The steps of optimizers for one value: the gradient `g` changes the value `w` and its state. The
// tables' optimizers, the CPU's dense optimizer and the kernels of devices include these formulas.
// Each of these users has its own loop, and thereby decides how a product is rounded before it is
// added to something (vectorize.h).
//
// RMSProp and FTRL are not here, because one of the three users computes them in another order. For
// example, it passes over the values of RMSProp several times, so that the loops can be vectorised.
//
// The functions are always inlined, because a function that is called would not be vectorised, and
// would round by the options of this file instead of those of its caller. They are constexpr so
// that kernels may call them. They are templates because clang rejects a constexpr function that
// takes a square root which it cannot compute at compile time. This header includes nothing,
// because kernels include it.

#ifndef SATRAP_COMMON_NUMERIC_OPTIMIZER_FORMULAS_H_
#define SATRAP_COMMON_NUMERIC_OPTIMIZER_FORMULAS_H_

namespace satrap::formula {

struct AdamConstants {
  float learning_rate;
  float beta1;
  float beta2;
  float epsilon;
  float correction1;  // 1 - beta1^t
  float correction2;  // 1 - beta2^t
};

template <typename Float>
[[gnu::always_inline]] constexpr Float Root(Float x) {
  return __builtin_sqrtf(x);
}

template <typename Float>
[[gnu::always_inline]] constexpr void Sgd(Float learning_rate, Float g, Float& w) {
  w -= learning_rate * g;
}

// Duchi, Hazan and Singer 2011. a: the sum of squared gradients
template <typename Float>
[[gnu::always_inline]] constexpr void Adagrad(Float learning_rate, Float epsilon, Float g, Float& w,
                                              Float& a) {
  a += g * g;
  w -= learning_rate * g / (Root(a) + epsilon);
}

// The moments m and v of Adam and its variants: the means of gradients and of their squares.
template <typename Float>
[[gnu::always_inline]] constexpr void Moments(const AdamConstants& c, Float g, Float& m, Float& v) {
  m = c.beta1 * m + (1 - c.beta1) * g;
  v = c.beta2 * v + (1 - c.beta2) * g * g;
}

// Kingma and Ba 2015, Algorithm 1.
template <typename Float>
[[gnu::always_inline]] constexpr void Adam(const AdamConstants& c, Float g, Float& w, Float& m,
                                           Float& v) {
  Moments(c, g, m, v);
  w -= c.learning_rate * (m / c.correction1) / (Root(v / c.correction2) + c.epsilon);
}

// Loshchilov and Hutter 2019, Algorithm 2: the weight decay is not part of the gradient.
template <typename Float>
[[gnu::always_inline]] constexpr void AdamW(const AdamConstants& c, Float weight_decay, Float g,
                                            Float& w, Float& m, Float& v) {
  Moments(c, g, m, v);
  const Float direction = (m / c.correction1) / (Root(v / c.correction2) + c.epsilon);
  w -= c.learning_rate * (direction + weight_decay * w);
}

// Reddi, Kale and Kumar 2018, with Adam's corrections. largest: the largest v so far
template <typename Float>
[[gnu::always_inline]] constexpr void AmsGrad(const AdamConstants& c, Float g, Float& w, Float& m,
                                              Float& v, Float& largest) {
  Moments(c, g, m, v);
  largest = largest > v ? largest : v;
  w -= c.learning_rate * (m / c.correction1) / (Root(largest / c.correction2) + c.epsilon);
}

template <typename Float>
[[gnu::always_inline]] constexpr void MomentumRateInside(Float learning_rate, Float mu, Float g,
                                                         Float& w, Float& m) {
  m = mu * m - learning_rate * g;
  w += m;
}

// share: the factor 1 - dampening with which the gradient is added to m
template <typename Float>
[[gnu::always_inline]] constexpr void MomentumRateOutside(Float learning_rate, Float mu,
                                                          Float share, Float g, Float& w,
                                                          Float& m) {
  m = mu * m + share * g;
  w -= learning_rate * m;
}

// Sutskever et al. 2013, in the form whose `w` is the value at which the gradient is taken.
template <typename Float>
[[gnu::always_inline]] constexpr void Nesterov(Float learning_rate, Float mu, Float g, Float& w,
                                               Float& m) {
  const Float before = m;
  const Float after = mu * before - learning_rate * g;
  m = after;
  w += (1 + mu) * after - mu * before;
}

// Zeiler 2012. a: the mean of squared gradients; u: the mean of squared steps
template <typename Float>
[[gnu::always_inline]] constexpr void Adadelta(Float learning_rate, Float rho, Float epsilon,
                                               Float g, Float& w, Float& a, Float& u) {
  a = rho * a + (1 - rho) * g * g;
  const Float d = g * Root(u + epsilon) / Root(a + epsilon);
  u = rho * u + (1 - rho) * d * d;
  w -= learning_rate * d;
}

// Zheng and Kwok 2017, Algorithm 1, without its z. rate: lr (1 - beta1) / (1 - beta1^t)
template <typename Float>
[[gnu::always_inline]] constexpr void Ftml(Float rate, Float beta2, Float epsilon,
                                           Float correction2, Float g, Float& w, Float& v) {
  v = beta2 * v + (1 - beta2) * g * g;
  w -= rate * g / (Root(v / correction2) + epsilon);
}

}  // namespace satrap::formula

#endif  // SATRAP_COMMON_NUMERIC_OPTIMIZER_FORMULAS_H_
