// SHA-256 (FIPS 180-4) of a file, computed by OpenSSL's libcrypto, which is loaded on first use.
#pragma once

#include <span>
#include <string>

namespace armilla {

// 64 lower-case hexadecimal digits. Throws Error when libcrypto is missing.
std::string sha256(std::span<const char> bytes);

}  // namespace armilla
