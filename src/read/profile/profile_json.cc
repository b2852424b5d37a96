#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "read/profile.h"
#include "read/profile/profile_fields.h"

namespace armilla {
namespace {

using Json = nlohmann::json;

// As in the table (profile_csv.cc), where a column may be absent: what may not be empty ProfileBuilder
// refuses, so that both forms are held to the same.
// One event of the document; missing fields read as empty.
class JsonEvent {
 public:
  JsonEvent(const Json& value, std::string where) : value_(value), where_(std::move(where)) {
    if (!value.is_object()) throw Error(where_, "is not an object", "expected an event");
  }

  const std::string& where() const { return where_; }
  bool has(const char* key) const { return value_.contains(key) && !value_.at(key).is_null(); }
  std::string text(const char* key) const {
    if (!has(key)) return {};
    if (!value_.at(key).is_string()) throw Error(place(key), "is not text");
    return value_.at(key).get<std::string>();
  }
  std::int64_t count(const char* key) const {
    if (!has(key)) return 0;
    const Json& value = value_.at(key);
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
      throw Error(place(key), fmt::format("{:.60} is not a count", value.dump()), "expected a whole number");
    return value.get<std::int64_t>();
  }
  Time seconds(const char* key) const {
    if (!has(key)) return {};
    const Json& value = value_.at(key);
    if (!value.is_number()) throw Error(place(key), "is not a number", "expected seconds");
    return duration_from(value.get<double>(), value.dump(), place(key));
  }
  bool boolean(const char* key) const {
    if (!has(key)) return false;
    if (!value_.at(key).is_boolean()) throw Error(place(key), "is neither true nor false");
    return value_.at(key).get<bool>();
  }
  std::vector<JsonEvent> list(const char* key) const {
    std::vector<JsonEvent> events;
    if (!has(key)) return events;
    if (!value_.at(key).is_array()) throw Error(place(key), "is not a list");
    for (const Json& item : value_.at(key))
      events.emplace_back(item, fmt::format("{}[{}]", place(key), events.size()));
    return events;
  }

 private:
  std::string place(const char* key) const { return fmt::format("{}.{}", where_, key); }

  const Json& value_;
  std::string where_;
};

// `armilla events` writes modelled times, too: they must not come back as measured ones.
bool has_time(const JsonEvent& event) {
  return event.has("time_s") && (!event.has("source") || is_measured(event.text("source"), event.where()));
}

Measured measured_in(const JsonEvent& event, const std::string& device) {
  return {event.seconds("time_s"), event.seconds("spread_s"), event.count("repeats"),
          event.has("device") ? event.text("device") : device};
}

ComputationKey computation_in(const JsonEvent& event) {
  Work work;
  for (const JsonEvent& product : event.list("products"))
    // A size that is missing is 0 here, and no shape to ProfileBuilder.
    work.gemms.push_back({product.count("m"), product.count("n"), product.count("k"),
                          product.has("count") ? product.count("count") : 1});
  return {event.text("name"),      phase_named(event.text("phase"), event.where()),
          shapes_text(work.gemms), event.text("type"),
          event.count("flops"),    event.count("bytes")};
}

}  // namespace

Profile parse_profile_json(std::string_view text, const std::string& name) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) throw Error(name, "is broken JSON");
  const JsonEvent top(document, name);
  const std::string schema = top.text("schema");
  constexpr std::string_view kFamily = "armilla.events/", kKnown = "armilla.events/1";
  // Told apart from other files: a later form may mean something else by the same fields.
  if (schema.starts_with(kFamily) && schema != kKnown)
    throw Error(name,
                fmt::format("is a list of events by the schema {:.60}, and this version of Armilla knows {}",
                            schema, kKnown),
                "write it again with this version, or use the one that wrote it");
  if (schema != kKnown)
    throw Error(name, "is not a list of events",
                "armilla events --json and armilla profile export write such a file");
  // A job has one device; a database that was exported has that of every event.
  const std::string device = top.text("device");
  ProfileBuilder builder(name);
  for (const JsonEvent& event : top.list("computations")) {
    if (has_time(event)) builder.add(computation_in(event), measured_in(event, device), event.where());
  }
  for (const JsonEvent& event : top.list("communications")) {
    if (has_time(event))
      builder.add(CommunicationKey{event.text("name"), event.count("bytes"), event.count("ranks"),
                                   event.boolean("inter_node")},
                  measured_in(event, device), event.where());
  }
  return builder.take();
}

}  // namespace armilla
