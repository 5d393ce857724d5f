// SATRAP_VECTORIZE before a function compiles its loops for several instruction sets; the CPU
// chooses at start-up.
//
// Products and sums are not contracted, and square roots and quotients are exact: vector body,
// scalar tail and every CPU give the same bits. Loops should run over __restrict pointers.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_VECTORIZE_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_VECTORIZE_H_

// The run-time choice is made by an ifunc, which runs before a sanitizer's runtime is ready; clang
// 14 lacks it.
#if defined(__clang__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SATRAP_VECTORIZE
#else
#define SATRAP_VECTORIZE \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fp-contract=off")))
#endif

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_VECTORIZE_H_
