#include "nn_worker/layer/layers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/layer/fields.h"
#include "nn_worker/layer/shape.h"

namespace satrap {
namespace {

// The maximum number of values in the pairs of one tile of samples: 4 MiB as F32. A tile has at
// least one sample, even if the pairs of that sample have more values.
constexpr int64_t kTileValues = int64_t{1} << 20;

// For a product, the pairs (i, j) of a column d of a sample are laid out as a row of H_{k-1} n
// values. This is done for one tile of samples at a time, and once more in the backward pass,
// because the pairs of all samples would take d times the memory of everything else.
//
// Maps are kept transposed, [d, H]: then the columns of all samples are the rows of one product.
class CinLayer final : public BackendLayer {
 public:
  explicit CinLayer(const CinConfig& config) : config_(config) {}

  absl::StatusOr<std::vector<SampleShape>> Infer(absl::Span<const SampleShape> inputs) override {
    ASSIGN_OR_RETURN(fields_, FieldsOf(inputs, /*least=*/1));
    heights_ = {fields_.count};
    heights_.insert(heights_.end(), config_.units().begin(), config_.units().end());
    int64_t sum = 0;
    for (int k = 1; k <= layers(); ++k) sum += heights_[k];
    return std::vector<SampleShape>{{sum}};
  }

  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs;
    for (int k = 1; k <= layers(); ++k) {
      const double stddev = std::sqrt(2.0 / static_cast<double>(PairsOf(k) + heights_[k]));
      specs.push_back({absl::StrCat("weight_", k - 1), PairsOf(k), heights_[k],
                       ParameterSpec::Initial::kNormal, stddev});
      if (config_.bias()) specs.push_back({absl::StrCat("bias_", k - 1), 1, heights_[k]});
    }
    return specs;
  }

  int64_t ForwardFlops() const override {
    int64_t products = 0;
    for (int k = 1; k <= layers(); ++k) products += PairsOf(k) * (heights_[k] + 1);
    return 2 * products * fields_.dim;
  }

  absl::Status Bind(const LayerBinding& binding) override {
    backend_ = binding.backend;
    const int64_t n = binding.max_samples;
    const int64_t dim = fields_.dim;
    int64_t widest = 1;  // each layer has at least one pair
    steps_.resize(layers() + 1);
    size_t parameter = 0;
    for (int k = 0; k <= layers(); ++k) {
      for (Tensor* maps : {&steps_[k].maps, &steps_[k].dmaps}) {
        ASSIGN_OR_RETURN(*maps, AllocateTensor(backend_, DType::kF32, n, dim * heights_[k]));
      }
      if (k == 0) continue;
      widest = std::max(widest, PairsOf(k));
      Step& step = steps_[k];
      step.weight = binding.parameters[parameter];
      step.dweight = binding.gradients[parameter++];
      ASSIGN_OR_RETURN(step.dweight_of_tile,
                       AllocateTensor(backend_, DType::kF32, PairsOf(k), heights_[k]));
      if (!config_.bias()) continue;
      step.bias = binding.parameters[parameter];
      step.dbias = binding.gradients[parameter++];
      ASSIGN_OR_RETURN(step.dbias_of_tile, AllocateTensor(backend_, DType::kF32, 1, heights_[k]));
    }
    // The size of a tile depends only on the shapes. Therefore so does the order in which the
    // gradients of the weights are summed, and so do the bits of these gradients.
    tile_ = std::max<int64_t>(1, kTileValues / (dim * widest));
    for (Tensor* pairs : {&pairs_, &dpairs_}) {
      ASSIGN_OR_RETURN(*pairs,
                       AllocateTensor(backend_, DType::kF32, std::min(n, tile_) * dim, widest));
    }
    ASSIGN_OR_RETURN(joined_, AllocateTensor(backend_, DType::kF32, n, fields_.count * dim));
    ASSIGN_OR_RETURN(lengths_, AllocateTensor(backend_, DType::kF32, n, 1));
    backend_->Fill(lengths_, static_cast<float>(dim));
    return absl::OkStatus();
  }

  absl::Status Forward(const PassContext&, Tensors xs, Tensors ys) override {
    const int64_t n = ys[0].rows;
    JoinColumns(backend_, xs, joined_.FirstRows(n));
    backend_->Transpose(joined_.FirstRows(n), fields_.dim, steps_[0].maps.FirstRows(n),
                        /*add=*/false);
    int64_t column = 0;
    for (int k = 1; k <= layers(); ++k) {
      const Step& step = steps_[k];
      for (int64_t begin = 0; begin < n; begin += tile_) {
        const int64_t count = std::min(tile_, n - begin);
        const Tensor pairs = MakePairs(k, begin, count);
        backend_->Linear(pairs, step.weight, step.bias, Activation::kLinear,
                         MapsOf(step.maps, k, begin, count));
      }
      backend_->SequencePool(SequencePooling::kSum, step.maps.FirstRows(n), lengths_.FirstRows(n),
                             ys[0].Columns(column, heights_[k]));
      column += heights_[k];
    }
    return absl::OkStatus();
  }

  absl::Status Backward(const PassContext&, Tensors xs, Tensors ys, Tensors dys,
                        GradientTargets dxs) override {
    const int64_t n = dys[0].rows;
    int64_t column = dys[0].cols;
    for (int k = layers(); k >= 1; --k) {
      column -= heights_[k];
      const bool last = k == layers();
      // If there is a layer above, it has already assigned its share to dmaps, so the share of this
      // layer's output is added to it.
      backend_->SequencePoolGrad(SequencePooling::kSum, steps_[k].maps.FirstRows(n),
                                 lengths_.FirstRows(n), ys[0].Columns(column, heights_[k]),
                                 dys[0].Columns(column, heights_[k]),
                                 {steps_[k].dmaps.FirstRows(n), /*add=*/!last});
      // The loop runs at least once, so that a part without samples gets gradients of zero.
      int64_t begin = 0;
      do {
        BackwardTile(k, begin, std::min(tile_, n - begin));
        begin += tile_;
      } while (begin < n);
    }
    backend_->Transpose(steps_[0].dmaps.FirstRows(n), fields_.count, joined_.FirstRows(n),
                        /*add=*/false);
    SplitColumns(backend_, xs, joined_.FirstRows(n), dxs);
    return absl::OkStatus();
  }

 private:
  // The tensors of X^k. X^0 has no weight.
  struct Step {
    Tensor maps, dmaps;  // (max_samples, d H_k)
    Tensor weight, dweight, dweight_of_tile;
    Tensor bias, dbias, dbias_of_tile;  // empty without bias
  };

  int layers() const { return config_.units_size(); }
  int64_t PairsOf(int k) const { return heights_[k - 1] * fields_.count; }

  // Samples [begin, begin + count) of maps of layer k, as a matrix with a row for each of their
  // columns.
  Tensor MapsOf(const Tensor& maps, int k, int64_t begin, int64_t count) const {
    return maps.Rows(begin, count).Reshaped(count * fields_.dim, heights_[k]);
  }
  Tensor OfPairs(const Tensor& pairs, int k, int64_t count) const {
    return pairs.FirstRows(count * fields_.dim).Columns(0, PairsOf(k));
  }

  // Computes X^{k-1}_i X^0_j of each column, as the outer product of two vectors.
  Tensor MakePairs(int k, int64_t begin, int64_t count) {
    const Tensor pairs = OfPairs(pairs_, k, count);
    const int64_t height = heights_[k - 1];
    const int64_t fields = fields_.count;
    backend_->BatchedProduct({MapsOf(steps_[k - 1].maps, k - 1, begin, count), height, 1, 1},
                             {MapsOf(steps_[0].maps, 0, begin, count), 1, fields, fields}, 1, 1,
                             {pairs, height, fields, fields}, /*add=*/false);
    return pairs;
  }

  // Computes the gradients of layer k from its dmaps: those of its weights, the dmaps of layer k -
  // 1, and the share of layer k in the dmaps of X^0. If layer k - 1 is not X^0, its dmaps are
  // assigned. The dmaps of X^0 are assigned by the last layer, which runs first; all other
  // contributions are added to them.
  void BackwardTile(int k, int64_t begin, int64_t count) {
    const Step& step = steps_[k];
    const bool first_tile = begin == 0;
    LinearGradArgs args;
    args.x = MakePairs(k, begin, count);
    args.w = step.weight;
    args.y = MapsOf(step.maps, k, begin, count);
    args.dy = MapsOf(step.dmaps, k, begin, count);
    args.dx = {OfPairs(dpairs_, k, count), /*add=*/false};
    args.dw = first_tile ? step.dweight : step.dweight_of_tile;
    args.db = first_tile ? step.dbias : step.dbias_of_tile;
    backend_->LinearGrad(args);
    if (!first_tile) {
      backend_->Copy(step.dweight_of_tile, step.dweight, /*add=*/true);
      if (config_.bias()) backend_->Copy(step.dbias_of_tile, step.dbias, /*add=*/true);
    }
    const int64_t height = heights_[k - 1];
    const int64_t fields = fields_.count;
    const SampleMatrices dpairs = {args.dx.tensor, height, fields, fields};
    SampleMatrices before = {MapsOf(steps_[k - 1].maps, k - 1, begin, count), height, 1, 1};
    before.transposed = true;
    backend_->BatchedProduct(before, dpairs, 1, 1,
                             {MapsOf(steps_[0].dmaps, 0, begin, count), 1, fields, fields},
                             /*add=*/k != layers());
    SampleMatrices first = {MapsOf(steps_[0].maps, 0, begin, count), 1, fields, fields};
    first.transposed = true;
    backend_->BatchedProduct(dpairs, first, 1, 1,
                             {MapsOf(steps_[k - 1].dmaps, k - 1, begin, count), height, 1, 1},
                             /*add=*/k == 1);
  }

  const CinConfig config_;
  FieldShape fields_;
  std::vector<int64_t> heights_;  // H_0 = the fields, H_1, ...
  int64_t tile_ = 1;              // samples
  std::vector<Step> steps_;
  Tensor pairs_, dpairs_;  // of a tile
  Tensor joined_;          // the fields, and later their gradients: [n, d] each sample
  Tensor lengths_;         // d each: pools the columns of a map
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCinLayer(const CinConfig& config) {
  if (config.units().empty()) return absl::InvalidArgumentError("needs units");
  return std::make_unique<CinLayer>(config);
}

}  // namespace satrap
