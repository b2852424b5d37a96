#!/usr/bin/env python3
"""Tests of check_layers.py on small trees made here: each breaks one rule and must be reported whole."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import check_layers

HEADER = "// What this is.\n#pragma once\n"
IR = {
    "src/ir/CMakeLists.txt": "armilla_module(ir SOURCES model.cc USES base)\n"
    "armilla_module_tests(ir SOURCES model_test.cc)\n"
}
IR_TO_WRITE = "ir (level 1) may not use write (level 2); it may use base"
IR_TO_READ = "ir (level 1) may not use read (level 2); it may use base"


def violations(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return [str(violation) for violation in check_layers.check(root)]


class Table(unittest.TestCase):
    def test_points_downwards_only(self):
        for module, (level, below) in check_layers.LAYERS.items():
            for used in below:
                with self.subTest(module=module, used=used):
                    lower = check_layers.LAYERS[used][0]
                    # event stands on base within level 0; everything else looks strictly down.
                    self.assertTrue(lower < level or (module, used) == ("event", "base"))

    def test_verbs_do_not_know_each_other(self):
        for verb in check_layers.VERBS:
            self.assertFalse(check_layers.LAYERS[verb][1] & check_layers.VERBS)


class Includes(unittest.TestCase):
    def test_allowed(self):
        text = '#include "base/error.h"\n#include <vector>\n#include <fmt/format.h>\n'
        self.assertEqual(violations(IR | {"src/ir/model.cc": text}), [])

    def test_of_what_fast_builds_compile_in_advance(self):
        own = "// std::set\n#include <map>\nauto text = \"std::set\";\nstd::map<int, std::set<int>> sets;\n"
        rule = "uses what <set> declares and does not include it"
        self.assertEqual(violations(IR | {"src/ir/model.cc": own}), [f"src/ir/model.cc:4: {rule}"])
        header = HEADER + "#include <set>\n"
        self.assertEqual(violations(IR | {"src/ir/sets.h": header, "src/ir/model.cc": '#include "ir/sets.h"\n' + own}), [])

    def test_of_our_own_headers(self):
        made = {"src/ir/sum.h": HEADER + "struct Sum {};\nint sum_of(int);\n", "src/ir/model.h": HEADER + "struct Model {};\n"}
        of = "declares and does not include it"
        for text, found in (
            ("int all() { return sum_of(1); }\n", [f"src/ir/model.cc:1: uses what ir/sum.h (sum_of) {of}"]),
            ("int all();\nSum none;\n", [f"src/ir/model.cc:2: uses what ir/sum.h (Sum) {of}"]),
            ('#include "ir/sum.h"\nint all() { return sum_of(1); }\n', []),
            ("struct Model {\n  int sum_of(int);\n};\nint all() { return sum_of(1); }  // Sum\n", []),
            ("bool all(bool a) { return a && sum_of(1); }\n", [f"src/ir/model.cc:1: uses what ir/sum.h (sum_of) {of}"]),
            ("std::regex all;\n", [f"src/ir/model.cc:1: uses what <regex> {of}"]),
        ):
            self.assertEqual(violations(IR | made | {"src/ir/model.cc": text}), found)

    def test_own_header_of_a_source(self):
        text = '#include "base/error.h"\n#include "ir/model.h"\n'
        rule = "behind a source's own header comes an empty line, and other headers of ours behind those of the system"
        made = IR | {"src/ir/model.h": HEADER}
        self.assertEqual(violations(made | {"src/ir/model.cc": text}), [f"src/ir/model.cc:2: {rule}"])
        self.assertEqual(violations(made | {"src/ir/model.cc": '#include "ir/model.h"\n\n#include "base/error.h"\n'}), [])

    def test_header_that_includes_itself(self):
        own = IR | {"src/ir/model.h": HEADER + '#include "ir/model.h"\n'}
        self.assertEqual(violations(own), ["src/ir/model.h:3: includes itself"])

    def test_page_of_rooms(self):
        rooms = IR | {"src/ir/low/low.h": HEADER, "docs/rooms.md": "| `ir` | all |\n"}
        self.assertEqual(violations(rooms), ["docs/rooms.md:1: has no row for ir/low"])
        rooms["docs/rooms.md"] += "| `ir/low` | some |\n"
        self.assertEqual(violations(rooms), [])

    def test_circles_of_rooms(self):
        top, low, mid = "src/ir/top/top.h", "src/ir/low/low.h", "src/ir/mid/mid.h"
        chain = {top: HEADER + '#include "ir/mid/mid.h"\n', mid: HEADER + '#include "ir/low/low.h"\n'}
        self.assertEqual(violations(IR | chain | {low: HEADER}), [])
        circle = IR | chain | {low: HEADER + '#include "ir/top/top.h"\n'}
        self.assertEqual(violations(circle), [
            f"{path}:3: room {room} of ir includes {other}, which includes it over itself or others"
            for path, room, other in ((low, "low", "top"), (mid, "mid", "low"), (top, "top", "mid"))
        ])
        # Of a room within a room, and of tests, nothing is asked.
        inner = {"src/ir/top/in/in.h": HEADER + '#include "ir/top/top.h"\n', top: HEADER + '#include "ir/top/in/in.h"\n'}
        self.assertEqual(violations(IR | inner), [])
        testing = {"src/ir/low/low_testing.h": HEADER + '#include "ir/top/top.h"\n'}
        self.assertEqual(violations(IR | chain | {low: HEADER} | testing), [])

    def test_functions_without_linkage(self):
        one = "namespace {\n\nint all() {\n  return 1;\n}\n\n}  // namespace\n"
        rule = "src/ir/model.cc has a function all without linkage, too"
        both = IR | {"src/ir/model.cc": one, "src/ir/part.cc": one}
        self.assertEqual(violations(both), [f"src/ir/part.cc:3: {rule}"])
        self.assertEqual(violations(both | {"src/ir/part.cc": one.replace("all", "some")}), [])
        self.assertEqual(violations(IR | {"src/ir/model.cc": one, "src/ir/model_test.cc": one}), [])

    def test_names_all_that_fast_builds_compile_in_advance(self):
        root = pathlib.Path(check_layers.__file__).resolve().parent.parent
        cmake = (root / "cmake/ArmillaModule.cmake").read_text(encoding="utf-8")
        lists = re.findall(r"HEADERS((?:\s+<[\w/.]+>)+)", cmake)
        self.assertEqual(len(lists), 2)
        headers = {name for names in lists for name in re.findall(r"<([\w/.]+)>", names)}
        # Only tests may include these (RESERVED_HEADERS), and each of them does.
        self.assertEqual(headers - {"gtest/gtest.h", "gmock/gmock.h"}, set(check_layers.PRECOMPILED))

    def test_tests_that_nobody_names(self):
        self.assertEqual(violations(IR | {"src/ir/model_test.cc": "", "src/ir/rooms/part_test.cc": ""}),
                         ["src/ir/rooms/part_test.cc:1: src/ir/CMakeLists.txt does not name it, so that it is never run"])

    def test_upwards(self):
        self.assertEqual(
            violations(IR | {"src/ir/model.cc": '\n#include "sim/simulate.h"\n'}),
            ["src/ir/model.cc:2: ir (level 1) may not use sim (level 3); it may use base"],
        )

    def test_sideways(self):
        files = {
            "src/cost/CMakeLists.txt": "armilla_module(cost SOURCES cost.cc USES base ir)\n",
            "src/cost/cost.cc": '#  include <read/read.h>\n',
        }
        self.assertEqual(
            violations(files),
            ["src/cost/cost.cc:1: cost (level 2) may not use read (level 2); it may use base, ir"],
        )

    def test_not_listed_under_uses(self):
        files = {
            "src/sim/CMakeLists.txt": "armilla_module(sim SOURCES sim.cc USES base)\n",
            "src/sim/sim.cc": '#include "ir/graph.h"\n',
        }
        self.assertEqual(
            violations(files),
            ["src/sim/sim.cc:1: sim includes ir, but src/sim/CMakeLists.txt does not list it under USES"],
        )

    def test_without_module(self):
        self.assertEqual(
            violations(IR | {"src/ir/model.cc": '#include "model.h"\n'}),
            ['src/ir/model.cc:1: "model.h" is written with its module: "module/file.h"'],
        )

    def test_tests_may_use_more(self):
        files = {
            "src/ir/CMakeLists.txt": "armilla_module(ir SOURCES model.cc USES base)\n"
            "armilla_module_tests(ir SOURCES model_test.cc helper.cc USES read)\n",
            "src/ir/model_test.cc": '#include <gtest/gtest.h>\n#include "read/read.h"\n',
            "src/ir/helper.cc": '#include "read/read.h"\n',
        }
        self.assertEqual(violations(files), [])
        files["src/ir/model_test.cc"] = '#include "write/write.h"\n'
        self.assertEqual(violations(files), ["src/ir/model_test.cc:1: " + IR_TO_WRITE])
        files["src/ir/model_test.cc"] = ""
        files["src/ir/model.cc"] = '#include "read/read.h"\n'
        self.assertEqual(violations(files), ["src/ir/model.cc:1: " + IR_TO_READ])

    def test_reserved_headers(self):
        self.assertEqual(
            violations(IR | {"src/ir/model.cc": "#include <gtest/gtest.h>\n#include <mpi.h>\n"}),
            ["src/ir/model.cc:1: GoogleTest is for tests only", "src/ir/model.cc:2: only study knows MPI"],
        )


class CMake(unittest.TestCase):
    def test_uses(self):
        self.assertEqual(
            violations({
                "src/ir/CMakeLists.txt": "# armilla_module(ir USES cli)\n"
                "armilla_module(ir\n  SOURCES a.cc\n  USES base lower bse)\n"
            }),
            ["src/ir/CMakeLists.txt:4: ir (level 1) may not use lower (level 2); it may use base",
             "src/ir/CMakeLists.txt:4: no module is called 'bse'"],
        )

    def test_target_named_directly(self):
        self.assertEqual(
            violations({
                "src/ir/CMakeLists.txt": "armilla_module(ir)\n"
                "target_link_libraries(armilla_ir PUBLIC armilla_base armilla::sim)\n"
            }),
            ["src/ir/CMakeLists.txt:2: ir (level 1) may not use sim (level 3); it may use base"],
        )

    def test_names_another_module(self):
        self.assertEqual(
            violations({"src/ir/CMakeLists.txt": "armilla_module(base)\n"}),
            ["src/ir/CMakeLists.txt:1: armilla_module must name the folder's own module, 'ir'"],
        )

    def test_missing(self):
        self.assertEqual(violations({"src/ir/a.txt": ""}), ["src/ir/CMakeLists.txt:1: missing: every module has one"])

    def test_unknown_folder(self):
        self.assertEqual(violations({"src/misc/a.h": HEADER}), ["src/misc:1: module 'misc' is not in the layer table"])


class Doors(unittest.TestCase):
    READ = {"src/read/CMakeLists.txt": "armilla_module(read SOURCES read.cc USES base ir)\n"}

    def test_room_of_another_module(self):
        files = {
            "src/study/CMakeLists.txt": "armilla_module(study SOURCES run.cc USES base ir read)\n",
            "src/study/run.cc": '#include "read/read.h"\n#include "read/onnx/wire.h"\n#include "ir/formats/chakra.h"\n',
        }
        self.assertEqual(
            violations(files),
            ["src/study/run.cc:2: other modules include read by the door only: headers that lie in src/read/ itself"],
        )

    def test_rooms_of_the_same_module(self):
        self.assertEqual(violations(self.READ | {"src/read/onnx/wire.cc": '#include "read/encoding/gzip.h"\n'}), [])

    def test_door_that_shows_a_room(self):
        self.assertEqual(
            violations(self.READ | {"src/read/read.h": HEADER + '#include "read/onnx/wire.h"\n'}),
            ["src/read/read.h:3: a door includes no header of a room"],
        )


class NamedSources(unittest.TestCase):
    def test_missing(self):
        files = IR | {
            "src/ir/model.cc": '// As ir/plan.h and ir/model.cc; other/thing.h, a/ir/none.h\n#include "ir/gone.h"\n',
            "docs/page.md": "see `src/ir/gone.h`\n",
        }
        self.assertEqual(
            violations(files),
            ["docs/page.md:1: there is no src/ir/gone.h", "src/ir/model.cc:1: there is no src/ir/plan.h"],
        )


class TreePages(unittest.TestCase):
    TREE = IR | {
        "src/ir/model.cc": "int count_layers();  // not sum_layers\n",
        "src/ir/derived/metrics.h": HEADER + "struct HeadLine {};\n",
    }
    ROW = "| 1 | `ir` | nouns | `derived` | base |\n"

    def test_what_is_there(self):
        page = "`derived/metrics.h` has `HeadLine`, `ir/derived` `count_layers()`; `<verb>.cc`, `build/x`.\n"
        code = "```cpp\ncount_layers(kMyLayers);  // any English word\n```\n"
        self.assertEqual(violations(self.TREE | {"docs/architecture.md": self.ROW + page + code}), [])

    def test_what_is_gone(self):
        page = "`metrics.cc` has `Headline` and `derived/metric.h`\n"
        code = "```cpp\nsum_layers(HeadRow());\n```\n"
        self.assertEqual(
            violations(self.TREE | {"docs/extending.md": page + code}),
            [f"docs/extending.md:1: there is no {name}"
             for name in ("Headline", "derived/metric.h", "metrics.cc")]
            + [f"docs/extending.md:3: there is no {name}" for name in ("HeadRow", "sum_layers")],
        )

    def test_room_left_out(self):
        self.assertEqual(
            violations(self.TREE | {"docs/architecture.md": "| 1 | `ir` | nouns | | base |\n"}),
            ["docs/architecture.md:1: ir has a room derived, too"],
        )


class Form(unittest.TestCase):
    def test_sources_of_a_folder(self):
        many = IR | {f"src/ir/derived/{letter}.cc": "" for letter in "abcdefghijklmno"}
        self.assertEqual(violations(many | {"src/ir/derived/model_test.cc": ""}), [])
        self.assertEqual(
            violations(many | {"src/ir/derived/p.cc": ""}),
            ["src/ir/derived:1: 16 sources in one folder; more than 15 want rooms"],
        )

    def test_header(self):
        self.assertEqual(violations(IR | {"src/ir/a.h": HEADER}), [])
        self.assertEqual(
            violations(IR | {"src/ir/a.h": "\nnamespace a {}\nusing namespace a;\n"}),
            ["src/ir/a.h:1: a header has #pragma once",
             "src/ir/a.h:1: a header opens with a comment that says what it is",
             "src/ir/a.h:3: no 'using namespace' in a header"],
        )

    def test_length(self):
        self.assertEqual(violations(IR | {"src/ir/a.cc": "\n" * 800}), [])
        self.assertEqual(
            violations(IR | {"src/ir/a.cc": "\n" * 801}),
            ["src/ir/a.cc:801: 801 lines; no source has more than 800"],
        )


class Installed(unittest.TestCase):
    def files(self, model):
        return IR | {"src/armilla.h": HEADER + '#include "ir/model.h"\n', "src/ir/model.h": HEADER + model,
                     "src/ir/new.h": HEADER}

    def of(self, model):
        return [text for text in violations(self.files(model)) if "is not installed" not in text]

    def test_what_public_headers_include(self):
        self.assertEqual(self.of(""), [])
        self.assertEqual(
            self.of('#include <vector>\n#include "ir/new.h"\n'),
            ["src/ir/model.h:4: installs ir/new.h, too: declare what is used of it, or name it in INSTALLED_BESIDE"],
        )

    def test_what_no_header_includes_any_more(self):
        beside = sorted(check_layers.INSTALLED_BESIDE)
        self.assertEqual(
            [text for text in violations(self.files("")) if "is not installed" in text],
            [f"src/armilla.h:1: {header} is not installed: INSTALLED_BESIDE names it" for header in beside],
        )


class Doors(unittest.TestCase):
    def of(self, outside):
        files = {"src/read/CMakeLists.txt": "armilla_module(read SOURCES a.cc USES base ir)\n",
                 "src/study/CMakeLists.txt": "armilla_module(study SOURCES b.cc USES base ir read)\n",
                 "src/read/part.h": HEADER, "src/read/door.h": HEADER + '#include "read/part.h"\n',
                 "src/read/a.cc": '#include "read/door.h"\n', "src/study/b.cc": outside}
        return violations(files)

    def test_who_goes_in(self):
        rule = ":1: only read includes it: it belongs in a room"
        self.assertEqual(self.of('#include "read/door.h"\n'), [])
        self.assertEqual(self.of('#include "read/part.h"\n'), ["src/read/door.h" + rule])
        self.assertEqual(self.of(""), ["src/read/door.h" + rule, "src/read/part.h" + rule])


class Program(unittest.TestCase):
    def run_on(self, folder):
        command = [sys.executable, check_layers.__file__, folder]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_exit_codes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.run_on(folder).returncode, 2)
            (pathlib.Path(folder) / "src/base").mkdir(parents=True)
            (pathlib.Path(folder) / "src/base/CMakeLists.txt").write_text("armilla_module(base)\n")
            self.assertEqual(self.run_on(folder).returncode, 0)
            (pathlib.Path(folder) / "src/base/a.cc").write_text('#include "ir/model.h"\n')
            result = self.run_on(folder)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(
                result.stdout,
                "src/base/a.cc:1: base (level 0) may not use ir (level 1); it may use nothing\n",
            )


if __name__ == "__main__":
    unittest.main()
