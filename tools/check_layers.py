#!/usr/bin/env python3
"""Checks what the compiler cannot: that modules know only the modules below them, and the form of headers.

The table LAYERS is the architecture (docs/architecture.md). Checked under src/:

- every #include of another module, and every module named in a CMakeLists.txt, against the table;
- doors: another module's headers are included only where they lie at its root (src/read/read.h), never out of its
  rooms (src/read/onnx/); the rooms of ir are open;
- that rooms of a module, tests not counted, include each other in no circle; a room within a room is part of it;
- that what lies at a module's root is a door: another module, a test of several or a benchmark includes it, or a door does;
  of cli and ir nothing is asked;
- that a module includes only what its armilla_module(... USES ...) names, so that it links wherever it compiles;
- that what is used of our headers, and of those which fast builds compile once (PRECOMPILED), is included by the source
  itself or by a header of ours that it includes: fast builds compile it behind others, and other builds alone;
- that no two sources of a module, nor two of its tests, have functions without linkage of one name: fast builds compile
  them together, and a call in one could choose what the other has;
- that only tests include GoogleTest, and only study knows MPI and SQLite; a module's tests may use in addition what
  armilla_module_tests(... USES ...) names;
- that every source named in a comment or a page of docs/ is there: "read/onnx/ops.h" or "src/read/onnx/ops.h";
- that the pages about the tree (TREE_PAGES) name only files, folders, types and functions that are there, and all rooms;
- which headers are installed beside those that armilla.h names (INSTALLED_BESIDE), so that they do not grow unseen;
- that every test under src/ is built: a source that nobody names is silently never run;
- that a source which begins with a header of ours begins with that alone: the one that it is the source of;
- that headers open with a comment, include others than themselves, have #pragma once and no "using namespace"; that no source exceeds
  MAX_LINES lines, and no folder MAX_SOURCES sources, tests not counted.

    tools/check_layers.py [ROOT]    ROOT is the repository, by default the one this file stands in

Prints FILE:LINE: RULE for every violation. Exit code: 0 none, 1 some, 2 ROOT is no repository of this kind.
"""

import dataclasses
import pathlib
import re
import sys

# module: (level, modules it may include). Level is what a reader needs; the sets are the law.
FOUNDATION = {"base", "event", "ir"}
VERBS = {"read", "trace", "lower", "cost", "collective", "network", "write"}
LAYERS = {
    "base": (0, set()),
    "event": (0, {"base"}),
    "ir": (1, {"base"}),
    "zoo": (1, {"base"}),
    "read": (2, {"base", "ir", "zoo"}),
    "trace": (2, {"base", "ir"}),
    "lower": (2, {"base", "ir"}),
    "cost": (2, {"base", "ir"}),
    "collective": (2, {"base", "ir"}),
    "network": (2, {"base", "event", "ir"}),
    "write": (2, {"base", "ir"}),
    "sim": (3, FOUNDATION | {"cost", "collective", "network"}),
    "study": (4, FOUNDATION | VERBS | {"zoo", "sim"}),
    "cli": (5, FOUNDATION | VERBS | {"zoo", "sim", "study"}),
}
# Modules whose rooms are open: all of ir is nouns, which everybody shares.
OPEN_MODULES = {"ir"}
# Third-party headers that belong to one place: prefix -> (who may include them, the rule).
RESERVED_HEADERS = {
    "gtest/": ("tests", "GoogleTest is for tests only"),
    "gmock/": ("tests", "GoogleTest is for tests only"),
    "mpi.h": ("study", "only study knows MPI"),
    "sqlite3.h": ("study", "only study knows SQLite"),
}
# Headers that ARMILLA_FAST_BUILD compiles once for all sources (cmake/ArmillaModule.cmake), and names that come from them.
PRECOMPILED = {
    "algorithm": "std::(?:ranges::)?(?:all_of|any_of|none_of|binary_search|clamp|copy|copy_if|copy_n|count_if|equal|fill|"
    "find|find_if|generate|lower_bound|max|max_element|min|min_element|minmax|nth_element|partial_sort|partition|"
    "remove|remove_if|reverse|rotate|sort|stable_sort|transform|unique|upper_bound)",
    "array": "std::(?:array|to_array)",
    "filesystem": "std::filesystem",
    "fmt/format.h": "fmt::(?:format|format_to|memory_buffer|print)",
    "fmt/ranges.h": "fmt::join",
    "fstream": "std::[io]?fstream",
    "functional": "std::(?:function|greater|invoke|less|minus|multiplies|plus)",
    "map": "std::(?:multi)?map",
    "memory": "std::(?:make_shared|make_unique|shared_ptr|unique_ptr|weak_ptr)",
    "nlohmann/json.hpp": "nlohmann::(?:ordered_)?json",
    "numeric": "std::(?:accumulate|exclusive_scan|gcd|inclusive_scan|inner_product|iota|lcm|partial_sum|reduce)",
    "optional": "std::(?:make_optional|nullopt|optional)",
    "set": "std::(?:multi)?set",
    "span": "std::(?:as_bytes|span)",
    "string": "std::(?:string|to_string|sto[dfiul]+)",
    "unordered_map": "std::unordered_map",
    "vector": "std::vector",
}
# Others, which a source that is compiled with its neighbours may have from them.
BESIDE = {
    "gmock/gmock.h": "(?:ASSERT|EXPECT)_THAT",
    "regex": "std::(?:regex|regex_match|regex_search|smatch|sregex_iterator)",
}
# What stands before a name is looked at where it was found: patterns that look behind first take ten times as long.
USES_OF = {header: re.compile(rf"{names}\b") for header, names in (PRECOMPILED | BESIDE).items()}
BEFORE_USE = re.compile(r"[^\w:]")
BEFORE_NAME = re.compile(r"[^\w.:>]")
# Headers that stand for another of the table: they include it, or declare what is used where names alone will do.
INCLUDED_BY = {"fmt/format.h": {"fmt/ranges.h"}, "nlohmann/json.hpp": {"nlohmann/json_fwd.hpp"}}
TEXT_OR_COMMENT = re.compile(r'//[^\n]*|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
# What stands at the left margin: declarations of types, and of functions by the name before their parameters.
DECLARED_TYPE = re.compile(r"^(?:template <[^;{]*> *)?(?:struct|class|enum class|enum|union|using) (\w+)", re.M)
DECLARED_FUNCTION = re.compile(
    r"^(?!struct|class|enum|union|using|namespace|static_assert|extern|TEST)(?:template <[^;{]*>\s*)?(?:\[\[\w+\]\] )*"
    r"[A-Za-z_][^=()#/;{}\n]*[\s&*>](\w+)\(", re.M)
# The same within classes and functions, and names of types and of what is generic.
DECLARED_INSIDE = re.compile(
    r"(?:\b(?:struct|class|enum|using|typename|concept) |^(?! *(?:return|throw|case|else|co_return)\b)[^=()#/;{}\n]*[\w&*>]"
    r"[ &*]|\bauto )(\w+)\b", re.M)
FORWARDED = re.compile(r"\S&& (\w+)")
UNNAMED_NAMESPACE = re.compile(r"^namespace \{$(.*?)^\}  // namespace$", re.M | re.S)
MAX_LINES = 800
MAX_SOURCES = 15
# Pages whose names of code must be those of today's tree; the second column of a table row is its module.
TREE_PAGES = ("docs/architecture.md", "docs/extending.md", "docs/rooms.md")
# A page about all rooms begins its rows with them.
ROOM_ROW = re.compile(r"\| `([\w/]+)` \|")
ROOMS_PAGE = "docs/rooms.md"

# The public interface is what src/armilla.h includes. These are installed beside it, because public headers
# include them: each only where a forward declaration would not do (docs/architecture.md).
INSTALLED_BESIDE = {
    # Numbers, texts and names that nouns are made of; who is told of progress; what a writer hands out.
    "base/checked.h", "base/output_file.h", "base/progress.h", "base/registry.h", "base/string_table.h",
    # Parts of nouns, held by value: of machines, models, graphs, studies and runs, and what requests are made of.
    "ir/collective.h", "ir/custom_collective.h", "ir/derived/events.h", "ir/derived/goodput.h", "ir/expert_routing.h",
    "ir/flow_traffic.h", "ir/formats/system_layer.h", "ir/interconnect.h", "ir/jobs.h", "ir/memory.h", "ir/parts.h",
    "ir/play_time.h", "ir/profile.h", "ir/search.h", "ir/tensor.h", "ir/what_if.h", "ir/work.h",
    # What a lowered study holds beside its graph, for who looks at costs by layer.
    "lower/merge_jobs.h", "lower/pipeline_schedule.h", "lower/shard_share.h", "lower/sharded_model.h",
    # Which kind a file is of, of ModelFormat.
    "read/file_format.h",
    # How long searches and sweeps may take at most.
    "study/patience.h",
    # How wide and colourful a text is.
    "write/text_table.h",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OWN_INCLUDE = re.compile(r'#include "')
USING_NAMESPACE = re.compile(r"^\s*using\s+namespace\b")
# A file of a module as comments and pages name it, and not a part of a longer path.
NAMED_SOURCE = re.compile(r"(?<![\w/.{-])(?:src/)?((\w+)/[\w/]*\w\.(?:h|cc))(?!\w)")
# What a page says of the tree: `in quotes`, and in blocks of code the identifiers that no English word looks like.
QUOTED = re.compile(r"`([^`<>]+)`")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CODE_IDENTIFIER = re.compile(r"\b(?!k?My)(?:[a-z]\w*_\w+|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b")
PATH = re.compile(r"(?<![\w/.-])[\w.-]+(?:/[\w.-]+)+|\w+\.(?:h|cc|py|sh|txt|md)\b")
MODULE_ROW = re.compile(r"\| \d+ \| `(\w+)` \|")
CMAKE_COMMAND = re.compile(r"\b(armilla_module|armilla_module_tests)\s*\(([^()]*)\)")
CMAKE_KEYWORDS = {"SOURCES", "OPTIMISED", "SHARDS", "O2", "USES", "LIBRARIES", "PRIVATE_LIBRARIES"}


@dataclasses.dataclass(frozen=True, order=True)
class Violation:
    file: str
    line: int
    rule: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.rule}"


@dataclasses.dataclass
class Module:
    """One folder of src/ as its CMakeLists.txt describes it."""

    name: str
    uses: set
    test_uses: set
    test_stems: set  # of the sources of armilla_module_tests


def check(root):
    """All violations under `root`, sorted."""
    violations = []
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        if folder.name not in LAYERS:
            violations.append(Violation(relative(folder, root), 1, f"module '{folder.name}' is not in the layer table"))
            continue
        module = read_cmake(folder, root, violations)
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc")):
            check_source(path, module, root, violations)
            if path.name.endswith("_test.cc") and path.stem not in module.test_stems:
                rule = f"src/{folder.name}/CMakeLists.txt does not name it, so that it is never run"
                violations.append(Violation(relative(path, root), 1, rule))
        for room in sorted([folder, *(path for path in folder.rglob("*") if path.is_dir())]):
            sources = [path for path in room.glob("*.cc") if not is_test_source(path, module)]
            if len(sources) > MAX_SOURCES:
                rule = f"{len(sources)} sources in one folder; more than {MAX_SOURCES} want rooms"
                violations.append(Violation(relative(room, root), 1, rule))
    for path in sorted(root.glob("docs/**/*.md")) + sorted(root.glob("*.md")):
        check_named_sources(path, path.read_text(encoding="utf-8").splitlines(), root, violations)
    check_installed(root, violations)
    check_circles(root, violations)
    check_doors(root, violations)
    check_included(root, violations)
    check_functions(root, violations)
    if (root / ROOMS_PAGE).is_file():
        check_rooms_page(root / ROOMS_PAGE, root, violations)
    pages = [root / page for page in TREE_PAGES if (root / page).is_file()]
    if pages:
        paths, words = names_of_tree(root)
        for page in pages:
            check_tree_page(page, paths, words, root, violations)
    return sorted(violations)


def check_installed(root, violations):
    """Reports headers that come to be installed, or are no longer, without INSTALLED_BESIDE saying so."""
    public = "armilla.h"
    if not (root / "src" / public).is_file():
        return
    found, waiting = {}, [public]  # header -> (who includes it first, line)
    while waiting:
        header = waiting.pop(0)
        for number, line in enumerate((root / "src" / header).read_text(encoding="utf-8").splitlines(), 1):
            include = INCLUDE.match(line)
            if include and include.group(2) not in found and (root / "src" / include.group(2)).is_file():
                found[include.group(2)] = (header, number)
                waiting.append(include.group(2))
    beside = {header for header, (by, _) in found.items() if by != public}
    for header in sorted(beside - INSTALLED_BESIDE):
        rule = f"installs {header}, too: declare what is used of it, or name it in INSTALLED_BESIDE"
        violations.append(Violation(f"src/{found[header][0]}", found[header][1], rule))
    for header in sorted(INSTALLED_BESIDE - beside):
        violations.append(Violation(f"src/{public}", 1, f"{header} is not installed: INSTALLED_BESIDE names it"))


def check_circles(root, violations):
    """Reports includes by which a room of a module comes to know itself over others."""
    for folder in sorted(path for path in (root / "src").iterdir() if path.name in LAYERS):
        known = {}  # room -> room that it includes -> where
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc")):
            room, *rest = path.relative_to(folder).parts
            if not rest or path.stem.endswith(("_test", "_testing")):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                include = INCLUDE.match(line)
                module, *inside = include.group(2).split("/") if include else [""]
                if module == folder.name and len(inside) > 1 and inside[0] != room:
                    known.setdefault(room, {}).setdefault(inside[0], (path, number))
        above = {room: {room} for room in known}  # which rooms know it, over others or directly
        changed = True
        while changed:
            changed = False
            for room, others in known.items():
                for other in others:
                    missing = above[room] - above.setdefault(other, {other})
                    above[other] |= missing
                    changed = changed or bool(missing)
        for room, others in known.items():
            for other, (path, number) in others.items():
                if other in above[room]:
                    rule = f"room {room} of {folder.name} includes {other}, which includes it over itself or others"
                    violations.append(Violation(relative(path, root), number, rule))


def check_doors(root, violations):
    """Reports headers at the root of a module that only its own sources include, and no door of it."""
    includes = {}  # path under the repository -> what it includes
    for folder in ("src", "tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                lines = path.read_text(encoding="utf-8").splitlines()
                includes[relative(path, root)] = {include.group(2) for include in map(INCLUDE.match, lines) if include}
    doors = set()
    for path, found in includes.items():
        module = path.split("/")[1] if path.startswith("src/") else ""
        doors |= {header for header in found if header.split("/")[0] != module}
    waiting = sorted(doors)
    while waiting:
        inside = {header for header in includes.get(f"src/{waiting.pop()}", ()) if header not in doors}
        doors |= inside
        waiting += sorted(inside)
    for path in sorted(includes):
        src, module, *rest = path.split("/")
        if src == "src" and len(rest) == 1 and rest[0].endswith(".h") and not rest[0].endswith("_testing.h"):
            if module in LAYERS.keys() - OPEN_MODULES - {"cli"} and f"{module}/{rest[0]}" not in doors:
                violations.append(Violation(path, 1, f"only {module} includes it: it belongs in a room"))


def check_included(root, violations):
    """Reports what sources use and neither they nor the headers of ours that they include declare or include."""
    ours, others, texts = {}, {}, {}  # by path under src/: headers of ours, other headers, text
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cc"):
            text = path.read_text(encoding="utf-8")
            name = relative(path, root / "src")
            found = [include.group(2) for include in map(INCLUDE.match, text.splitlines()) if include]
            ours[name] = [header for header in found if (root / "src" / header).is_file()]
            others[name] = set(found) - set(ours[name])
            # Texts and comments use nothing; lines keep their numbers.
            texts[name] = TEXT_OR_COMMENT.sub(lambda part: "\n" * part.group().count("\n"), text)
    words = {name: set(IDENTIFIER.findall(text)) for name, text in texts.items()}
    declaring = {}  # name -> headers
    for name, text in texts.items():
        if name.endswith(".h"):
            for declared in {*DECLARED_TYPE.findall(text), *DECLARED_FUNCTION.findall(text)}:
                declaring.setdefault(declared, []).append(name)
    # A name that several headers declare is overloaded: whose it is, only a compiler tells.
    header_of = {declared: headers[0] for declared, headers in declaring.items() if len(headers) == 1}

    for name, text in texts.items():
        seen, waiting = {name}, [name]
        while waiting:
            for header in ours[waiting.pop()]:
                if header not in seen:
                    seen.add(header)
                    waiting.append(header)

        def report(pattern, before, rule, but="\0"):
            for use in pattern.finditer(text):
                line = text.rfind("\n", 0, use.start()) + 1
                if (use.start() == line or before.match(text, use.start() - 1)) and not text.startswith(but, line):
                    number = text.count("\n", 0, line) + 1
                    violations.append(Violation(f"src/{name}", number, f"uses what {rule} declares and does not include it"))
                    return

        included = set().union(*(others[header] for header in seen))
        for header, uses in USES_OF.items():
            if not ({header} | INCLUDED_BY.get(header, set())) & included:
                report(uses, BEFORE_USE, f"<{header}>")
        known = set().union(*(words[header] for header in seen - {name}), DECLARED_INSIDE.findall(text), FORWARDED.findall(text))
        for word in sorted(words[name] & header_of.keys() - known):
            if header_of[word] not in seen and may_see(name, header_of[word]):
                # A type, or a call.
                after = "[({ :&*>]" if word[0].isupper() else r"\("
                report(re.compile(rf"{word}(?={after})"), BEFORE_NAME, f"{header_of[word]} ({word})", "TEST")


def may_see(source, header):
    """Whether `source` may include `header`, both by their paths under src/."""
    module, used = source.split("/")[0], header.split("/")[0]
    if module not in LAYERS or used not in LAYERS:
        return False
    return module == used or allowed(module, used) and (used in OPEN_MODULES or header.count("/") == 1)


def check_functions(root, violations):
    """Reports functions without linkage whose name another source of the module has for one, too."""
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        seen = {}  # (of tests?, name) -> file
        for path in sorted(folder.rglob("*.cc")):
            if path.stem.endswith("_fuzz"):
                continue
            name = relative(path, root)
            text = path.read_text(encoding="utf-8")
            is_test = path.stem.endswith(("_test", "_testing"))
            found = {}  # name -> line
            for unnamed in UNNAMED_NAMESPACE.finditer(text):
                for function in DECLARED_FUNCTION.finditer(text, unnamed.start(1), unnamed.end(1)):
                    found.setdefault(function.group(1), text.count("\n", 0, function.start(1)) + 1)
            for function, line in found.items():
                other = seen.setdefault((is_test, function), name)
                if other != name:
                    violations.append(Violation(name, line, f"{other} has a function {function} without linkage, too"))


def names_of_tree(root):
    """Its paths with all their ends (as "/b/c" of a/b/c), and the words of its sources and scripts."""
    paths, words = set(), set()
    files = [path for path in root.iterdir() if path.is_file()]
    for folder in ("src", "tests", "tools", "cmake", "bench", "docs", "models", "machines", "examples"):
        files += (root / folder).rglob("*")
    for path in files:
        parts = relative(path, root).split("/")
        paths.update("/" + "/".join(parts[first:]) for first in range(len(parts)))
        words.update(IDENTIFIER.findall(" ".join(parts)))
        if path.suffix in (".h", ".cc", ".txt", ".cmake", ".py", ".sh", ".json") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            words.update(IDENTIFIER.findall(re.sub(r"//.*", "", text) if path.suffix in (".h", ".cc") else text))
    return paths, words


def check_rooms_page(page, root, violations):
    """Reports folders of sources without a row of their own."""
    rows = set(ROOM_ROW.findall(page.read_text(encoding="utf-8")))
    for path in sorted(path for path in (root / "src").rglob("*") if path.is_dir()):
        if relative(path, root / "src") not in rows and (any(path.glob("*.h")) or any(path.glob("*.cc"))):
            violations.append(Violation(relative(page, root), 1, f"has no row for {relative(path, root / 'src')}"))


def check_tree_page(page, paths, words, root, violations):
    """Reports what the page names and the tree has not, and rooms that a module's row leaves out."""
    is_code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            is_code = not is_code
            continue
        quoted = [line] if is_code else QUOTED.findall(line)
        in_tree = {path for text in quoted if not is_code for path in PATH.findall(text) if not path.startswith("build/")}
        named = {path for path in in_tree if f"/{path}" not in paths}
        for text in quoted:
            identifiers = CODE_IDENTIFIER if is_code else IDENTIFIER
            named.update(word for word in identifiers.findall(PATH.sub("", text)) if word not in words)
        for name in sorted(named):
            violations.append(Violation(relative(page, root), number, f"there is no {name}"))
        module = MODULE_ROW.match(line)
        if module:
            rooms = {path.name for path in (root / "src" / module.group(1)).rglob("*") if path.is_dir()}
            for room in sorted(rooms - set(quoted)):
                violations.append(Violation(relative(page, root), number, f"{module.group(1)} has a room {room}, too"))


def check_named_sources(path, lines, root, violations):
    """Reports the sources that `lines` of the file at `path` name and that are not there."""
    for number, line in enumerate(lines, 1):
        for name in NAMED_SOURCE.finditer(line):
            if name.group(2) in LAYERS and not (root / "src" / name.group(1)).is_file():
                violations.append(Violation(relative(path, root), number, f"there is no src/{name.group(1)}"))


def relative(path, root):
    return path.relative_to(root).as_posix()


def allowed(module, used):
    return used == module or used in LAYERS[module][1]


def layer_rule(module, used):
    below = ", ".join(sorted(LAYERS[module][1])) or "nothing"
    return f"{module} (level {LAYERS[module][0]}) may not use {used} (level {LAYERS[used][0]}); it may use {below}"


def read_cmake(folder, root, violations):
    """Reads the folder's CMakeLists.txt and checks every module it names."""
    module = Module(folder.name, set(), set(), set())
    path = folder / "CMakeLists.txt"
    if not path.is_file():
        violations.append(Violation(relative(path, root), 1, "missing: every module has one"))
        return module
    text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))

    def report(position, rule):
        violations.append(Violation(relative(path, root), text.count("\n", 0, position) + 1, rule))

    test_spans = []
    for command in CMAKE_COMMAND.finditer(text):
        arguments = cmake_arguments(command.group(2))
        if arguments[""] != [folder.name]:
            report(command.start(), f"{command.group(1)} must name the folder's own module, '{folder.name}'")
        is_test = command.group(1) == "armilla_module_tests"
        if is_test:
            test_spans.append(command.span())
            module.test_uses |= set(arguments["USES"])
            module.test_stems |= {pathlib.PurePath(source).stem for source in arguments["SOURCES"] + arguments["OPTIMISED"]}
        else:
            module.uses |= set(arguments["USES"])
        for used in arguments["USES"]:
            position = command.start(2) + re.search(rf"\b{re.escape(used)}\b", command.group(2)).start()
            if used not in LAYERS:
                report(position, f"no module is called '{used}'")
            elif not is_test and not allowed(folder.name, used):
                report(position, layer_rule(folder.name, used))

    # A target named directly would link past the table.
    for target in re.finditer(r"\barmilla(?:_|::)(\w+)", text):
        if any(begin <= target.start() < end for begin, end in test_spans):
            continue
        if target.group(1) in LAYERS and not allowed(folder.name, target.group(1)):
            report(target.start(), layer_rule(folder.name, target.group(1)))
    return module


def cmake_arguments(text):
    """Keyword -> values of a CMake command; values before the first keyword stand under ""."""
    values = {"": [], **{keyword: [] for keyword in CMAKE_KEYWORDS}}
    keyword = ""
    for word in text.split():
        if word in CMAKE_KEYWORDS:
            keyword = word
        else:
            values[keyword].append(word)
    return values


def is_test_source(path, module):
    stem = path.stem
    return stem in module.test_stems or stem.endswith(("_test", "_testing"))


def check_source(path, module, root, violations):
    lines = path.read_text(encoding="utf-8").splitlines()
    name = relative(path, root)
    is_test = is_test_source(path, module)
    is_door = path.suffix == ".h" and path.parent.name == module.name and not is_test

    def report(line, rule):
        violations.append(Violation(name, line, rule))

    if len(lines) > MAX_LINES:
        report(MAX_LINES + 1, f"{len(lines)} lines; no source has more than {MAX_LINES}")
    if path.suffix == ".h":
        check_header(lines, report)
    elif len(lines) > 1 and all(OWN_INCLUDE.match(line) for line in lines[:2]):
        report(2, "behind a source's own header comes an empty line, and other headers of ours behind those of the system")
    comments = ["//" + line.partition("//")[2] for line in lines]
    check_named_sources(path, comments, root, violations)
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include and name == f"src/{include.group(2)}":
            report(number, "includes itself")
        if include:
            rule = include_rule(include.group(2), include.group(1) == '"', module, is_test, is_door)
            if rule:
                report(number, rule)


def check_header(lines, report):
    if not lines or not lines[0].startswith("//"):
        report(1, "a header opens with a comment that says what it is")
    if "#pragma once" not in lines:
        report(1, "a header has #pragma once")
    for number, line in enumerate(lines, 1):
        if USING_NAMESPACE.match(line):
            report(number, "no 'using namespace' in a header")


def include_rule(target, quoted, module, is_test, is_door):
    """The rule that including `target` breaks, or None."""
    for prefix, (owner, rule) in RESERVED_HEADERS.items():
        if target.startswith(prefix) and owner != module.name and not (owner == "tests" and is_test):
            return rule
    used, slash, _ = target.partition("/")
    if used not in LAYERS or not slash:
        return f'"{target}" is written with its module: "module/file.h"' if quoted else None
    if "/" in target[len(used) + 1 :] and used not in OPEN_MODULES:
        if used != module.name:
            return f"other modules include {used} by the door only: headers that lie in src/{used}/ itself"
        if is_door:
            return "a door includes no header of a room"
    if used == module.name:
        return None
    as_test = is_test and used in module.test_uses
    if not as_test and not allowed(module.name, used):
        return layer_rule(module.name, used)
    if not as_test and used not in module.uses:
        return f"{module.name} includes {used}, but src/{module.name}/CMakeLists.txt does not list it under USES"
    return None


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    if not (root / "src").is_dir():
        print(f"check_layers: {root}: has no folder src/", file=sys.stderr)
        return 2
    violations = check(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
