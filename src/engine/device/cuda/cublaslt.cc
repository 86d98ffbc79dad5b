// Our matrices are row by row, the library's column by column: it is asked for out transposed,
// weight times x transposed.
#include "engine/device/cuda/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <random>
#include <type_traits>

#include "engine/codegen/cuda/cuda_library.h"

namespace assay::engine::cuda {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{32} << 20;  // what NVIDIA asks for on Hopper
constexpr uint32_t kAlignmentBytes = 64;                  // of values in an arena
constexpr int kAnswers = 8;                               // of the library, to choose from

size_t element_bytes(const LtShape& shape) {
  return shape.fp8 ? 1 : dtype_size_bytes(shape.dtype);
}

LtDataType data_type(DType dtype) {
  return dtype == DType::kF32 ? kRealF32 : dtype == DType::kF16 ? kRealF16 : kRealBF16;
}

std::string_view bytes_of(const LtAlgorithm& algorithm) {
  return {reinterpret_cast<const char*>(algorithm.data), sizeof algorithm.data};
}

std::string text_of(const LtShape& shape) {
  return fmt::format("{} {} {} x {} x {} pitches {} {} {} adds {} bias {}",
                     !shape.fp8        ? dtype_name(shape.dtype)
                     : shape.fast_sums ? "e4m3 fast"
                                       : "e4m3",
                     dtype_name(shape.out_dtype), shape.rows, shape.outputs, shape.inputs,
                     shape.x_pitch, shape.weight_pitch, shape.out_pitch, shape.adds, shape.bias);
}

std::optional<LtContest> contest_in(const std::string& text) {
  LtContest contest;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, contest.fp8_us);
  if (first.ec != std::errc() || first.ptr == end) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, contest.wide_us);
  return second.ec == std::errc() && second.ptr == end ? std::optional(contest) : std::nullopt;
}

// Numbers of at most 2 of both signs, as elements of each type. Equal ones take less power, so that
// another algorithm would seem the fastest.
std::vector<std::byte> random_numbers() {
  constexpr size_t kBytes = size_t{1} << 20;
  constexpr uint32_t kSame = 0x3c003c00, kRandom = 0x83bf83bf;
  std::vector<uint32_t> words(kBytes / sizeof(uint32_t));
  std::minstd_rand random;
  for (uint32_t& word : words) word = kSame ^ (static_cast<uint32_t>(random() * 3) & kRandom);
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

void* pointer(Address address) {
  return pointer_to(address);
}

}  // namespace

CublasLt::Plan::~Plan() {
  if (wishes != nullptr) api.wishes_destroy(wishes);
  for (const LtMatrix matrix : {weight, x, out}) {
    if (matrix != nullptr) api.matrix_destroy(matrix);
  }
  if (product != nullptr) api.product_destroy(product);
}

::assay::Status CublasLt::check(LtStatus status, std::string_view call) const {
  if (status == 0) return {};
  return environment_error("{}: {}", call, api_.status_name(status));
}

::assay::Status CublasLt::look_up(void* library) {
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
#define ASSAY_CUBLASLT_FIND(member, symbol, arguments) \
  if (!find(#symbol, api_.member))                     \
    return environment_error("{}: expected the function {}, found none", path_, #symbol);
  ASSAY_CUBLASLT(ASSAY_CUBLASLT_FIND)
#undef ASSAY_CUBLASLT_FIND
  if (!find("cublasLtGetVersion", api_.version) ||
      !find("cublasLtGetStatusName", api_.status_name)) {
    return environment_error("{}: expected cuBLASLt's functions, found some missing", path_);
  }
  return {};
}

Result<std::unique_ptr<CublasLt>> CublasLt::open(Driver& driver,
                                                 std::optional<KernelCache> choices) {
  ASSAY_TRY(const CudaLibrary found, open_cuda_library("cublasLt", "ASSAY_CUBLASLT"));
  std::unique_ptr<CublasLt> library(new CublasLt(driver, std::move(choices)));
  library->path_ = found.path;
  ASSAY_CHECK(library->look_up(found.handle));
  const size_t version = library->api_.version();
  library->version_ = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  ASSAY_TRY(library->workspace_, GpuBlock::allocate(driver, kWorkspaceBytes));
  ASSAY_CHECK(library->check(library->api_.create(&library->handle_), "cublasLtCreate"));
  return library;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_ != nullptr) api_.destroy(handle_);
}

::assay::Status CublasLt::set(Plan& plan, LtProductAttribute which, const auto& value) const {
  return check(api_.product_set(plan.product, which, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
}

::assay::Status CublasLt::set_scales(Plan& plan, Address weight, Address x) const {
  const void *of_weight = pointer(weight), *of_x = pointer(x);
  ASSAY_CHECK(set(plan, kScalesPointerA, of_weight));
  return set(plan, kScalesPointerB, of_x);
}

::assay::Status CublasLt::describe(const LtShape& shape, Plan& plan) const {
  const LtDataType in = shape.fp8 ? kRealE4M3 : data_type(shape.dtype);
  const LtDataType out = data_type(shape.out_dtype);
  const auto rows = static_cast<uint64_t>(shape.rows);
  const auto outputs = static_cast<uint64_t>(shape.outputs);
  const auto inputs = static_cast<uint64_t>(shape.inputs);
  const auto matrix = [&](LtMatrix& to, LtDataType type, uint64_t height, uint64_t width,
                          int64_t pitch) {
    return check(api_.matrix_create(&to, type, height, width, pitch), "cublasLtMatrixLayoutCreate");
  };
  ASSAY_CHECK(
      check(api_.product_create(&plan.product, kComputeF32, kRealF32), "cublasLtMatmulDescCreate"));
  ASSAY_CHECK(set(plan, kTransposeA, kTransposed));
  if (shape.bias) ASSAY_CHECK(set(plan, kEpilogue, kEpilogueBias));
  if (shape.fp8) {
    const int8_t fast = shape.fast_sums ? 1 : 0;
    ASSAY_CHECK(set(plan, kScalesModeA, kScaleOfEachRow));
    ASSAY_CHECK(set(plan, kScalesModeB, kScaleOfEachRow));
    ASSAY_CHECK(set(plan, kFastSums, fast));
    // Some address, without which no algorithm is found.
    ASSAY_CHECK(set_scales(plan, workspace_.address(), workspace_.address()));
  }
  ASSAY_CHECK(matrix(plan.weight, in, inputs, outputs, shape.weight_pitch));
  ASSAY_CHECK(matrix(plan.x, in, inputs, rows, shape.x_pitch));
  return matrix(plan.out, out, outputs, rows, shape.out_pitch);
}

::assay::Status CublasLt::choose(const LtShape& shape, Plan& plan) {
  const auto wish = [&](LtWish which, const auto& value) {
    return check(api_.wishes_set(plan.wishes, which, &value, sizeof value),
                 "cublasLtMatmulPreferenceSetAttribute");
  };
  ASSAY_CHECK(check(api_.wishes_create(&plan.wishes), "cublasLtMatmulPreferenceCreate"));
  ASSAY_CHECK(wish(kMostWorkspaceBytes, kWorkspaceBytes));
  for (const LtWish alignment : {kAlignmentB, kAlignmentC, kAlignmentD}) {
    ASSAY_CHECK(wish(alignment, kAlignmentBytes));
  }
  std::array<LtChoice, kAnswers> answers;
  int found = 0;
  ASSAY_CHECK(check(api_.choose(handle_, plan.product, plan.weight, plan.x, plan.out, plan.out,
                                plan.wishes, choices_ ? kAnswers : 1, answers.data(), &found),
                    "cublasLtMatmulAlgoGetHeuristic"));
  if (found <= 0) {
    return environment_error(
        "cublasLtMatmulAlgoGetHeuristic: expected an algorithm for {} x {} x {}{}, found none",
        shape.rows, shape.outputs, shape.inputs, shape.fp8 ? " in e4m3" : "");
  }
  ASSAY_CHECK(check(answers[0].status, "cublasLtMatmulAlgoGetHeuristic"));
  ASSAY_TRY(const size_t best,
            fastest(shape, plan, std::span(answers).first(static_cast<size_t>(found))));
  plan.choice = answers[best];
  return {};
}

Result<size_t> CublasLt::fastest(const LtShape& shape, Plan& plan,
                                 std::span<const LtChoice> answers) {
  if (!choices_ || answers.size() == 1) return 0;
  const KernelKey key = kept_by(fmt::format("{} of {}", text_of(shape), answers.size()));
  // Found by its content, not by its number: another library's answers may come in another order.
  const auto number_of = [&](std::string_view algorithm) -> std::optional<size_t> {
    for (size_t i = 0; i < answers.size(); ++i) {
      if (algorithm == bytes_of(answers[i].algorithm)) return i;
    }
    return std::nullopt;
  };
  if (const auto kept = choices_->read(key)) {
    if (const auto number = number_of(*kept)) return *number;
    choices_->remove(key);
  }
  // A share of the first one's time: where none takes less, the library's own order decides.
  constexpr double kSurely = 0.985;  // kept_by() names it
  ASSAY_TRY(const std::vector<double> ms, measure(shape, plan, answers));
  if (ms.empty()) return 0;
  const auto least = static_cast<size_t>(std::ranges::min_element(ms) - ms.begin());
  const size_t best = ms[least] < kSurely * ms[0] ? least : 0;
  const auto agreed = choices_->add_first(key, bytes_of(answers[best].algorithm));
  return agreed ? number_of(*agreed).value_or(0) : 0;  // what isn't kept, others wouldn't choose
}

KernelKey CublasLt::kept_by(std::string what) const {
  const GpuInfo& gpu = driver_.info();
  return {.source = std::move(what),
          .target = "cublaslt",
          .compiler = fmt::format("cuBLASLt {}, {}, {}", version_, gpu.name, gpu.driver_name()),
          .flags = "random numbers, 1.5 %"};
}

Result<std::optional<LtContest>> CublasLt::contest(const LtShape& fp8, const LtShape& wide) {
  if (!choices_) return std::nullopt;
  const auto [place, is_new] = contests_.try_emplace({fp8, wide});
  if (!is_new) return place->second;
  const KernelKey key = kept_by(fmt::format("{} or {}", text_of(fp8), text_of(wide)));
  if (const auto kept = choices_->read(key)) {
    place->second = contest_in(*kept);
    if (place->second) return place->second;
    choices_->remove(key);
  }
  LtContest contest;
  for (const auto& [shape, us] : {std::pair(&fp8, &contest.fp8_us), {&wide, &contest.wide_us}}) {
    ASSAY_TRY(Plan* const plan, plan_for(*shape));
    ASSAY_TRY(const std::vector<double> ms, measure(*shape, *plan, std::span(&plan->choice, 1)));
    if (ms.empty()) return std::nullopt;
    *us = ms[0] * 1e3;
  }
  const auto agreed =
      choices_->add_first(key, fmt::format("{:.3f} {:.3f}", contest.fp8_us, contest.wide_us));
  return place->second = agreed ? contest_in(*agreed) : std::nullopt;
}

// The weight comes from memory, as in a step: copies of it that the cache can't hold, one after the
// other. The least of some rounds in which all take turns.
Result<std::vector<double>> CublasLt::measure(const LtShape& shape, Plan& plan,
                                              std::span<const LtChoice> answers) {
  constexpr int kRounds = 5;
  constexpr uint64_t kMostCopies = 24;
  const uint64_t weight_bytes =
      static_cast<uint64_t>(shape.outputs * shape.weight_pitch) * element_bytes(shape);
  const uint64_t copies = std::min(2 * driver_.info().cache_bytes / weight_bytes + 1, kMostCopies);
  const auto rows = static_cast<uint64_t>(shape.rows);
  const uint64_t x_bytes = rows * static_cast<uint64_t>(shape.x_pitch) * sizeof(float);
  const uint64_t out_bytes = rows * static_cast<uint64_t>(shape.out_pitch) * sizeof(float);
  const uint64_t bias_bytes = static_cast<uint64_t>(shape.outputs) * sizeof(float);
  const uint64_t scales_bytes = rows * sizeof(float);
  constexpr uint64_t kPlace = 256;
  const auto placed = [](uint64_t bytes) { return (bytes + kPlace - 1) / kPlace * kPlace; };
  const uint64_t fixed_bytes =
      placed(x_bytes) + placed(out_bytes) + placed(bias_bytes) + placed(scales_bytes);
  const uint64_t bytes = fixed_bytes + copies * placed(weight_bytes);
  ASSAY_TRY(const Driver::Memory memory, driver_.memory());
  if (memory.free < 2 * bytes) return std::vector<double>();  // what a step needs comes first
  const auto block = GpuBlock::allocate(driver_, bytes);
  if (!block) {
    driver_.forget_fault();
    return std::vector<double>();
  }
  const Address begin = block->address();
  const std::vector<std::byte> numbers = random_numbers();
  for (uint64_t at = 0; at < bytes; at += numbers.size()) {
    const size_t count = std::min<uint64_t>(numbers.size(), bytes - at);
    ASSAY_CHECK(driver_.upload(begin + at, std::span(numbers).first(count)));
  }
  LtOperands operands{.x = begin, .out = begin + placed(x_bytes)};
  operands.addend = operands.out;
  operands.bias = operands.weight_scales = operands.out + placed(out_bytes);
  operands.x_scales = operands.bias + placed(bias_bytes);
  std::vector<double> least(answers.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round <= kRounds; ++round) {  // the first one warms up
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].status != 0) continue;
      ASSAY_TRY(const double ms, driver_.time_ms([&]() -> ::assay::Status {
        for (uint64_t c = 0; c < copies; ++c) {
          operands.weight = begin + fixed_bytes + c * placed(weight_bytes);
          ASSAY_CHECK(multiply_by(shape, plan, answers[i].algorithm, operands));
        }
        return {};
      }));
      if (round > 0) least[i] = std::min(least[i], ms / static_cast<double>(copies));
    }
  }
  return least;
}

Result<CublasLt::Plan*> CublasLt::plan_for(const LtShape& shape) {
  if (const auto known = plans_.find(shape); known != plans_.end()) return known->second.get();
  auto plan = std::make_unique<Plan>(api_);
  ASSAY_CHECK(describe(shape, *plan));
  ASSAY_CHECK(choose(shape, *plan));
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

::assay::Status CublasLt::prepare(const LtShape& shape) {
  ASSAY_TRY([[maybe_unused]] const Plan* const plan, plan_for(shape));
  return {};
}

::assay::Status CublasLt::multiply(const LtShape& shape, const LtOperands& operands) {
  ASSAY_TRY(Plan* const plan, plan_for(shape));
  if (noted_) multiplied_.insert(shape);
  return multiply_by(shape, *plan, plan->choice.algorithm, operands);
}

::assay::Status CublasLt::multiply_by(const LtShape& shape, Plan& plan,
                                      const LtAlgorithm& algorithm, const LtOperands& operands) {
  if (shape.bias) {
    const void* const bias = pointer(operands.bias);
    ASSAY_CHECK(set(plan, kBiasPointer, bias));
  }
  if (shape.fp8) ASSAY_CHECK(set_scales(plan, operands.weight_scales, operands.x_scales));
  const float one = 1, addend = shape.adds ? 1 : 0;
  void* out = pointer(operands.out);
  return check(
      api_.multiply(handle_, plan.product, &one, pointer(operands.weight), plan.weight,
                    pointer(operands.x), plan.x, &addend,
                    shape.adds ? pointer(operands.addend) : out, plan.out, out, plan.out,
                    &algorithm, pointer(workspace_.address()), kWorkspaceBytes, driver_.stream()),
      "cublasLtMatmul");
}

}  // namespace assay::engine::cuda
