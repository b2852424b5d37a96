#include "read/trace/dot_graph.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {
namespace {

// The part of Graphviz' language that FlexFlow writes: one digraph of node and edge statements with
// attributes.
enum class TokenKind : std::uint8_t { word, quoted, mark, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1, column = 1;
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '-' || static_cast<unsigned char>(c) >= 128;
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Token next() {
    skip_space();
    Token token;
    token.line = line_;
    token.column = column_;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (c == '"') {
      token.kind = TokenKind::quoted;
      read_quoted(token);
    } else if (text_.substr(at_, 2) == "->") {
      token = {TokenKind::mark, "->", line_, column_};
      advance(2);
    } else if (is_word(c)) {
      token.kind = TokenKind::word;
      // A minus belongs to a number only at its beginning; "a->b" has an arrow.
      while (at_ < text_.size() && is_word(text_[at_]) && !(text_[at_] == '-' && !token.text.empty())) {
        token.text += text_[at_];
        advance(1);
      }
    } else if (std::string_view("{}[]=,;").find(c) != std::string_view::npos) {
      token = {TokenKind::mark, std::string(1, c), line_, column_};
      advance(1);
    } else {
      const std::string shown =
          c < ' ' ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
      fail(token, fmt::format("'{}' has no meaning here", shown));
    }
    return token;
  }

  std::string where(const Token& token) const {
    return fmt::format("{}:{}:{}", name_, token.line, token.column);
  }
  [[noreturn]] void fail(const Token& token, std::string message) const {
    throw Error(where(token), std::move(message));
  }

 private:
  void advance(std::size_t count) {
    for (; count > 0; --count, ++at_) {
      ++column_;
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  }
  bool begins(std::string_view word) const { return text_.substr(at_, word.size()) == word; }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        advance(1);
      } else if (begins("//") || c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') advance(1);
      } else if (begins("/*")) {
        const std::size_t close = text_.find("*/", at_ + 2);
        advance((close == text_.npos ? text_.size() : close + 2) - at_);
      } else {
        return;
      }
    }
  }

  // Graphviz' only escape here is the quotation mark's; anything else is passed on as it stands.
  void read_quoted(Token& token) {
    advance(1);
    while (at_ < text_.size() && text_[at_] != '"') {
      if (begins("\\\"")) advance(1);
      token.text += text_[at_];
      advance(1);
    }
    if (at_ == text_.size()) fail(token, "the text that begins here does not end");
    advance(1);
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

class DotParser {
 public:
  DotParser(std::string_view text, const std::string& name) : lexer_(text, name) { take(); }

  DotGraph run() {
    if (is_word("strict")) take();
    if (!is_word("digraph")) lexer_.fail(now_, "is not a digraph in Graphviz' language");
    take();
    if (is_name()) take();
    expect("{");
    while (!is_mark("}")) statement();
    take();
    if (now_.kind != TokenKind::end) lexer_.fail(now_, fmt::format("'{:.40}' follows the graph", now_.text));
    return std::move(graph_);
  }

 private:
  void take() { now_ = lexer_.next(); }
  bool is_mark(std::string_view text) const { return now_.kind == TokenKind::mark && now_.text == text; }
  bool is_word(std::string_view text) const { return now_.kind == TokenKind::word && now_.text == text; }
  bool is_name() const { return now_.kind == TokenKind::word || now_.kind == TokenKind::quoted; }
  void expect(std::string_view mark) {
    if (!is_mark(mark))
      lexer_.fail(now_, now_.kind == TokenKind::end
                            ? fmt::format("the file ends where '{}' is expected", mark)
                            : fmt::format("'{:.40}' stands where '{}' is expected", now_.text, mark));
    take();
  }
  std::string name() {
    if (!is_name())
      lexer_.fail(now_, now_.kind == TokenKind::end
                            ? std::string("the file ends inside the graph")
                            : fmt::format("'{:.40}' stands where a name is expected", now_.text));
    std::string text = std::move(now_.text);
    take();
    return text;
  }

  void statement() {
    if (is_mark(";")) return take();
    if (is_mark("{") || is_word("subgraph")) lexer_.fail(now_, "subgraphs are not supported");
    // "node [...]", "edge [...]" and "graph [...]" set defaults, which mean nothing to the graph.
    const bool defaults = is_word("node") || is_word("edge") || is_word("graph");
    const std::string where = lexer_.where(now_);
    const std::string first = name();
    if (is_mark("=")) {
      take();
      name();
      return;
    }
    bool is_edge = false;
    // "a -> b -> c" is two edges.
    std::string from = first;
    while (is_mark("->")) {
      take();
      std::string to = name();
      graph_.edges.push_back({std::move(from), to, where});
      from = std::move(to);
      is_edge = true;
    }
    DotNode node{first, attributes(), where};
    if (!is_edge && !defaults) graph_.nodes.push_back(std::move(node));
  }

  std::map<std::string, std::string> attributes() {
    std::map<std::string, std::string> found;
    while (is_mark("[")) {
      take();
      while (!is_mark("]")) {
        const std::string key = name();
        expect("=");
        found[key] = name();
        if (is_mark(",") || is_mark(";")) take();
      }
      take();
    }
    return found;
  }

  Lexer lexer_;
  Token now_;
  DotGraph graph_;
};

}  // namespace

DotGraph parse_dot(std::string_view text, const std::string& name) {
  return DotParser(text, name).run();
}

}  // namespace armilla
