#include "write/trace.h"

#include "write/format/json_text.h"

namespace armilla {

std::string write_communicators(const Communicators& communicators) {
  Json document = Json::object();
  for (const auto& [name, communicator] : communicators) document[name] = communicator.ranks;
  return to_inline_text(document) + '\n';
}

}  // namespace armilla
