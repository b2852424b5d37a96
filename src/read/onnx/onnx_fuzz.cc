// libFuzzer target: any bytes are either a model or an Error, never a crash, a hang or a large allocation.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "read/read.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    armilla::read_onnx({reinterpret_cast<const char*>(data), size}, "fuzz.onnx", {});
  } catch (const armilla::Error&) {
  }
  return 0;
}
