// Two attributes for functions with loops. Both compile the function for AVX-512, AVX2 and plain
// x86-64, and the dynamic loader chooses one of the three at start-up: a binary runs on any x86-64
// and is fast on each. Loops should run over __restrict pointers. The compiler never reorders a
// sum, so a sum that is to be vectorised is written with explicit lanes. The attributes differ in
// how a product that is added to something is computed:
//
//   SATRAP_VECTORIZE_SAME_BITS  a product and a sum, each rounded. Vector body, scalar tail and
//                               every CPU give the same bits. For the rows of tables, whose values
//                               must not depend on the machine that holds a partition.
//   SATRAP_VECTORIZE_FUSED      one fused multiply-add, rounded once, if the CPU has it: fewer
//                               instructions. Results may differ between CPU types, but never
//                               between CPUs of one type. For the dense network, whose matrix
//                               products differ between CPU types anyway.

#ifndef SATRAP_COMMON_NUMERIC_VECTORIZE_H_
#define SATRAP_COMMON_NUMERIC_VECTORIZE_H_

// The choice at start-up is an ifunc. It is not used in three cases: with a sanitizer, because it
// would run before the sanitizer's runtime is ready; with clang, because clang 14 does not support
// it; and on other processors, because they have other targets.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SATRAP_VECTORIZE_SAME_BITS                                             \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "fp-contract=off")))
#define SATRAP_VECTORIZE_FUSED                                                 \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "no-math-errno", "no-trapping-math")))
#else
#define SATRAP_VECTORIZE_SAME_BITS
#define SATRAP_VECTORIZE_FUSED
#endif

#endif  // SATRAP_COMMON_NUMERIC_VECTORIZE_H_
