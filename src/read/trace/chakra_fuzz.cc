// libFuzzer target: any bytes are a Chakra trace or an Error, and what the reader returns is consistent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "read/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const armilla::ChakraTrace trace =
        armilla::read_chakra({reinterpret_cast<const char*>(data), size}, "fuzz.et");
    if (!armilla::same_contents(trace, trace)) std::abort();
  } catch (const armilla::Error&) {
    return 0;  // refused, as it should be
  }
  return 0;
}
