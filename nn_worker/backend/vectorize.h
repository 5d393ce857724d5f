// SATRAP_VECTORIZE before a function compiles it for AVX-512, AVX2 and plain x86-64 and lets the
// loader choose: a built binary runs on any x86-64 and is fast on each. Loops in it are vectorised;
// sums are not reordered, so lanes of a sum are written out. Results may differ between CPU types
// (fused multiply-add), never on one.

#ifndef SATRAP_NN_WORKER_BACKEND_VECTORIZE_H_
#define SATRAP_NN_WORKER_BACKEND_VECTORIZE_H_

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SATRAP_VECTORIZE                                                       \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), \
                 optimize("O3", "no-math-errno", "no-trapping-math")))
#else
// Sanitizers run before the loader has chosen; other compilers have other spellings.
#define SATRAP_VECTORIZE
#endif

#endif  // SATRAP_NN_WORKER_BACKEND_VECTORIZE_H_
