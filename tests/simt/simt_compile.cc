// From CUDA C++ to a shared object: the preprocessor, inline PTX as calls, the compiler.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "simt.h"

namespace {

// Ahead of a shared object's bytes in an image.
struct Header {
  char magic[8];
  uint64_t bytes;
};
constexpr char kMagic[9] = "SIMT 1 \n";

// A file of this process alone, which goes with it.
struct MemoryFile {
  explicit MemoryFile(const std::string& text = "") : descriptor(memfd_create("simt", 0)) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
  }
  ~MemoryFile() { close(descriptor); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // For this process' children too.
  std::string path() const {
    return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
  }
  std::string text() const {
    std::string all;
    char part[65536];
    ssize_t count = 0;
    while ((count = pread(descriptor, part, sizeof part, static_cast<off_t>(all.size()))) > 0) {
      all.append(part, static_cast<size_t>(count));
    }
    return all;
  }
  int descriptor;
};

bool run_compiler(const std::string& arguments, const MemoryFile& log) {
  const std::string command = "c++ -w -std=c++20 -x c++ " + arguments + " 2>" + log.path();
  return std::system(command.c_str()) == 0;
}

bool is_name(char c) {
  return isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Behind an opening brace and declarations of registers, where there are any.
std::string opcode_of(std::string code) {
  code.erase(0, code.find_first_not_of(" {"));
  while (code.starts_with(".reg")) {
    code.erase(0, code.find(';') + 1);
    code.erase(0, code.find_first_not_of(' '));
  }
  return code.substr(0, code.find_first_of(" ;"));
}

// One `asm [volatile] ("opcode ..." : "=r"(out), ... : "r"(in), ... : ...)` from its first letter:
// becomes `ptx_opcode(out, ..., in, ...)`. Returns where it ends.
size_t rewrite_asm(const std::string& text, size_t at, std::string& out) {
  at = text.find('(', at) + 1;
  std::string code, operands;
  int section = 0, depth = 1;
  bool in_string = false;
  for (; at < text.size() && depth > 0; ++at) {
    const char c = text[at];
    if (depth == 1 && c == '"') {
      in_string = !in_string;
    } else if (depth == 1 && in_string) {
      if (section == 0) code += c;
    } else if (depth == 1 && c == ':') {
      ++section;
    } else {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (depth == 0 || section == 0 || section > 2) continue;
      if (c == '(' && depth == 2 && !operands.empty()) operands += ", ";
      if (depth >= 2 || c == ')') operands += c;
    }
  }
  out += "ptx_";
  for (const char c : opcode_of(code)) out += is_name(c) ? c : '_';
  out += "(" + operands + ")";
  return at;
}

std::string without_asm(const std::string& text) {
  std::string out;
  size_t from = 0;
  for (size_t at = text.find("asm"); at != std::string::npos; at = text.find("asm", at)) {
    const bool word = (at == 0 || !is_name(text[at - 1])) && !is_name(text[at + 3]);
    if (!word) {
      at += 3;
      continue;
    }
    out.append(text, from, at - from);
    at = from = rewrite_asm(text, at, out);
  }
  return out.append(text, from);
}

// Gives dynamic shared memory its largest size: a launch may give as much as a block may ever have.
std::string with_dynamic_memory(std::string text) {
  static const std::string kExtern = "extern __shared__ ";
  for (size_t at = 0; (at = text.find(kExtern, at)) != std::string::npos;) {
    text.erase(at, strlen("extern "));
    const size_t type = at + strlen("__shared__ ");
    const std::string name = text.substr(type, text.find(' ', type) - type);
    text.insert(text.find("[]", at) + 1, "kSimtDynamicBytes / sizeof(" + name + ")");
  }
  return text;
}

// Blocks along y of an entry's cluster.
std::string cluster_of(const std::string& entry) {
  static const std::string kCluster = "__cluster_dims__(1, ";
  const size_t at = entry.find(kCluster);
  if (at == std::string::npos) return "1";
  const size_t count = at + kCluster.size();
  return entry.substr(count, entry.find(',', count) - count);
}

// Ahead of each `extern "C" ... void NAME(const Args args)` how it is found. The memory of its
// argument may be less aligned than Args.
std::string with_entries(const std::string& text) {
  static const std::string kEntry = "extern \"C\"", kArguments = "(const Args args)";
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(kEntry); at != std::string::npos; at = text.find(kEntry, at + 1)) {
    const size_t end = text.find(kArguments, at);
    if (end == std::string::npos) break;
    size_t begin = end;
    while (is_name(text[begin - 1])) --begin;
    const std::string name = text.substr(begin, end - begin);
    out.append(text, from, at - from);
    out +=
        kEntry + " void " + name + kArguments + ";\n" + kEntry + " SimtEntry simt_entry_" + name +
        ";\nSimtEntry simt_entry_" + name +
        " = {[](const void* a) { Args args; memcpy(&args, a, sizeof args); simt_begin_thread(); " +
        name +
        "(args); }, sizeof(Args), &simt_state, __start_simt_shared, "
        "__stop_simt_shared, " +
        cluster_of(text.substr(at, begin - at)) + "};\n";
    from = at;
  }
  return out.append(text, from);
}

char* copied(const std::string& text) {
  char* bytes = static_cast<char*>(malloc(text.size() + 1));
  if (bytes != nullptr) memcpy(bytes, text.c_str(), text.size() + 1);
  return bytes;
}

}  // namespace

int simt_compile(const char* source, char** image, size_t* bytes, char** log) {
  const MemoryFile kernels(source), preprocessed, object, words;
  // Functions outside of structs are static.
  bool built = run_compiler(
      "-E -P -DMETHOD=inline -D__grid_constant__= -o " + preprocessed.path() + " " + kernels.path(),
      words);
  if (built) {
    const MemoryFile text("#include \"" SIMT_SHIM "\"\n" +
                          with_entries(with_dynamic_memory(without_asm(preprocessed.text()))));
    built = run_compiler("-O1 -march=native -ffp-contract=fast -fno-math-errno -fPIC -shared -o " +
                             object.path() + " " + text.path(),
                         words);
  }
  *log = copied(words.text());
  if (!built) return 1;
  const std::string code = object.text();
  Header header{{}, code.size()};
  memcpy(header.magic, kMagic, sizeof header.magic);
  *bytes = sizeof header + code.size();
  *image = static_cast<char*>(malloc(*bytes));
  if (*image == nullptr) return 1;
  memcpy(*image, &header, sizeof header);
  memcpy(*image + sizeof header, code.data(), code.size());
  return 0;
}

void* simt_load(const void* image) {
  Header header;
  memcpy(&header, image, sizeof header);
  if (memcmp(header.magic, kMagic, sizeof header.magic) != 0) return nullptr;
  // Under a name that no other module ever had: the loader takes one for the other by it.
  static int loaded = 0;
  const MemoryFile file(std::string(static_cast<const char*>(image) + sizeof header, header.bytes));
  const std::string name = (std::filesystem::temp_directory_path() /
                            ("simt-" + std::to_string(getpid()) + "-" + std::to_string(++loaded)))
                               .string();
  if (symlink(file.path().c_str(), name.c_str()) != 0) return nullptr;
  void* module = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(name.c_str());
  return module;
}

void simt_unload(void* module) {
  if (module != nullptr) dlclose(module);
}

void* simt_find(void* module, const char* name) {
  return module == nullptr ? nullptr : dlsym(module, (std::string("simt_entry_") + name).c_str());
}
