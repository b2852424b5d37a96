// libFuzzer target: any bytes are a study or an Error. A first line "#set key=value" is applied as an
// override. The tests replay tests/fuzz/study through the same function.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "read/study.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kMark = "#set ";
  std::vector<armilla::Override> overrides;
  if (text.starts_with(kMark))
    overrides.emplace_back(text.substr(kMark.size(), text.find('\n') - kMark.size()));
  try {
    armilla::read_study(armilla::Config::parse(text, "fuzz.yaml", overrides));
  } catch (const armilla::Error&) {
    return 0;  // refused, as it should be
  }
  return 0;
}
