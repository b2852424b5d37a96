#include "zoo/download/http_get.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <strings.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "zoo/download/shared_library.h"

namespace armilla {
namespace {

constexpr long kRedirects = 10;
constexpr long kConnectSeconds = 30;
constexpr const char* kGoesOn = "run the same command again: the download goes on where it stopped";

// Loaded at run time: only downloads need libcurl, and the program starts without it.
struct Curl {
  SharedLibrary library = SharedLibrary("libcurl.so.4", "libcurl4");
  decltype(&curl_global_init) global_init = library.function<decltype(curl_global_init)>("curl_global_init");
  decltype(&curl_easy_init) init = library.function<decltype(curl_easy_init)>("curl_easy_init");
  decltype(&curl_easy_setopt) setopt = library.function<decltype(curl_easy_setopt)>("curl_easy_setopt");
  decltype(&curl_easy_perform) perform = library.function<decltype(curl_easy_perform)>("curl_easy_perform");
  decltype(&curl_easy_getinfo) getinfo = library.function<decltype(curl_easy_getinfo)>("curl_easy_getinfo");
  decltype(&curl_easy_strerror) strerror =
      library.function<decltype(curl_easy_strerror)>("curl_easy_strerror");
  decltype(&curl_easy_cleanup) cleanup = library.function<decltype(curl_easy_cleanup)>("curl_easy_cleanup");
  decltype(&curl_slist_append) append = library.function<decltype(curl_slist_append)>("curl_slist_append");
  decltype(&curl_slist_free_all) free_all =
      library.function<decltype(curl_slist_free_all)>("curl_slist_free_all");

  Curl() {
    if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Error({}, "libcurl does not start");
  }
};

// One transfer; libcurl calls back into it. Exceptions must not pass through libcurl, so they wait in
// `thrown_`.
class Transfer {
 public:
  Transfer(const Curl& curl, const HttpRequest& request, HttpReceiver& receiver)
      : curl_(curl),
        request_(request),
        receiver_(receiver),
        handle_(curl.init(), curl.cleanup),
        headers_(nullptr, curl.free_all) {
    if (handle_ == nullptr) throw Error(request.url, "libcurl does not start");
  }

  HttpResponse run() {
    configure();
    const CURLcode code = curl_.perform(handle_.get());
    if (thrown_) std::rethrow_exception(thrown_);
    curl_.getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &response_.status);
    if (code == CURLE_HTTP_RETURNED_ERROR && response_.status == 416 && request_.offset > 0) return response_;
    if (code != CURLE_OK) fail(code);
    if (!begun_) begin();
    return response_;
  }

 private:
  void set(CURLoption option, long value) { curl_.setopt(handle_.get(), option, value); }
  void set(CURLoption option, const char* value) { curl_.setopt(handle_.get(), option, value); }

  void configure() {
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kRedirects);
    set(CURLOPT_FAILONERROR, 1L);
    // Timeouts by signals would disturb other threads.
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    // A server that is silent for so long is given up; a slow one is not.
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.silence_seconds));
    set(CURLOPT_USERAGENT, "armilla");
    const char* exempt = std::getenv("no_proxy");
    if (exempt == nullptr) exempt = std::getenv("NO_PROXY");
    set(CURLOPT_NOPROXY, fmt::format("{},localhost,127.0.0.1,::1", exempt == nullptr ? "" : exempt).c_str());
    if (request_.offset > 0) {
      set(CURLOPT_RANGE, fmt::format("{}-", request_.offset).c_str());
      // If-Range asks for the rest if the file is still the same, else for all of it.
      if (!request_.validator.empty())
        headers_.reset(curl_.append(nullptr, ("If-Range: " + request_.validator).c_str()));
      curl_.setopt(handle_.get(), CURLOPT_HTTPHEADER, headers_.get());
    }
    curl_.setopt(handle_.get(), CURLOPT_HEADERFUNCTION, &Transfer::on_header);
    curl_.setopt(handle_.get(), CURLOPT_HEADERDATA, this);
    curl_.setopt(handle_.get(), CURLOPT_WRITEFUNCTION, &Transfer::on_body);
    curl_.setopt(handle_.get(), CURLOPT_WRITEDATA, this);
  }

  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->guarded(
        [&](Transfer& transfer) {
          transfer.read_header({data, size});
        },
        size);
  }

  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->guarded(
        [&](Transfer& transfer) {
          if (!transfer.begun_) transfer.begin();
          transfer.receiver_.receive({data, size});
        },
        size);
  }

  // What libcurl expects from a callback: `size`, or anything else to end the transfer.
  template <class Body>
  std::size_t guarded(Body body, std::size_t size) {
    try {
      body(*this);
      return size;
    } catch (...) {
      thrown_ = std::current_exception();
      return size + 1;
    }
  }

  void read_header(std::string_view line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
    if (line.starts_with("HTTP/")) {
      // A redirect's headers say nothing about the file.
      response_ = {};
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name(line.substr(0, colon));
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);

    const auto is = [&](const char* known) { return ::strcasecmp(name.c_str(), known) == 0; };
    if (is("etag") && value.starts_with('"'))
      response_.validator = value;
    else if (is("last-modified") && response_.validator.empty())
      response_.validator = value;
    else if (is("content-length") && !response_.size)
      response_.size = number_from<std::uint64_t>(value);
    else if (is("content-range") && value.starts_with("bytes "))
      read_range(value.substr(6));
  }

  // "100-199/200", "100-199/*", or "*/200" with status 416.
  void read_range(std::string_view range) {
    const std::size_t slash = range.find('/');
    if (slash == std::string_view::npos) return;
    response_.size = number_from<std::uint64_t>(range.substr(slash + 1));
    response_.offset = number_from<std::uint64_t>(range.substr(0, range.find('-'))).value_or(0);
  }

  void begin() {
    begun_ = true;
    curl_.getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &response_.status);
    const bool resumed = response_.status == 206 && request_.offset > 0;
    if (response_.status != 200 && !resumed)
      throw Error(request_.url, fmt::format("the server answered with HTTP status {}", response_.status),
                  "check the address");
    if (!resumed) response_.offset = 0;
    if (resumed && response_.offset != request_.offset)
      throw Error(request_.url, "the server sent another part of the file than it was asked for",
                  "run the same command again with --refresh");
    receiver_.begin(response_);
  }

  [[noreturn]] void fail(CURLcode code) const {
    switch (code) {
      case CURLE_HTTP_RETURNED_ERROR:
        throw Error(
            request_.url, fmt::format("the server answered with HTTP status {}", response_.status),
            response_.status >= 500 || response_.status == 429 ? "try again later" : "check the address");
      case CURLE_TOO_MANY_REDIRECTS:
        throw Error(request_.url, fmt::format("the server redirects more than {} times", kRedirects),
                    "check the address");
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
      case CURLE_HTTP2_STREAM:
        throw Error(request_.url, "the connection ended before the file did", kGoesOn);
      case CURLE_OPERATION_TIMEDOUT:
        throw Error(request_.url, "the server does not answer", kGoesOn);
      default:
        throw Error(request_.url, fmt::format("cannot fetch the file: {}", curl_.strerror(code)),
                    "check the address, the network and the proxy");
    }
  }

  const Curl& curl_;
  const HttpRequest& request_;
  HttpReceiver& receiver_;
  std::unique_ptr<CURL, decltype(Curl::cleanup)> handle_;
  std::unique_ptr<curl_slist, decltype(Curl::free_all)> headers_;
  HttpResponse response_;
  bool begun_ = false;
  std::exception_ptr thrown_;
};

}  // namespace

HttpResponse http_get(const HttpRequest& request, HttpReceiver& receiver) {
  static const Curl curl;
  return Transfer(curl, request, receiver).run();
}

}  // namespace armilla
