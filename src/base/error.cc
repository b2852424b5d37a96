#include "base/error.h"

#include <utility>

namespace armilla {

namespace {

std::string compose(const std::string& where, const std::string& message, const std::string& hint) {
  std::string text = where.empty() ? message : where + ": " + message;
  if (!hint.empty()) text += "\n  hint: " + hint;
  return text;
}

}  // namespace

Error::Error(std::string where_, std::string message_, std::string hint_, std::vector<std::string> keys_)
    : where(std::move(where_)),
      message(std::move(message_)),
      hint(std::move(hint_)),
      keys(std::move(keys_)),
      text_(compose(where, message, hint)) {}

// Written here, not inline: hundreds of places throw, and every one of them would hold the code of five
// strings.
Error::Error(const Error&) = default;
Error::~Error() = default;

}  // namespace armilla
