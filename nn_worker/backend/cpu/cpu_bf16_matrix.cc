#include "nn_worker/backend/cpu/cpu_bf16_matrix.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

using dnnl::memory;

// Rows of a slice of y or dx: enough that the blocked weights are read seldom, and few enough that
// two threads share a part of some thousand samples evenly.
constexpr int64_t kRowBlock = 256;
// Rows of dw of one slice, at most.
constexpr int64_t kWeightRows = 128;
// Products of other shapes that are kept, before all are made anew. Parts differ in their rows.
constexpr size_t kMostKept = 64;

memory::desc Desc(int64_t rows, int64_t cols, memory::data_type type, int64_t row_stride,
                  int64_t col_stride) {
  return {{rows, cols}, type, memory::dims{row_stride, col_stride}};
}
memory::desc AnyLayout(int64_t rows, int64_t cols, memory::data_type type) {
  return {{rows, cols}, type, memory::format_tag::any};
}

constexpr memory::data_type kBf16 = memory::data_type::bf16;
constexpr memory::data_type kF32 = memory::data_type::f32;

// Scratch memory is the caller's: several threads run one product at a time.
dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// y = x w for kRowBlock rows.
struct Forward {
  dnnl::inner_product_forward product;
  memory::desc x, weights, y, scratch;
};

// dw = x^T dz for some columns of x.
struct Backward {
  dnnl::inner_product_backward_weights product;
  memory::desc x, dz, dw, scratch;
};

}  // namespace

struct CpuBf16Matrix::Rep {
  explicit Rep(ForkJoinPool* pool)
      : pool(pool), engine(dnnl::engine::kind::cpu, 0), threads(pool->num_threads()) {
    for (Thread& thread : threads) thread.stream = dnnl::stream(engine);
  }

  struct Thread {
    dnnl::stream stream;
    AlignedScratch scratch, result;
  };

  memory Memory(const memory::desc& desc, const void* data) {
    return {desc, engine, const_cast<void*>(data)};
  }
  memory Scratch(const memory::desc& desc, Thread* thread) {
    return Memory(desc, thread->scratch.Get<uint8_t>(std::max<int64_t>(1, desc.get_size())));
  }
  const Forward& ForwardOf(int64_t in, int64_t out, int64_t x_stride, int64_t y_stride);
  const Backward& BackwardOf(int64_t n, int64_t in, int64_t out, int64_t x_stride,
                             int64_t dz_stride);
  // c = a b, where value (i, o) of b is at b + i * in_stride + o * out_stride.
  void Multiply(const Tensor& a, const void* b, int64_t in_stride, int64_t out_stride,
                const Tensor& c);

  ForkJoinPool* const pool;
  const dnnl::engine engine;
  std::vector<Thread> threads;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, Forward> forwards;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>, Backward> backwards;
  AlignedScratch blocked, tail_a, tail_c;
};

const Forward& CpuBf16Matrix::Rep::ForwardOf(int64_t in, int64_t out, int64_t x_stride,
                                             int64_t y_stride) {
  const auto key = std::make_tuple(in, out, x_stride, y_stride);
  if (const auto found = forwards.find(key); found != forwards.end()) return found->second;
  if (forwards.size() >= kMostKept) forwards.clear();
  Forward forward;
  forward.x = Desc(kRowBlock, in, kBf16, x_stride, 1);
  forward.y = Desc(kRowBlock, out, kF32, y_stride, 1);
  const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, forward.x,
                                               AnyLayout(out, in, kBf16), forward.y);
  const dnnl::inner_product_forward::primitive_desc made(desc, UserScratch(), engine);
  forward.weights = made.weights_desc();
  forward.scratch = made.scratchpad_desc();
  forward.product = dnnl::inner_product_forward(made);
  return forwards.emplace(key, std::move(forward)).first->second;
}

const Backward& CpuBf16Matrix::Rep::BackwardOf(int64_t n, int64_t in, int64_t out, int64_t x_stride,
                                               int64_t dz_stride) {
  const auto key = std::make_tuple(n, in, out, x_stride, dz_stride);
  if (const auto found = backwards.find(key); found != backwards.end()) return found->second;
  Backward backward;
  backward.x = Desc(n, in, kBf16, x_stride, 1);
  backward.dz = Desc(n, out, kBf16, dz_stride, 1);
  const memory::desc any = AnyLayout(out, in, kF32);
  // oneDNN asks for the forward product that this is the gradient of.
  const dnnl::inner_product_forward::desc forward(dnnl::prop_kind::forward_training, backward.x,
                                                  AnyLayout(out, in, kBf16), backward.dz);
  const dnnl::inner_product_forward::primitive_desc hint(forward, engine);
  const dnnl::inner_product_backward_weights::desc desc(backward.x, any, backward.dz);
  const dnnl::inner_product_backward_weights::primitive_desc made(desc, UserScratch(), engine,
                                                                  hint);
  backward.dw = made.diff_weights_desc();
  backward.scratch = made.scratchpad_desc();
  backward.product = dnnl::inner_product_backward_weights(made);
  return backwards.emplace(key, std::move(backward)).first->second;
}

void CpuBf16Matrix::Rep::Multiply(const Tensor& a, const void* b, int64_t in_stride,
                                  int64_t out_stride, const Tensor& c) {
  // The setting belongs to the calling thread; the slices make it in theirs.
  omp_set_num_threads(1);
  const int64_t in = a.cols;
  const int64_t out = c.cols;
  const Forward& forward = ForwardOf(in, out, a.stride, c.stride);
  // oneDNN's weights are (out, in), in blocks of its own.
  memory plain = Memory(Desc(out, in, kBf16, out_stride, in_stride), b);
  memory weights = Memory(forward.weights, blocked.Get<uint8_t>(forward.weights.get_size()));
  dnnl::reorder(plain, weights).execute(threads[0].stream, plain, weights);
  threads[0].stream.wait();

  const int64_t last = a.rows % kRowBlock;
  const int64_t slices = (a.rows + kRowBlock - 1) / kRowBlock;
  // The last slice is padded with rows of zeros, strides and all, to be the same product.
  uint16_t* const padded_a = tail_a.Get<uint16_t>(kRowBlock * a.stride);
  float* const padded_c = tail_c.Get<float>(kRowBlock * c.stride);
  if (last > 0) {
    std::memset(padded_a, 0, kRowBlock * a.stride * sizeof(uint16_t));
    for (int64_t i = 0; i < last; ++i) {
      std::memcpy(padded_a + i * a.stride, BytesOf(a, a.rows - last + i), in * sizeof(uint16_t));
    }
  }
  pool->Run(slices, [&](int64_t slice, int thread) {
    omp_set_num_threads(1);
    const int64_t begin = slice * kRowBlock;
    const bool padded = begin + kRowBlock > a.rows;
    Thread& own = threads[thread];
    forward.product.execute(
        own.stream, {{DNNL_ARG_SRC,
                      Memory(forward.x, padded ? static_cast<void*>(padded_a) : BytesOf(a, begin))},
                     {DNNL_ARG_WEIGHTS, weights},
                     {DNNL_ARG_DST, Memory(forward.y, padded ? padded_c : FloatsOf(c, begin))},
                     {DNNL_ARG_SCRATCHPAD, Scratch(forward.scratch, &own)}});
    own.stream.wait();
    if (!padded) return;
    for (int64_t i = begin; i < a.rows; ++i) {
      std::memcpy(FloatsOf(c, i), padded_c + (i - begin) * c.stride, out * sizeof(float));
    }
  });
}

bool CpuBf16Matrix::IsSupported() {
  // The numbers of instruction sets are masks: a larger set holds the bits of the smaller.
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto least = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & least) == least;
}

bool CpuBf16Matrix::IsFast() {
  return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
}

CpuBf16Matrix::CpuBf16Matrix(ForkJoinPool* pool) : rep_(std::make_unique<Rep>(pool)) {
  CHECK(IsSupported());
}
CpuBf16Matrix::~CpuBf16Matrix() = default;

void CpuBf16Matrix::Product(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  rep_->Multiply(x, w.data, w.stride, 1, y);
}

void CpuBf16Matrix::InputGradient(const Tensor& dz, const Tensor& w, const Tensor& dx) {
  CHECK(dz.rows == dx.rows && dx.cols == w.rows && dz.cols == w.cols);
  rep_->Multiply(dz, w.data, 1, w.stride, dx);
}

void CpuBf16Matrix::WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw) {
  CHECK(x.rows == dz.rows && dw.rows == x.cols && dw.cols == dz.cols && !dw.has_gaps());
  if (x.rows == 0) {
    std::memset(FloatsOf(dw), 0, dw.size() * sizeof(float));
    return;
  }
  omp_set_num_threads(1);
  const int64_t slices = (dw.rows + kWeightRows - 1) / kWeightRows;
  const int64_t rows = ((dw.rows + slices - 1) / slices + 31) / 32 * 32;
  if (rep_->backwards.size() >= kMostKept) rep_->backwards.clear();
  // Made before the threads start: the map is not theirs to change.
  for (const int64_t count : {std::min(rows, dw.rows), (dw.rows - 1) % rows + 1}) {
    rep_->BackwardOf(x.rows, count, dz.cols, x.stride, dz.stride);
  }
  rep_->pool->Run((dw.rows + rows - 1) / rows, [&](int64_t slice, int thread) {
    omp_set_num_threads(1);
    const int64_t begin = slice * rows;
    const int64_t count = std::min(rows, dw.rows - begin);
    const Backward& backward = rep_->BackwardOf(x.rows, count, dz.cols, x.stride, dz.stride);
    Rep::Thread& own = rep_->threads[thread];
    memory result = rep_->Memory(backward.dw, own.result.Get<uint8_t>(backward.dw.get_size()));
    backward.product.execute(
        own.stream, {{DNNL_ARG_SRC, rep_->Memory(backward.x, x.Columns(begin, count).data)},
                     {DNNL_ARG_DIFF_DST, rep_->Memory(backward.dz, dz.data)},
                     {DNNL_ARG_DIFF_WEIGHTS, result},
                     {DNNL_ARG_SCRATCHPAD, rep_->Scratch(backward.scratch, &own)}});
    memory plain = rep_->Memory(Desc(dz.cols, count, kF32, 1, dw.stride), FloatsOf(dw, begin));
    dnnl::reorder(result, plain).execute(own.stream, result, plain);
    own.stream.wait();
  });
}

}  // namespace satrap
