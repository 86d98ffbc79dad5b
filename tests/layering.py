"""Holds src/README.md's tables of modules and of their folders against the CMake targets and the includes, and finds
cycles, also among the modules of the torch worker.

usage: layering.py SOURCE_ROOT
"""

import ast
import pathlib
import re
import sys

ALL = "all"


def read_table(readme):
    """Module -> what it may use, from the rows `| `name` | purpose | `dep` `dep` |`."""
    table = {}
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = re.fullmatch(r"`(\w+)`", cells[0])
        if name and len(cells) == 3:
            table[name[1]] = ALL if cells[2] == ALL else set(re.findall(r"`(\w+)`", cells[2]))
    return table


def read_rooms(readme):
    """Module -> its folder -> the folders of the module that it may include, from the table's rows. `.` stands for the
    files beside the folders."""
    rooms = {}
    for line in readme.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        name = re.fullmatch(r"`(\w+)/(\w+)`", cells[0])
        if name and len(cells) == 3:
            rooms.setdefault(name[1], {})[name[2]] = set(re.findall(r"`(\w+|\.)`", cells[2]))
    return rooms


def without_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def read_targets(src):
    """Module -> (folder, modules it links), from assay_module() and target_link_libraries()."""
    targets = {}
    for path in sorted(src.rglob("CMakeLists.txt")):
        text = without_comments(path.read_text())
        for arguments in re.findall(r"assay_module\(([^)]*)\)", text):
            words = arguments.split()
            keyword, deps = None, set()
            for word in words[1:]:
                if word in ("DEPS", "LIBS", "TEST_LIBS", "RECURSE", "DIR"):
                    keyword = word
                elif keyword == "DEPS":
                    deps.add(word)
            targets[words[0]] = (path.parent, deps)
        for name, arguments in re.findall(r"target_link_libraries\(assay_(\w+)([^)]*)\)", text):
            if name in targets:
                targets[name][1].update(linked_modules(arguments))
        if "add_executable(assay " in text:  # the program is not a module, but a row of the table
            deps = {word for group in re.findall(r"set\(deps ([^)]*)\)", text) for word in group.split()}
            targets["cli"] = (path.parent, deps | linked_modules(text))
    return targets


def linked_modules(text):
    linked = set(re.findall(r"\bassay_(\w+)", text))
    return linked - {"options", "module", "fuzz", "gomp"}


def module_of(path, folders):
    """The module whose folder is the nearest above the path."""
    for parent in path.parents:
        if parent in folders:
            return folders[parent]
    return None


def find_cycle(graph):
    """A list of modules that use one another in a ring, or nothing."""
    done, trail = set(), []

    def visit(module):
        if module in trail:
            return trail[trail.index(module) :] + [module]
        if module in done:
            return None
        trail.append(module)
        for used in sorted(graph.get(module, ())):
            cycle = visit(used)
            if cycle:
                return cycle
        trail.pop()
        done.add(module)
        return None

    for module in sorted(graph):
        cycle = visit(module)
        if cycle:
            return cycle
    return None


def check_targets(table, targets):
    for name, (_, deps) in sorted(targets.items()):
        if name not in table:
            yield f"src/README.md: expected a row for the CMake target assay_{name}, found none"
            continue
        allowed = table[name]
        for used in sorted(deps - targets.keys()):
            yield f"assay_{name}: expected to link modules, found assay_{used}, which is none"
        for used in sorted(set() if allowed == ALL else deps - allowed):
            yield f"assay_{name}: links assay_{used}, which src/README.md doesn't let it use"
    for name, allowed in sorted(table.items()):
        if name not in targets:
            yield f"src/README.md: lists {name}, which is no CMake target"
        for used in sorted(set() if allowed == ALL else allowed - table.keys()):
            yield f"src/README.md: lets {name} use {used}, which it doesn't list"


def check_includes(src, table, targets):
    folders = {folder: name for name, (folder, _) in targets.items()}
    for path in sorted(src.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        own = module_of(path, folders)
        where = path.relative_to(src.parent)
        if own is None:
            yield f"{where}: belongs to no module"
            continue
        for line, include in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', include)
            if not match:
                continue
            used = module_of(src / match[1], folders) if "/" in match[1] else own
            if used is None and not (src / match[1]).exists():
                continue  # generated
            if used != own and used not in targets[own][1]:
                yield f'{where}:{line}: {own} includes "{match[1]}" of {used}, which assay_{own} doesn\'t link'


def check_rooms(src, rooms, targets):
    """Folders of one module include what README.md lets them, and never what stands above them. Unit tests may: many a
    part shows what it does in what the module makes of a whole input."""
    for module, allowed in sorted(rooms.items()):
        if module not in targets:
            yield f"src/README.md: lists folders of {module}, which is no CMake target"
            continue
        top = targets[module][0]
        present = {path.relative_to(top).parts[0] for path in top.glob("*/**/*.cc")}
        for room in sorted(present - allowed.keys()):
            yield f"src/README.md: expected a row for the folder {module}/{room}, found none"
        for room in sorted(allowed.keys() - present):
            yield f"src/README.md: lists {module}/{room}, which holds no source"
        for room, used in sorted(allowed.items()):
            for other in sorted(used - allowed.keys() - {"."}):
                yield f"src/README.md: lets {module}/{room} include {other}, which it doesn't list"
        for path in sorted(top.glob("*/**/*")):
            if path.suffix not in (".h", ".cc") or path.stem.endswith("_test"):
                continue
            room = path.relative_to(top).parts[0]
            for line, include in enumerate(path.read_text().splitlines(), 1):
                match = re.match(r'\s*#\s*include\s+"([^"]+)"', include)
                if not match or not (src / match[1]).is_relative_to(top):
                    continue
                parts = (src / match[1]).relative_to(top).parts
                other = parts[0] if len(parts) > 1 else "."
                if other != room and other not in allowed.get(room, ()):
                    where = path.relative_to(src.parent)
                    yield f'{where}:{line}: {module}/{room} includes "{match[1]}", which src/README.md doesn\'t let it'


def read_imports(package):
    """Module of a Python package -> the modules of the package that it imports, those for types alone too."""
    imports = {}
    for path in sorted(package.glob("*.py")):
        used = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == package.name:
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package.name + "."):
                used.add(node.module.split(".")[1])
        imports[path.stem] = used
    return imports


def main():
    src = pathlib.Path(sys.argv[1]).resolve() / "src"
    table = read_table(src / "README.md")
    rooms = read_rooms(src / "README.md")
    targets = read_targets(src)
    imports = read_imports(src.parent / "workers" / "torch" / "assay_torch")
    problems = []
    if len(table) < 5 or len(targets) < 5 or not rooms or len(imports) < 5:
        found = f"{len(table)} rows, {len(targets)} targets, {len(rooms)} modules with folders, {len(imports)} of Python"
        problems.append(f"read {found}: the parser is at fault")
    problems += check_targets(table, targets)
    problems += check_includes(src, table, targets)
    problems += check_rooms(src, rooms, targets)
    for what, graph in (
        ("src/README.md", {name: used for name, used in table.items() if used != ALL}),
        ("CMake", {name: deps for name, (_, deps) in targets.items()}),
        *((f"src/README.md: {module}", allowed) for module, allowed in sorted(rooms.items())),
        ("workers/torch", imports),
    ):
        cycle = find_cycle(graph)
        if cycle:
            problems.append(f"{what}: a cycle: {' -> '.join(cycle)}")
    print("\n".join(problems) or f"{len(targets)} modules, no cycle")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
