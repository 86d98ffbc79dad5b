// Loading of compiled kernels, after a check for files that would crash the loader.
#include "engine/codegen/cpu/shared_object.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "base/files/mapped_file.h"

namespace assay::engine {
namespace {

template <typename T>
bool read_at(std::span<const std::byte> bytes, uint64_t offset, T& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

bool inside(std::span<const std::byte> bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

template <typename Function>
void look_up(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
}

}  // namespace

Status check_elf(std::span<const std::byte> bytes) {
  ElfW(Ehdr) header;
  if (!read_at(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return environment_error("expected a shared object, found {} bytes of something else",
                             bytes.size());
  }
  const int wanted_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != wanted_class || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(ElfW(Phdr))) {
    return environment_error("expected a shared object, found another kind of ELF file");
  }
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  bool whole = inside(bytes, header.e_shoff, sections);
  for (uint64_t i = 0; whole && i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    whole = read_at(bytes, header.e_phoff + i * sizeof segment, segment) &&
            inside(bytes, segment.p_offset, segment.p_filesz);
  }
  if (!whole) return environment_error("expected a whole shared object, found a cut one");
  return {};
}

Result<SharedObject> SharedObject::open(const std::filesystem::path& path) {
  {
    ASSAY_TRY(const MappedFile file, MappedFile::open(path));
    if (const Status status = check_elf(file.bytes()); !status) {
      return with_context(path.string(), status.error());
    }
  }
  SharedObject object;
  object.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object.handle_) {
    const char* reason = ::dlerror();
    return environment_error("{}: expected a shared object that loads, found: {}", path.string(),
                             reason ? reason : "no reason");
  }
  KernelFunctions& functions = object.functions_;
  look_up(object.handle_, "assay_run", functions.run);
  look_up(object.handle_, "assay_prologue", functions.prologue);
  look_up(object.handle_, "assay_epilogue", functions.epilogue);
  if (!functions.run && !functions.epilogue) {
    return environment_error("{}: expected the function assay_run or assay_epilogue, found neither",
                             path.string());
  }
  return object;
}

SharedObject::~SharedObject() {
  if (handle_) ::dlclose(handle_);
}

}  // namespace assay::engine
