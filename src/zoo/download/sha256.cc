#include "zoo/download/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <memory>

#include "base/error.h"
#include "zoo/download/shared_library.h"

namespace armilla {
namespace {

struct Crypto {
  SharedLibrary library = SharedLibrary("libcrypto.so.3", "libssl3");
  decltype(&EVP_MD_CTX_new) context_new = library.function<decltype(EVP_MD_CTX_new)>("EVP_MD_CTX_new");
  decltype(&EVP_MD_CTX_free) context_free = library.function<decltype(EVP_MD_CTX_free)>("EVP_MD_CTX_free");
  decltype(&EVP_sha256) sha256 = library.function<decltype(EVP_sha256)>("EVP_sha256");
  decltype(&EVP_DigestInit_ex) init = library.function<decltype(EVP_DigestInit_ex)>("EVP_DigestInit_ex");
  decltype(&EVP_DigestUpdate) update = library.function<decltype(EVP_DigestUpdate)>("EVP_DigestUpdate");
  decltype(&EVP_DigestFinal_ex) final = library.function<decltype(EVP_DigestFinal_ex)>("EVP_DigestFinal_ex");
};

}  // namespace

std::string sha256(std::span<const char> bytes) {
  static const Crypto crypto;
  const std::unique_ptr<EVP_MD_CTX, decltype(crypto.context_free)> context(crypto.context_new(),
                                                                           crypto.context_free);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (context == nullptr || crypto.init(context.get(), crypto.sha256(), nullptr) != 1 ||
      crypto.update(context.get(), bytes.data(), bytes.size()) != 1 ||
      crypto.final(context.get(), digest.data(), &size) != 1)
    throw Error({}, "libcrypto cannot compute SHA-256", "check the installation of libssl3");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace armilla
