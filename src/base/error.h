// The one exception of the library: what a user did wrong, where, and what to do about it.
//
// Readers, configuration and lowering throw it; it is caught once, in cli, printed as
//   armilla: error: WHERE: MESSAGE
//     hint: HINT
// and turned into exit code 2. `where` is file:line:column, a key path or a flag, and may be empty. `keys`
// are those of a study file that could be changed, the likeliest first ("plan.tensor"), and with them all
// that the message names: who knows what the user gave puts the error there (lower/plan.h), and a search
// tells by them what stands in the way.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace armilla {

class Error : public std::exception {
 public:
  Error(std::string where_, std::string message_, std::string hint_ = {},
        std::vector<std::string> keys_ = {});
  Error(const Error&);
  ~Error() override;

  const char* what() const noexcept override { return text_.c_str(); }

  const std::string where;
  const std::string message;
  const std::string hint;  // empty when there is nothing useful to add
  const std::vector<std::string> keys;

 private:
  std::string text_;
};

}  // namespace armilla
