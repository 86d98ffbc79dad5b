// Kernels to functions: in this process, else from the cache on disk, else by the compiler.
#include "engine/codegen/cpu/kernel_library.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/files/files.h"
#include "base/text/text.h"
#include "engine/codegen/cpu/build_folder.h"
#include "engine/codegen/cpu/print_cpu.h"

namespace assay::engine {
namespace {

double seconds_since(int64_t start_ns) {
  return static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
}

}  // namespace

bool KernelLibrary::load_from_cache(const Job& job) {
  if (!cache_) return false;
  const auto path = cache_->find(job.key);
  stats_.note_refusal(cache_->take_refusal());
  if (!path) return false;
  Result<SharedObject> object = SharedObject::open(*path);
  if (!object) {
    cache_->remove(job.key);
    return false;
  }
  loaded_.insert_or_assign(job.digest, *std::move(object));
  return true;
}

// May run on any thread.
Result<SharedObject> KernelLibrary::compile(Job& job) const {
  ASSAY_TRY(const BuildFolder folder, BuildFolder::make());
  ASSAY_TRY(const auto path, compile_shared(compiler_, job.key.source, folder.path()));
  auto object = SharedObject::open(path);
  if (!object) return with_context(compiler_.command.string(), object.error());
  if (cache_) {
    ASSAY_TRY(job.built, read_file(path));
  }
  return object;
}

// Each thread outlives the compilers that it starts, as Spawner asks for.
void KernelLibrary::compile_side_by_side(std::vector<Job>& jobs) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;  // of gave_up_
  const auto work = [&] {
    for (size_t job = next++; job < jobs.size(); job = next++) {
      {
        const std::lock_guard lock(mutex);
        if (gave_up_) jobs[job].object = std::unexpected(*gave_up_);
      }
      if (jobs[job].object) continue;
      const int64_t start_ns = monotonic_now_ns();
      jobs[job].object = compile(jobs[job]);
      const std::lock_guard lock(mutex);
      const bool hung = !*jobs[job].object && seconds_since(start_ns) >= compiler_.timeout_s;
      if (hung && !gave_up_) gave_up_ = jobs[job].object->error();
    }
  };
  std::vector<std::jthread> others;
  try {
    for (size_t i = 1; i < std::min(jobs_, jobs.size()); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // There is no room for a further thread: those that started compile everything.
  }
  work();
}

void KernelLibrary::save(const Job& job) {
  if (!cache_) return;
  if (const auto added = cache_->add(job.key, job.built); !added) {
    ++stats_.unsaved;
    stats_.unsaved_reason = added.error().message;
  }
}

// An object that doesn't load is never saved.
Status KernelLibrary::compile_all(std::vector<Job>& jobs) {
  const int64_t start_ns = monotonic_now_ns();
  compile_side_by_side(jobs);
  stats_.compile_seconds += seconds_since(start_ns);
  if (gave_up_) stats_.gave_up = gave_up_->message;
  Status status;
  for (Job& job : jobs) {
    if (*job.object) {
      ++stats_.compiled;
      save(job);
      loaded_.insert_or_assign(job.digest, **std::move(job.object));
    } else if (status) {
      status = std::unexpected(job.object->error());
    }
  }
  return status;
}

Result<std::vector<KernelFunctions>> KernelLibrary::load(std::span<const Kernel> kernels) {
  std::vector<std::string> sources;
  for (const Kernel& kernel : kernels) sources.push_back(print_cpu(kernel));
  return load_sources(sources);
}

Result<std::vector<KernelFunctions>> KernelLibrary::load_sources(
    std::span<const std::string> sources) {
  const int64_t start_ns = monotonic_now_ns();
  const std::string identity = compiler_.identity();
  const std::string flags = join(compiler_.flags, " ");
  std::vector<std::string> digests;
  std::vector<Job> missing;
  for (const std::string& source : sources) {
    Job job{.key = {source, "cpu", identity, flags}};
    job.digest = job.key.digest();
    digests.push_back(job.digest);
    if (loaded_.contains(job.digest) || std::ranges::any_of(missing, [&](const Job& other) {
          return other.digest == job.digest;
        })) {
      ++stats_.reused;
    } else if (load_from_cache(job)) {
      ++stats_.loaded;
    } else {
      missing.push_back(std::move(job));
    }
  }
  stats_.load_seconds += seconds_since(start_ns);
  if (!missing.empty()) ASSAY_CHECK(compile_all(missing));
  std::vector<KernelFunctions> functions;
  for (const std::string& digest : digests) functions.push_back(loaded_.at(digest).functions());
  return functions;
}

}  // namespace assay::engine
