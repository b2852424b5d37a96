// gzip files (RFC 1952), unpacked into memory with zlib; several members in a row are one file.
//
// Bounded: what unpacks to more than 4 GiB, or to more than 500 times its size beyond 64 MiB, is refused (a
// trace shrinks to a tenth or so). Cost: O(unpacked bytes).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace armilla {

bool is_gzip(std::span<const char> bytes);

// Throws Error, with the offset in the packed file, for damaged, truncated or absurd files.
std::string unpack_gzip(std::span<const char> bytes, const std::string& name);

// The first bytes of what is packed, at most `most`; as many as come out of a damaged file.
std::string peek_gzip(std::span<const char> bytes, std::size_t most);

}  // namespace armilla
