// libFuzzer target: any bytes are a text workload or an Error. The tests read tests/fuzz/astra_text too, cut
// at every byte.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "read/astra.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> warnings;
  try {
    const auto workload =
        armilla::read_astra_text({reinterpret_cast<const char*>(data), size}, "fuzz.txt", &warnings);
    armilla::validate_text_workload(workload);
  } catch (const armilla::Error&) {
    return 0;  // refused, as it should be
  }
  return 0;
}
