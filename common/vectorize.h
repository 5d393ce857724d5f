// Two marks for functions with loops. Either compiles the function for AVX-512, AVX2 and plain
// x86-64 and lets the loader choose at start-up: a built binary runs on any x86-64 and is fast on
// each. Loops should run over __restrict pointers. Sums are never reordered, so lanes of a sum are
// written out. The marks differ in what a product that is added to something becomes:
//
//   SATRAP_VECTORIZE_SAME_BITS  a product and a sum, each rounded: vector body, scalar tail and
//                               every CPU give the same bits. For the rows of tables, whose values
//                               must not depend on the machine that a partition lives on.
//   SATRAP_VECTORIZE_FUSED      one fused multiply-add where the CPU has it, rounded once: fewer
//                               instructions. Results may differ between CPU types, never on one.
//                               For the dense network, whose matrix products differ so anyway.

#ifndef SATRAP_COMMON_VECTORIZE_H_
#define SATRAP_COMMON_VECTORIZE_H_

// The choice at start-up is made by an ifunc, which runs before a sanitizer's runtime is ready;
// clang 14 lacks it, and other processors have other targets.
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

#endif  // SATRAP_COMMON_VECTORIZE_H_
