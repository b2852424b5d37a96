// The binary half of read/file_format.h: signatures, protobuf files without one, and what gzip hides.
#pragma once

#include <span>
#include <string_view>

#include "read/file_format.h"

namespace armilla {

// By the first bytes; FileKind::binary where none is known.
FileKind sniff_signature(std::string_view beginning);
// An ONNX model is one message of known fields, a Chakra trace a row of messages with their lengths.
FileKind sniff_protobuf(std::span<const char> bytes);
// gzip: a trace when its contents begin like one.
FileKind sniff_packed(std::span<const char> bytes);

}  // namespace armilla
