// Sets one field of a message by its path, as `--set` does, and selects elements in paths.
//
//     seed=7
//     embedding_ps.replicas=4
//     tables[name=user].segments[0].dim=8        an element, by a field's value or by position
//     model.layers[name=deep].mlp.units=64,32    a repeated field takes elements between commas
//     dense_optimizer.sgd=                       an empty value makes a message field present,
//                                                choosing it in a oneof
//
// Enums are given by name. Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_FIELD_PATH_H_
#define SATRAP_COMMON_CONFIG_FIELD_PATH_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/model.pb.h"

namespace satrap {

// Applies "path=value". Messages on the way are created if they are not set; elements of repeated
// fields must exist. INVALID_ARGUMENT naming the assignment, the step of the path that failed and
// what was expected there; if a field is unknown, the message also lists the known fields and
// suggests the one that was probably meant. After an error `*message` may have new empty messages
// on the way, and a list that was to be set holds only the elements before the invalid one.
absl::Status SetField(absl::string_view assignment, google::protobuf::Message* message);

// How paths in messages select layer `index`: "[name=deep]", or "[2]" if the layer has no name or
// another layer has the same one. The layers of a zoo's model are in no list that the user has
// written, so a position would not tell which layer is meant.
std::string LayerSelector(const ModelConfig& model, int index);

// How paths in messages select element `index` of the list `field`, whose elements are messages: a
// layer of a model as LayerSelector says, other elements by position.
std::string ElementSelector(const google::protobuf::Message& message,
                            const google::protobuf::FieldDescriptor* field, int index);

// Sets each unset singular scalar field to its default, in `message` and in the messages below it
// that are set. Printing then shows the defaults.
void FillDefaults(google::protobuf::Message* message);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_FIELD_PATH_H_
