#include "nn_worker/backend/cpu/cpu_bf16_matrix.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

using dnnl::memory;

// The number of rows in a slice of y or dx: large enough that the blocked weights are read seldom,
// and small enough that two threads share a part of some thousand samples evenly.
constexpr int64_t kRowBlock = 256;
// The maximum number of rows in a slice of dw.
constexpr int64_t kWeightRows = 128;
// How many products are kept, one for each shape, before all are dropped and made again. There may
// be many shapes, because parts differ in their numbers of rows.
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

// The caller provides the scratch memory, because several threads may run the same product at the
// same time.
dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// A product c = a b, and what oneDNN needs to compute it.
struct Made {
  bool taken = false;  // else nothing below is set
  OneDnnWay way = OneDnnWay::kInnerProduct;
  dnnl::primitive product;
  memory::desc a, b, c, scratch;
  // For an inner product: the reorder between plain rows and the layout that the product asks for.
  dnnl::primitive reorder;
  memory::desc plain;
};

// The right factor of a product by rows: value (i, o) is at data + i * in_stride + o * out_stride.
struct RightFactor {
  const void* data;
  int64_t in_stride, out_stride;
};

}  // namespace

struct CpuBf16Matrix::Rep {
  Rep(ForkJoinPool* pool, OneDnnHooks hooks)
      : pool(pool),
        hooks(std::move(hooks)),
        engine(dnnl::engine::kind::cpu, 0),
        threads(pool->num_threads()) {
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

  // The product for kRowBlock rows of `a`. `what` is the name of the product in messages.
  const Made& RowsOf(const char* what, const Tensor& a, const RightFactor& b, const Tensor& c);
  // The gradient of the weights for `count` columns of x.
  const Made& WeightsOf(const Tensor& x, int64_t count, const Tensor& dz, const Tensor& dw);
  // Makes the product in the first of the two ways that is not refused. Each callback makes it in
  // one of the ways and returns the name of the implementation.
  template <typename InnerProduct, typename Matmul>
  Made FirstTaken(const std::string& what, const std::string& shape, InnerProduct inner_product,
                  Matmul matmul);
  // Tries to make the product by `make`. Returns why this way is refused; empty if it is not
  // refused.
  template <typename Make>
  std::string Objection(OneDnnWay way, Make make, Made* made, std::string* name);
  std::string MakeInnerProduct(const Tensor& a, const RightFactor& b, const Tensor& c, Made* made);
  std::string MakeMatmul(Made* made);
  std::string MakeInnerProductGradient(int64_t n, int64_t count, int64_t out, int64_t x_stride,
                                       int64_t dz_stride, int64_t dw_stride, Made* made);
  std::string MakeReorder(const memory::desc& from, const memory::desc& to, Made* made);
  void Multiply(const char* what, const Tensor& a, const RightFactor& b, const Tensor& c);

  ForkJoinPool* const pool;
  const OneDnnHooks hooks;
  const dnnl::engine engine;
  std::vector<Thread> threads;
  std::map<std::array<int64_t, 6>, Made> rows;
  std::map<std::array<int64_t, 6>, Made> weights;
  std::set<std::string> told;  // the choices so far, for each kind of product
  AlignedScratch blocked, tail_a, tail_c;
};

template <typename Make>
std::string CpuBf16Matrix::Rep::Objection(OneDnnWay way, Make make, Made* made, std::string* name) {
  const char* const primitive =
      way == OneDnnWay::kInnerProduct ? "oneDNN inner product" : "oneDNN matmul";
  *made = Made();
  try {
    *name = make(made);
  } catch (const dnnl::error& error) {
    return absl::StrCat(primitive, ": ", error.what());
  }
  if (hooks.believed_name != nullptr) *name = hooks.believed_name(way, *name);
  *name = absl::StrCat(primitive, " ", *name);
  return IsReferenceImplementation(name->substr(name->rfind(' ') + 1))
             ? absl::StrCat(primitive, " is ", name->substr(name->rfind(' ') + 1))
             : "";
}

template <typename InnerProduct, typename Matmul>
Made CpuBf16Matrix::Rep::FirstTaken(const std::string& what, const std::string& shape,
                                    InnerProduct inner_product, Matmul matmul) {
  Made made;
  ProductChoice choice;
  choice.product = absl::StrCat(what, " of ", shape);
  std::string objection = Objection(OneDnnWay::kInnerProduct, inner_product, &made, &choice.by);
  if (!objection.empty()) {
    choice.because = objection;
    objection = Objection(OneDnnWay::kMatmul, matmul, &made, &choice.by);
    if (!objection.empty()) absl::StrAppend(&choice.because, "; ", objection);
    made.way = OneDnnWay::kMatmul;
  }
  made.taken = objection.empty();
  if (!made.taken) choice.by.clear();
  const bool is_new = told.insert(absl::StrCat(what, ":", choice.by, ":", choice.because)).second;
  if (is_new && hooks.on_choice != nullptr) hooks.on_choice(choice);
  return made;
}

// Makes the reorder of `made->plain` to or from the layout of the product, and returns the name of
// its implementation. If the reorder is slow, callers return this name for the whole product.
std::string CpuBf16Matrix::Rep::MakeReorder(const memory::desc& from, const memory::desc& to,
                                            Made* made) {
  const dnnl::reorder::primitive_desc desc(engine, from, engine, to);
  made->reorder = dnnl::reorder(desc);
  return desc.impl_info_str();
}

std::string CpuBf16Matrix::Rep::MakeInnerProduct(const Tensor& a, const RightFactor& b,
                                                 const Tensor& c, Made* made) {
  made->a = Desc(kRowBlock, a.cols, kBf16, a.stride, 1);
  made->c = Desc(kRowBlock, c.cols, kF32, c.stride, 1);
  const dnnl::inner_product_forward::desc desc(dnnl::prop_kind::forward_inference, made->a,
                                               AnyLayout(c.cols, a.cols, kBf16), made->c);
  const dnnl::inner_product_forward::primitive_desc chosen(desc, UserScratch(), engine);
  made->b = chosen.weights_desc();
  made->scratch = chosen.scratchpad_desc();
  made->product = dnnl::inner_product_forward(chosen);
  // oneDNN stores these weights as (out, in), in its own blocked layout.
  made->plain = Desc(c.cols, a.cols, kBf16, b.out_stride, b.in_stride);
  const std::string reorder = MakeReorder(made->plain, made->b, made);
  return IsReferenceImplementation(reorder) ? reorder : chosen.impl_info_str();
}

std::string CpuBf16Matrix::Rep::MakeMatmul(Made* made) {
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(made->a, made->b, made->c),
                                            UserScratch(), engine);
  made->scratch = chosen.scratchpad_desc();
  made->product = dnnl::matmul(chosen);
  return chosen.impl_info_str();
}

std::string CpuBf16Matrix::Rep::MakeInnerProductGradient(int64_t n, int64_t count, int64_t out,
                                                         int64_t x_stride, int64_t dz_stride,
                                                         int64_t dw_stride, Made* made) {
  made->a = Desc(n, count, kBf16, x_stride, 1);
  made->b = Desc(n, out, kBf16, dz_stride, 1);
  const memory::desc any = AnyLayout(out, count, kF32);
  // oneDNN describes a gradient by means of its forward product.
  const dnnl::inner_product_forward::desc forward(dnnl::prop_kind::forward_training, made->a,
                                                  AnyLayout(out, count, kBf16), made->b);
  const dnnl::inner_product_forward::primitive_desc hint(forward, engine);
  const dnnl::inner_product_backward_weights::desc desc(made->a, any, made->b);
  const dnnl::inner_product_backward_weights::primitive_desc chosen(desc, UserScratch(), engine,
                                                                    hint);
  made->c = chosen.diff_weights_desc();
  made->scratch = chosen.scratchpad_desc();
  made->product = dnnl::inner_product_backward_weights(chosen);
  made->plain = Desc(out, count, kF32, 1, dw_stride);
  const std::string reorder = MakeReorder(made->c, made->plain, made);
  return IsReferenceImplementation(reorder) ? reorder : chosen.impl_info_str();
}

const Made& CpuBf16Matrix::Rep::RowsOf(const char* what, const Tensor& a, const RightFactor& b,
                                       const Tensor& c) {
  const std::array<int64_t, 6> key = {a.cols,   c.cols,      a.stride,
                                      c.stride, b.in_stride, b.out_stride};
  if (const auto found = rows.find(key); found != rows.end()) return found->second;
  if (rows.size() >= kMostKept) rows.clear();
  const auto inner_product = [&](Made* made) { return MakeInnerProduct(a, b, c, made); };
  const auto matmul = [&](Made* made) {
    made->a = Desc(kRowBlock, a.cols, kBf16, a.stride, 1);
    made->b = Desc(a.cols, c.cols, kBf16, b.in_stride, b.out_stride);
    made->c = Desc(kRowBlock, c.cols, kF32, c.stride, 1);
    return MakeMatmul(made);
  };
  Made made = FirstTaken(what, absl::StrCat(a.cols, " x ", c.cols), inner_product, matmul);
  return rows.emplace(key, std::move(made)).first->second;
}

const Made& CpuBf16Matrix::Rep::WeightsOf(const Tensor& x, int64_t count, const Tensor& dz,
                                          const Tensor& dw) {
  const std::array<int64_t, 6> key = {x.rows, count, dz.cols, x.stride, dz.stride, dw.stride};
  if (const auto found = weights.find(key); found != weights.end()) return found->second;
  const auto inner_product = [&](Made* made) {
    return MakeInnerProductGradient(x.rows, count, dz.cols, x.stride, dz.stride, dw.stride, made);
  };
  const auto matmul = [&](Made* made) {
    made->a = Desc(count, x.rows, kBf16, 1, x.stride);
    made->b = Desc(x.rows, dz.cols, kBf16, dz.stride, 1);
    made->c = Desc(count, dz.cols, kF32, dw.stride, 1);
    return MakeMatmul(made);
  };
  Made made =
      FirstTaken("dw = x^T dz", absl::StrCat(x.cols, " x ", dz.cols), inner_product, matmul);
  return weights.emplace(key, std::move(made)).first->second;
}

void CpuBf16Matrix::Rep::Multiply(const char* what, const Tensor& a, const RightFactor& b,
                                  const Tensor& c) {
  // This setting applies to the calling thread only; the slices set it in their own threads.
  omp_set_num_threads(1);
  const int64_t in = a.cols;
  const int64_t out = c.cols;
  const Made& made = RowsOf(what, a, b, c);
  CHECK(made.taken) << what;
  memory factor = Memory(made.b, b.data);
  if (made.way == OneDnnWay::kInnerProduct) {
    memory plain = Memory(made.plain, b.data);
    factor = Memory(made.b, blocked.Get<uint8_t>(made.b.get_size()));
    made.reorder.execute(threads[0].stream, {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, factor}});
    threads[0].stream.wait();
  }

  const int64_t last = a.rows % kRowBlock;
  const int64_t slices = (a.rows + kRowBlock - 1) / kRowBlock;
  // The last slice is padded with rows of zeros and keeps its strides, so that the same product
  // computes it.
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
    made.product.execute(
        own.stream,
        {{DNNL_ARG_SRC, Memory(made.a, padded ? static_cast<void*>(padded_a) : BytesOf(a, begin))},
         {DNNL_ARG_WEIGHTS, factor},
         {DNNL_ARG_DST, Memory(made.c, padded ? padded_c : FloatsOf(c, begin))},
         {DNNL_ARG_SCRATCHPAD, Scratch(made.scratch, &own)}});
    own.stream.wait();
    if (!padded) return;
    for (int64_t i = begin; i < a.rows; ++i) {
      std::memcpy(FloatsOf(c, i), padded_c + (i - begin) * c.stride, out * sizeof(float));
    }
  });
}

bool CpuBf16Matrix::IsSupported() {
  // oneDNN numbers its instruction sets by bit masks: a larger set includes the bits of a smaller
  // one.
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto least = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & least) == least;
}

bool CpuBf16Matrix::IsFast() {
  return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
}

CpuBf16Matrix::CpuBf16Matrix(ForkJoinPool* pool, OneDnnHooks hooks)
    : rep_(std::make_unique<Rep>(pool, std::move(hooks))) {
  CHECK(IsSupported());
}
CpuBf16Matrix::~CpuBf16Matrix() = default;

namespace {

RightFactor PlainOf(const Tensor& w) { return {w.data, w.stride, 1}; }
RightFactor TransposedOf(const Tensor& w) { return {w.data, 1, w.stride}; }

constexpr char kProduct[] = "y = x w";
constexpr char kInputGradient[] = "dx = dz w^T";

// The number of rows in a slice of dw.
int64_t RowsOfSlice(int64_t rows) {
  const int64_t slices = (rows + kWeightRows - 1) / kWeightRows;
  return ((rows + slices - 1) / slices + 31) / 32 * 32;
}

}  // namespace

bool CpuBf16Matrix::TakesProduct(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  return rep_->RowsOf(kProduct, x, PlainOf(w), y).taken;
}

bool CpuBf16Matrix::TakesInputGradient(const Tensor& dz, const Tensor& w, const Tensor& dx) {
  CHECK(dz.rows == dx.rows && dx.cols == w.rows && dz.cols == w.cols);
  return rep_->RowsOf(kInputGradient, dz, TransposedOf(w), dx).taken;
}

bool CpuBf16Matrix::TakesWeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw) {
  CHECK(x.rows == dz.rows && dw.rows == x.cols && dw.cols == dz.cols && !dw.has_gaps());
  if (x.rows == 0) return true;
  if (rep_->weights.size() >= kMostKept) rep_->weights.clear();
  const int64_t rows = RowsOfSlice(dw.rows);
  // The products are made before the threads start, because threads must not change the map.
  bool taken = true;
  for (const int64_t count : {std::min(rows, dw.rows), (dw.rows - 1) % rows + 1}) {
    taken &= rep_->WeightsOf(x, count, dz, dw).taken;
  }
  return taken;
}

void CpuBf16Matrix::Product(const Tensor& x, const Tensor& w, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  rep_->Multiply(kProduct, x, PlainOf(w), y);
}

void CpuBf16Matrix::InputGradient(const Tensor& dz, const Tensor& w, const Tensor& dx) {
  CHECK(dz.rows == dx.rows && dx.cols == w.rows && dz.cols == w.cols);
  rep_->Multiply(kInputGradient, dz, TransposedOf(w), dx);
}

void CpuBf16Matrix::WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw) {
  CHECK(TakesWeightGradient(x, dz, dw));
  if (x.rows == 0) {
    std::memset(FloatsOf(dw), 0, dw.size() * sizeof(float));
    return;
  }
  omp_set_num_threads(1);
  const int64_t rows = RowsOfSlice(dw.rows);
  rep_->pool->Run((dw.rows + rows - 1) / rows, [&](int64_t slice, int thread) {
    omp_set_num_threads(1);
    const int64_t begin = slice * rows;
    const int64_t count = std::min(rows, dw.rows - begin);
    const Made& made = rep_->WeightsOf(x, count, dz, dw);
    Rep::Thread& own = rep_->threads[thread];
    const memory x_columns = rep_->Memory(made.a, x.Columns(begin, count).data);
    const memory gradients = rep_->Memory(made.b, dz.data);
    const memory scratch = rep_->Scratch(made.scratch, &own);
    if (made.way == OneDnnWay::kMatmul) {
      made.product.execute(own.stream, {{DNNL_ARG_SRC, x_columns},
                                        {DNNL_ARG_WEIGHTS, gradients},
                                        {DNNL_ARG_DST, rep_->Memory(made.c, FloatsOf(dw, begin))},
                                        {DNNL_ARG_SCRATCHPAD, scratch}});
    } else {
      memory result = rep_->Memory(made.c, own.result.Get<uint8_t>(made.c.get_size()));
      made.product.execute(own.stream, {{DNNL_ARG_SRC, x_columns},
                                        {DNNL_ARG_DIFF_DST, gradients},
                                        {DNNL_ARG_DIFF_WEIGHTS, result},
                                        {DNNL_ARG_SCRATCHPAD, scratch}});
      const memory plain = rep_->Memory(made.plain, FloatsOf(dw, begin));
      made.reorder.execute(own.stream, {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, plain}});
    }
    own.stream.wait();
  });
}

}  // namespace satrap
