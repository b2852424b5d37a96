// One HTTP or HTTPS GET through libcurl, which is loaded on first use. Follows up to ten redirects, goes on
// after an earlier part of the file (RFC 9110, sections 13.1.5 If-Range and 14 Range), honours the usual
// proxy variables except for this machine itself, and gives up on a server that stays silent. No retries, no
// authentication, no compressed transfers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace armilla {

struct HttpRequest {
  std::string url;
  std::uint64_t offset = 0;  // bytes that are there already; not asked for again ...
  std::string validator;     // ... as long as the file still has this ETag or Last-Modified
  int silence_seconds = 60;  // without a byte, then it is an Error
};

struct HttpResponse {
  long status = 0;                    // of the last response, redirects apart
  std::uint64_t offset = 0;           // position in the file of the first byte that follows
  std::string validator;              // a strong ETag, else Last-Modified, else empty
  std::optional<std::uint64_t> size;  // of the whole file
};

class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;
  // Once, before the first byte, and only for a successful response.
  virtual void begin(const HttpResponse& response) = 0;
  virtual void receive(std::span<const char> bytes) = 0;
};

// Status 416 (nothing follows `offset`) is returned without calling `receiver`; every other failure throws
// Error, and so does whatever the receiver throws.
HttpResponse http_get(const HttpRequest& request, HttpReceiver& receiver);

}  // namespace armilla
