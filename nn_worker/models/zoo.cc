#include "nn_worker/models/zoo.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "nn_worker/models/zoo_data.h"

namespace satrap {

std::vector<std::string> ZooNames() {
  std::vector<std::string> names;
  for (const ZooFile& file : ZooFiles()) names.emplace_back(file.name);
  return names;
}

absl::StatusOr<ModelConfig> ZooModel(absl::string_view name) {
  for (const ZooFile& file : ZooFiles()) {
    if (name != file.name) continue;
    ModelConfig model;
    CHECK(google::protobuf::TextFormat::ParseFromString(file.text, &model)) << file.name;
    return model;
  }
  return absl::NotFoundError(absl::StrCat("model.zoo: no model \"", name, "\"; there are ",
                                          absl::StrJoin(ZooNames(), ", ")));
}

absl::Status ResolveZoo(ModelConfig* model) {
  if (model->zoo().empty() || !model->layers().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ModelConfig zoo, ZooModel(model->zoo()));
  *model->mutable_layers() = zoo.layers();
  if (zoo.has_output()) model->set_output(zoo.output());
  return absl::OkStatus();
}

}  // namespace satrap
