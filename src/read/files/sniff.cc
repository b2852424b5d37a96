#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>

#include "base/mapped_file.h"
#include "base/text.h"
#include "read/astra.h"
#include "read/encoding/gzip.h"
#include "read/file_format.h"
#include "read/files/sniff_binary.h"
#include "read/onnx/wire.h"
#include "read/outline.h"
#include "read/trace.h"

namespace armilla {
namespace {

using Kind = FileKind;

constexpr std::size_t kBeginning = 1 << 16;
constexpr std::string_view kHardSpace = "\xC2\xA0";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view without_blank(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

std::string_view first_line(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  while (!line.empty() && kBlank.find(line.back()) != kBlank.npos) line.remove_suffix(1);
  return line;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Keys.

bool has_any(const Outline& outline, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return outline.has(name); });
}
bool has_all(const Outline& outline, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) { return outline.has(name); });
}

bool is_astra_system(const Outline& outline) {
  return has_any(outline, {"scheduling-policy", "all-reduce-implementation", "all-gather-implementation",
                           "reduce-scatter-implementation", "all-to-all-implementation",
                           "collective-optimization", "preferred-dataset-splits",
                           "active-chunks-per-dimension", "endpoint-delay", "peak-perf", "local-mem-bw",
                           "roofline-enabled", "intra-dimension-scheduling", "inter-dimension-scheduling",
                           "all-reduce-implementation-custom", "all-reduce-implementation-chakra"});
}

bool is_trace_node(const Outline& outline) {
  return has_any(outline,
                 {"ctrlDeps", "ctrl_deps", "dataDeps", "data_deps", "durationMicros", "duration_micros"}) ||
         has_all(outline, {"name", "type", "attr"}) || has_all(outline, {"name", "type", "attribute"});
}

// {"1": [0, 1], "2": [2, 3]} and {"12": "path"}: the keys are the user's own.
Kind kind_of_table(const Outline& outline) {
  if (outline.keys.empty()) return Kind::json;
  const auto every = [&](auto holds) { return std::all_of(outline.keys.begin(), outline.keys.end(), holds); };
  if (every([](const OutlineKey& key) {
        return key.value == '[' && (is_digit(key.inside) || key.inside == ']');
      }))
    return Kind::communicators;
  if (every([](const OutlineKey& key) { return key.value == '"' && is_number(key.name); }))
    return Kind::custom_table;
  return Kind::json;
}

// What JSON and YAML share: studies, machines and models may be written as either.
// Specific keys first: an ASTRA-sim network has a topology, too, and a study may name a machine.
Kind kind_of_keys(const Outline& o) {
  if (has_all(o, {"num-npus", "topology"}) || has_all(o, {"topologies-per-dim"}) ||
      has_all(o, {"topology-name"}) || has_all(o, {"dimensions-count"}))
    return Kind::astra1_network;
  if (o.has("npus_count") || has_all(o, {"topology", "bandwidth"})) return Kind::astra2_network;
  if (has_any(o, {"memory-type", "remote-mem-latency", "remote-mem-bw"})) return Kind::astra2_memory;
  if (o.has("logical-dims")) return Kind::ns3_topology;
  if (has_all(o, {"devices", "instances", "edges"})) return Kind::infragraph;
  if (o.has("model_type") || o.has("architectures") || has_all(o, {"hidden_size", "num_hidden_layers"}) ||
      has_all(o, {"n_embd", "n_layer"}))
    return Kind::huggingface;
  if (o.has("family") || has_all(o, {"layers", "hidden"})) return Kind::description;
  if (o.has("vary") || (o.has("study") && !has_any(o, {"model", "machine", "plan"}))) return Kind::sweep;
  if (o.has("plan") || (o.has("jobs") && !o.has("on")) || (o.has("model") && !o.has("added_tokens")))
    return Kind::study;
  if (o.has("dimensions") || (o.has("device") && has_any(o, {"topology", "nodes", "links"})))
    return Kind::machine;
  if (has_any(o, {"memory_bandwidth", "vector_rate", "matrix_rate"})) return Kind::device;
  if (o.has("machine")) return Kind::study;
  return Kind::yaml;
}

Kind kind_of_hugging_file(const Outline& o) {
  if (o.has("added_tokens_decoder") || o.has("tokenizer_class") || has_all(o, {"added_tokens", "model"}))
    return Kind::tokenizer;
  if (has_any(o, {"weight_map", "peft_type", "image_processor_type", "feature_extractor_type",
                  "_from_model_config", "bos_token", "cls_token"}) ||
      (o.has("transformers_version") && !o.has("vocab_size")))
    return Kind::hugging_other;
  if (has_all(o, {"dim", "n_layers", "n_heads"})) return Kind::meta_params;
  return Kind::json;
}

Kind kind_of_list(const Outline& o) {
  if (o.has("ph") && has_any(o, {"ts", "name"})) return Kind::chrome_trace;
  return Kind::json;
}

// From keys that only one format has to those that several share.
Kind sniff_json(std::string_view text) {
  const Outline o = outline_json(text);
  if (o.form == Outline::Form::list) return kind_of_list(o);
  const OutlineKey* const schema = o.find("schema");
  if (schema != nullptr && schema->text.starts_with("armilla.events/")) return Kind::profile;
  if (schema != nullptr && schema->text.starts_with("armilla.")) return Kind::armilla_result;
  if (o.has("traceEvents") || has_all(o, {"schemaVersion", "deviceProperties"}))
    return has_any(o, {"deviceProperties", "distributedInfo", "schemaVersion", "trace_id"})
               ? Kind::kineto
               : Kind::chrome_trace;
  if (o.has("workload_graph") || is_trace_node(o)) return Kind::chakra_json;
  if (o.has("nodes") && has_any(o, {"schema", "pid"})) return Kind::pytorch_et;
  if (o.several) return Kind::chakra_json;
  if (o.has("gpus") && has_any(o, {"collective", "protocol", "num_threads_per_block", "colletive"}))
    return Kind::mscclpp;
  if (o.has("memory-type")) return Kind::astra2_memory;  // an older one has keys of a system, too
  if (is_astra_system(o)) return Kind::astra2_system;
  if (const Kind kind = kind_of_keys(o); kind != Kind::yaml) return kind;
  if (const Kind kind = kind_of_hugging_file(o); kind != Kind::json) return kind;
  return kind_of_table(o);
}

// XML, from whatever may stand before its root element.

std::string_view root_element(std::string_view text) {
  while (true) {
    text = without_blank(text);
    std::string_view end;
    if (text.starts_with("<!--")) {
      end = "-->";
    } else if (text.starts_with("<?")) {
      end = "?>";
    } else if (text.starts_with("<!")) {
      const std::size_t subset = text.find('['), close = text.find('>');
      end = subset < close ? "]>" : ">";
    } else {
      break;
    }
    const std::size_t found = text.find(end);
    if (found == text.npos) return {};
    text.remove_prefix(found + end.size());
  }
  if (!text.starts_with('<')) return {};
  text.remove_prefix(1);
  return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

Kind sniff_markup(std::string_view text) {
  const std::string_view root = root_element(text);
  if (root == "algo") return Kind::msccl;
  if (root == "system") return Kind::nccl_topology;
  if (root == "graphs") return Kind::nccl_graph;
  if (root == "svg") return Kind::picture;
  return Kind::markup;
}

// Tables.

std::vector<std::string> columns_of(std::string_view line) {
  const char separator = line.find(',') == line.npos ? '\t' : ',';
  std::vector<std::string> columns;
  while (true) {
    const std::size_t end = std::min(line.find(separator), line.size());
    std::string_view column = line.substr(0, end);
    if (column.starts_with(kHardSpace))
      column.remove_prefix(kHardSpace.size());  // SCALE-Sim has such headers
    column = without_blank(column);
    while (!column.empty() && kBlank.find(column.back()) != kBlank.npos) column.remove_suffix(1);
    columns.push_back(lower_case(column));
    if (end == line.size()) return columns;
    line.remove_prefix(end + 1);
  }
}

Kind sniff_table(std::string_view header) {
  const std::vector<std::string> columns = columns_of(header);
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  const auto begins = [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](const std::string& c) { return c.starts_with(name); });
  };
  if (has("ifmap height intraline factor")) return Kind::scalesim_layout;
  if (begins("ifmap height") || (begins("ifmap width") && begins("filter width")))
    return Kind::scalesim_topology;
  if (columns.size() >= 4 && columns[1] == "m" && columns[2] == "n" && columns[3] == "k")
    return Kind::scalesim_topology;
  if (columns[0] == "layerid" &&
      (begins("total cycles") || begins("avg ") || begins("sram ") || begins("sparsity")))
    return Kind::scalesim_report;
  if (has("name") && has("phase") && has("shapes") && has("time_s")) return Kind::profile;
  // The columns by which their reader tells the four tables apart (read/measurements.h).
  if (has("step_time_s") || has("peak_gib") || (has("time_us") && (has("collective") || has("op"))))
    return Kind::measurements;
  return columns.size() > 1 ? Kind::csv : Kind::text;
}

// Whether the line after the header has as many columns; prose with commas does not.
bool continues_table(std::string_view table) {
  const std::string_view header = first_line(table);
  const std::size_t end = table.find('\n');
  const std::string_view next =
      end == table.npos ? std::string_view() : first_line(without_blank(table.substr(end)));
  return next.empty() || columns_of(next).size() == columns_of(header).size();
}

// Any other text.

// C and its relatives; ASTRA-sim's sources hold the words of its logs.
bool is_source_code(std::string_view text) {
  return text.starts_with("//") || text.starts_with("/*") || text.starts_with("#include") ||
         text.starts_with("#ifndef ") || text.starts_with("#pragma ");
}

bool is_astra_log(std::string_view text) {
  return (text.find("sys[") != text.npos && text.find(" cycles") != text.npos) ||
         text.find("ring of node ") != text.npos || text.find("[workload] [") != text.npos ||
         text.find("[system::") != text.npos;
}

// "POLICY" on the first line and a number of layers on the second, also where the policy is misspelt.
bool is_like_astra_text(std::string_view text) {
  const std::string_view line = first_line(text);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  const bool capitals = word.size() > 3 && std::all_of(word.begin(), word.end(), [](char c) {
                          return (c >= 'A' && c <= 'Z') || c == '_';
                        });
  const std::size_t end = text.find('\n');
  return capitals && end != text.npos && is_number(first_line(without_blank(text.substr(end))));
}

bool is_ns3_config(std::string_view text) {
  return text.find("TOPOLOGY_FILE") != text.npos &&
         (text.find("ENABLE_QCN") != text.npos || text.find("FLOW_FILE") != text.npos);
}

// "topology = mesh;" after nothing but comments, and such statements up to where it breaks off.
bool is_booksim(std::string_view text) {
  bool telling = false;
  for (std::size_t statements = 0;; ++statements) {
    text = without_blank(text);
    while (text.starts_with("//")) text = without_blank(text.substr(std::min(text.find('\n'), text.size())));
    const std::size_t end = text.find(';');
    if (end == text.npos) return statements > 0 && telling;
    const std::string_view statement = text.substr(0, end);
    const std::size_t equals = statement.find('=');
    const std::string_view name = trimmed(statement.substr(0, std::min(equals, statement.size())));
    if (equals == statement.npos || name.empty() || !std::all_of(name.begin(), name.end(), [](char c) {
          return is_letter(c) || is_digit(c) || c == '_';
        }))
      return statements > 0 && telling;
    for (const std::string_view key : {"topology", "routing_function", "num_vcs", "vc_buf_size", "traffic",
                                       "injection_rate", "packet_size", "sim_type"})
      telling = telling || name == key;
    text.remove_prefix(end + 1);
  }
}

// After whatever a launcher or NCCL_DEBUG printed before: "# out-of-place in-place", "# size count
// ... busbw".
bool is_nccl_tests(std::string_view text) {
  bool has_places = false;
  for (; !text.empty(); text.remove_prefix(std::min(text.find('\n') + 1, text.size()))) {
    const std::string_view line = first_line(text);
    const auto names = [&](std::string_view word) { return line.find(word) != line.npos; };
    if (line.starts_with('#')) {
      if (has_places && names("size") && names("time") && names("busbw")) return true;
      has_places = has_places || (names("out-of-place") && names("in-place"));
    }
    if (text.find('\n') == text.npos) break;
  }
  return false;
}

// Python's configparser takes comments and any order of sections.
bool is_scalesim_config(std::string_view text) {
  for (; !text.empty(); text = without_blank(text.substr(std::min(text.find('\n'), text.size())))) {
    const std::string_view line = first_line(text);
    if (line.starts_with('#') || line.starts_with(';')) continue;
    return line == "[general]" || line == "[architecture_presets]" || line == "[run_presets]";
  }
  return false;
}

Kind sniff_digraph(std::string_view text) {
  const bool tasks = text.find("device_id=") != text.npos || text.find("COMP_NODE") != text.npos ||
                     text.find("COMM_SEND_RECV_NODE") != text.npos;
  return tasks || text.find("label") == text.npos ? Kind::flexflow : Kind::graphviz;
}

Kind sniff_yaml(std::string_view text) {
  const Outline o = outline_yaml(text);
  if (o.form == Outline::Form::mapping) {
    if (is_astra_system(o)) return Kind::astra1_system;
    const Kind kind = kind_of_keys(o);
    const bool prose = std::any_of(o.keys.begin(), o.keys.end(),
                                   [](const OutlineKey& key) { return key.name.find(' ') != key.name.npos; });
    return kind == Kind::yaml && prose ? Kind::text : kind;
  }
  if (o.form == Outline::Form::none) return Kind::empty;
  return o.form == Outline::Form::list ? Kind::yaml : Kind::text;
}

// "Nodes 4", "Tiers 2" or "Podsize 4", in any case, with another of the keys below it. `text` begins with a
// word.
bool is_htsim_topology(std::string_view text) {
  const auto key_of = [](std::string_view line) {
    const std::size_t end = line.find_first_of(" \t");
    const std::string_view value = end == line.npos ? "" : without_blank(line.substr(end));
    return value.empty() || value.front() < '0' || value.front() > '9' ? "" : lower_case(line.substr(0, end));
  };
  const auto is_of_header = [](std::string_view key) {
    return key == "nodes" || key == "tiers" || key == "podsize";
  };
  if (!is_of_header(key_of(first_line(text)))) return false;
  while (text.find('\n') != text.npos) {
    text = without_blank(text.substr(text.find('\n')));
    const std::string key = key_of(first_line(text));
    if (is_of_header(key) || key == "tier") return true;
    if (!text.starts_with('#')) return false;
  }
  return false;
}

// htsim's: "Nodes 16" and "Connections 2", or a flow, "0->1 ...", after nothing but comments. "Nodes 16"
// alone may as well be a topology that was cut off.
bool is_htsim_connections(std::string_view text) {
  for (; !text.empty(); text = without_blank(text.substr(std::min(text.find('\n'), text.size())))) {
    if (text.starts_with('#')) continue;
    const std::vector<std::string_view> words = words_of(first_line(text));
    const std::size_t arrow = words.front().find("->");
    if (arrow != text.npos)
      return is_number(words.front().substr(0, arrow)) && is_number(words.front().substr(arrow + 2));
    if (words.size() != 2 || !is_number(words[1])) return false;
    if (words.front() == "Connections") return true;
    if (words.front() != "Nodes") return false;
  }
  return false;
}

bool are_numbers(const std::vector<std::string_view>& words, std::size_t count) {
  return words.size() >= count &&
         std::all_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count), is_number);
}

// Those of HPCC's ns-3 and of SimAI's begin with numbers alone: a topology with how many nodes, switches and
// links there are, its links having a rate with a unit and a delay; flows with how many there are, which may
// be none.
Kind sniff_hpcc(std::string_view text) {
  const std::vector<std::string_view> head = words_of(first_line(text));
  if (!are_numbers(head, 1)) return Kind::text;
  // A number that may not be there is one all the same.
  const auto is_whole = [](std::string_view word) {
    return is_number(word.substr(word.starts_with('-') ? 1 : 0));
  };
  const auto is_link = [](const std::vector<std::string_view>& words) {
    return words.size() >= 5 && are_numbers(words, 2) && is_digit(words[2].front()) &&
           (words[2].ends_with("ps") || words[2].ends_with("/s"));
  };
  const bool counts_nodes = are_numbers(head, 3);
  while (text.find('\n') != text.npos) {
    text = without_blank(text.substr(text.find('\n')));
    if (text.empty()) break;
    const std::vector<std::string_view> words = words_of(first_line(text));
    if (counts_nodes && is_link(words)) return Kind::hpcc_topology;
    if (head.size() == 1)
      return words.size() >= 6 && std::all_of(words.begin(), words.begin() + 5, is_whole) ? Kind::hpcc_flows
                                                                                          : Kind::text;
  }
  return head.size() == 1 && head.front() == "0" ? Kind::hpcc_flows : Kind::text;
}

// What begins unmistakably comes first, then logs and tables, at last whatever parses as YAML.
Kind sniff_text(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  text = without_blank(text);
  if (text.empty()) return Kind::empty;
  if (text.starts_with("version https://git-lfs")) return Kind::lfs_pointer;
  if (text.starts_with('<')) return sniff_markup(text);
  if (text.starts_with("digraph") || text.starts_with("strict digraph") || text.starts_with("graph "))
    return sniff_digraph(text);
  if (text.starts_with('{')) return sniff_json(text);
  if (looks_like_astra_text({text.data(), text.size()})) return Kind::astra_text;
  if (is_issue_log(text)) return Kind::issue_log;
  const std::string_view line = first_line(text);
  if (is_scalesim_config(text)) return Kind::scalesim_config;
  if (is_booksim(text)) return Kind::booksim_config;
  if (is_source_code(text)) return Kind::text;
  if (is_nccl_tests(text)) return Kind::nccl_tests;
  if (is_astra_log(text)) return Kind::astra_log;
  const bool section = line.size() > 2 && line.starts_with('[') && line.ends_with(']') && is_letter(line[1]);
  if (section && line.find_first_of(",:{") == line.npos && text.find('=') != text.npos) return Kind::ini;
  if (text.starts_with('[')) return sniff_json(text);
  if (is_like_astra_text(text)) return Kind::astra_text;
  if (is_ns3_config(text)) return Kind::ns3_config;
  std::string_view table = text;
  while (table.starts_with('#') &&
         table.find('\n') != table.npos)  // SCALE-Sim's readers and htsim's skip such lines
    table = without_blank(table.substr(table.find('\n')));
  if (is_htsim_topology(table)) return Kind::htsim_topology;
  if (is_htsim_connections(table)) return Kind::htsim_connections;
  if (const Kind kind = sniff_hpcc(text); kind != Kind::text) return kind;
  const Kind by_keys = sniff_yaml(text);
  if (by_keys != Kind::text && by_keys != Kind::yaml) return by_keys;
  Kind by_header = sniff_table(first_line(table));
  if (by_header == Kind::csv && !continues_table(table)) by_header = Kind::text;
  return by_header != Kind::text && by_keys == Kind::text ? by_header : by_keys;
}

bool is_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= ' ' && c != 0x7F) || (c >= '\t' && c <= '\r') || static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace

// The beginning is enough, but for protobuf, whose fields must fill the file.
FileKind sniff(std::span<const char> bytes) {
  if (bytes.empty()) return Kind::empty;
  const std::string_view beginning(bytes.data(), std::min(bytes.size(), kBeginning));
  if (is_gzip(bytes)) return sniff_packed(bytes);
  if (const FileKind kind = sniff_signature(beginning); kind != Kind::binary) return kind;
  if (is_text(beginning)) return sniff_text(beginning);
  return sniff_protobuf(bytes);
}

FileKind sniff_file(const std::string& path) {
  const MappedFile file(path);
  return sniff(file.bytes());
}

}  // namespace armilla
