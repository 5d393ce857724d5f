// The operations that exchange values with the rows of embedding tables. A part has four times as
// many ids as rows, as if it came from a table of hashed ids, and the four ids of a row are far
// apart. In the tables of click logs, very many samples also name the same few rows. The benchmark
// with a common row shows what such rows cost.

#include <algorithm>
#include <memory>

#include "nn_worker/backend/benchmark/operation.h"
#include "nn_worker/backend/row_inverse.h"

namespace satrap {
namespace {

constexpr int64_t kFields = 26;
constexpr int64_t kIdsOfRow = 4;
constexpr int64_t kBag = 10;  // ids of a sample where there are several
constexpr int64_t kSequence = 50;

// Features of one table, no two of which use the same row.
struct TableShape {
  int64_t fields = kFields;
  std::vector<int64_t> widths;  // of the segments; their sum is a row's values
  RowPooling pooling = RowPooling::kSum;
  int64_t ids_of_sample = 1;
  bool common_row = false;  // every second id of a feature is one row
  DType rows = DType::kF32;
};

struct TableTensors {
  std::vector<FeatureExchange> features;
  std::vector<std::vector<uint32_t>> ids_of_features;
  RowInverse inverse;
  int64_t num_rows = 0;
  int64_t row_values = 0;
  std::vector<Tensor> ids, offsets, values;
};

int64_t RowsOf(int64_t ids) { return std::max<int64_t>(1, ids / kIdsOfRow); }

// Visits all rows in steps of a prime number that is larger than the number of rows.
std::vector<uint32_t> IdsOf(int64_t count, int64_t first_row, bool common_row) {
  constexpr uint64_t kStep = 2654435761;
  const auto rows = static_cast<uint64_t>(RowsOf(count));
  std::vector<uint32_t> ids(count);
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t row = common_row && i % 2 == 1 ? 0 : i * kStep % rows;
    ids[i] = static_cast<uint32_t>(first_row + static_cast<int64_t>(row));
  }
  return ids;
}

// The values of all fields side by side, `cols` values for each field. As in a network, single
// values are F32.
std::vector<Tensor> FieldsOf(Workbench* on, int64_t fields, int64_t cols) {
  if (cols > 1) return on->Fields(fields, cols);
  const Tensor block = on->F32Values(fields);
  std::vector<Tensor> values;
  for (int64_t f = 0; f < fields; ++f) values.push_back(block.Columns(f, 1));
  return values;
}

TableTensors MakeTable(Workbench* on, const TableShape& shape) {
  TableTensors table;
  const int64_t n = on->samples(), count = n * shape.ids_of_sample;
  table.num_rows = shape.fields * RowsOf(count);
  for (const int64_t width : shape.widths) table.row_values += width;
  const Tensor rows = on->Tight(shape.rows, table.num_rows, table.row_values);
  const bool sequence = shape.pooling == RowPooling::kNone;
  std::vector<std::vector<Tensor>> blocks;  // by segment, and then by feature
  for (const int64_t width : shape.widths) {
    blocks.push_back(FieldsOf(on, shape.fields, width * (sequence ? shape.ids_of_sample : 1)));
  }
  std::vector<std::vector<uint32_t>>& ids = table.ids_of_features;
  for (int64_t f = 0; f < shape.fields; ++f) {
    ids.push_back(IdsOf(count, f * RowsOf(count), shape.common_row));
    FeatureExchange& feature = table.features.emplace_back();
    feature.samples = n;
    feature.rows = rows;
    feature.pooling = shape.pooling;
    feature.ids = on->Indices(ids.back(), 1, count);
    table.ids.push_back(feature.ids);
    if (shape.ids_of_sample > 1) {
      std::vector<uint32_t> offsets(n + 1);
      for (int64_t i = 0; i <= n; ++i) offsets[i] = static_cast<uint32_t>(i * shape.ids_of_sample);
      feature.offsets = on->Indices(offsets, 1, n + 1);
      table.offsets.push_back(feature.offsets);
    }
    if (sequence) feature.max_length = shape.ids_of_sample;
    int64_t column = 0;
    for (size_t s = 0; s < shape.widths.size(); ++s) {
      feature.segments.push_back({column, shape.widths[s], blocks[s][f]});
      table.values.push_back(blocks[s][f]);
      column += shape.widths[s];
    }
  }
  HostRowInverse inverse;
  InvertIds(std::vector<absl::Span<const uint32_t>>(ids.begin(), ids.end()), table.num_rows,
            &inverse);
  table.inverse.starts = on->Indices(inverse.starts, 1, table.num_rows + 1);
  table.inverse.positions = on->Indices(inverse.positions, 1, shape.fields * count);
  return table;
}

std::vector<Tensor> Join(const std::vector<std::vector<Tensor>>& lists) {
  std::vector<Tensor> all;
  for (const std::vector<Tensor>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The bytes of the sectors that hold `bytes` bytes from `offset` on. Memory begins with a sector.
int64_t SectorBytes(uintptr_t offset, int64_t bytes) {
  constexpr int64_t kSector = 32;
  const auto before = static_cast<int64_t>(offset % kSector);
  return (before + bytes + kSector - 1) / kSector * kSector;
}

int64_t BytesOf(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.size_bytes();
  return bytes;
}

// The sectors of the row of each id.
int64_t SectorsOfRows(const TableTensors& table) {
  const Tensor& rows = table.features[0].rows;
  int64_t bytes = 0;
  for (const std::vector<uint32_t>& ids : table.ids_of_features) {
    for (const uint32_t id : ids) {
      bytes += SectorBytes(id * rows.stride * DTypeBytes(rows.dtype),
                           rows.cols * DTypeBytes(rows.dtype));
    }
  }
  return bytes;
}

// The sectors of the gradients of each id's sample.
int64_t SectorsOfGradients(const TableTensors& table, const TableShape& shape) {
  int64_t bytes = 0;
  for (const FeatureExchange& feature : table.features) {
    for (const RowSegment& segment : feature.segments) {
      const Tensor& values = segment.values;
      const int64_t width = segment.width * DTypeBytes(values.dtype);
      const auto first = reinterpret_cast<uintptr_t>(values.data);
      for (int64_t id = 0; id < feature.ids.size(); ++id) {
        const int64_t sample = id / shape.ids_of_sample;
        const int64_t position = feature.max_length > 0 ? id % shape.ids_of_sample : 0;
        bytes += SectorBytes(
            first + sample * values.stride * DTypeBytes(values.dtype) + position * width, width);
      }
    }
  }
  return bytes;
}

BenchmarkWork GatherOf(Workbench* on, const TableShape& shape) {
  const auto table = std::make_shared<const TableTensors>(MakeTable(on, shape));
  BenchmarkWork work = {[=] { on->backend()->GatherRows(table->features); },
                        Join({{table->features[0].rows}, table->ids, table->offsets}),
                        table->values};
  work.sector_bytes = SectorsOfRows(*table) + BytesOf(table->ids) + BytesOf(table->offsets) +
                      BytesOf(table->values);
  return work;
}

BenchmarkWork ScatterOf(Workbench* on, const TableShape& shape) {
  const auto table = std::make_shared<const TableTensors>(MakeTable(on, shape));
  const Tensor gradients = on->Floats(table->num_rows, table->row_values);
  BenchmarkWork work = {
      [=] { on->backend()->ScatterGradients(table->features, table->inverse, gradients); },
      Join({{table->inverse.starts, table->inverse.positions}, table->offsets, table->values}),
      {gradients}};
  work.sector_bytes = SectorsOfGradients(*table, shape) + BytesOf(table->offsets) +
                      BytesOf({table->inverse.starts, table->inverse.positions, gradients});
  return work;
}

constexpr char kGathers[] =
    "reads each row once, though it has four ids, the ids and their offsets, "
    "writes the samples' values";
constexpr char kScatters[] =
    "reads the samples' gradients, the offsets and the inverse of the ids, writes a gradient a row";

constexpr BenchmarkOperation kExchanges[] = {
    {"GatherRows", "26 of 16, and 1 for the linear part", OperationTypes::kF32AndBf16, kGathers,
     [](Workbench* on) {
       return GatherOf(on, {kFields, {16, 1}});
     }},
    {"GatherRows", "26 of 16, and 1 for the linear part, BF16 rows", OperationTypes::kF32AndBf16,
     kGathers,
     [](Workbench* on) {
       return GatherOf(on, {kFields, {16, 1}, RowPooling::kSum, 1, false, DType::kBF16});
     }},
    {"GatherRows", "26 of 10, and 1 for the linear part, BF16 rows", OperationTypes::kF32AndBf16,
     kGathers,
     [](Workbench* on) {
       return GatherOf(on, {kFields, {10, 1}, RowPooling::kSum, 1, false, DType::kBF16});
     }},
    {"GatherRows", "26 of 16", OperationTypes::kF32AndBf16, kGathers,
     [](Workbench* on) {
       return GatherOf(on, {kFields, {16}});
     }},
    {"GatherRows", "26 of 128", OperationTypes::kF32AndBf16, kGathers,
     [](Workbench* on) {
       return GatherOf(on, {kFields, {128}});
     }},
    {"GatherRows", "4 means of 10 rows of 16", OperationTypes::kF32AndBf16, kGathers,
     [](Workbench* on) {
       return GatherOf(on, {4, {16}, RowPooling::kMean, kBag});
     }},
    {"GatherRows", "a sequence of 50 rows of 16", OperationTypes::kF32AndBf16, kGathers,
     [](Workbench* on) {
       return GatherOf(on, {1, {16}, RowPooling::kNone, kSequence});
     }},
    {"ScatterGradients", "26 of 16, and 1 for the linear part", OperationTypes::kF32AndBf16,
     kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {kFields, {16, 1}});
     },
     /*launches=*/2},
    {"ScatterGradients", "26 of 10, and 1 for the linear part", OperationTypes::kF32AndBf16,
     kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {kFields, {10, 1}});
     },
     /*launches=*/2},
    {"ScatterGradients", "26 of 16", OperationTypes::kF32AndBf16, kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {kFields, {16}});
     },
     /*launches=*/2},
    {"ScatterGradients", "26 of 16, a row with half of the ids", OperationTypes::kF32AndBf16,
     kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {kFields, {16}, RowPooling::kSum, 1, true});
     },
     /*launches=*/2},
    {"ScatterGradients", "26 of 128", OperationTypes::kF32AndBf16, kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {kFields, {128}});
     },
     /*launches=*/2},
    {"ScatterGradients", "4 means of 10 rows of 16", OperationTypes::kF32AndBf16, kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {4, {16}, RowPooling::kMean, kBag});
     },
     /*launches=*/3},
    {"ScatterGradients", "a sequence of 50 rows of 16", OperationTypes::kF32AndBf16, kScatters,
     [](Workbench* on) {
       return ScatterOf(on, {1, {16}, RowPooling::kNone, kSequence});
     },
     /*launches=*/3},
};

}  // namespace

absl::Span<const BenchmarkOperation> RowExchangeOperations() { return kExchanges; }

}  // namespace satrap
