// For tests: a management library with two GPUs, one of them hot, or none that answers. The cool
// one has the uuid FAKE_NVML_UUID where that is set, and takes 100 W.
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int fail(void) { return getenv("FAKE_NVML_FAILS") != NULL; }

int nvmlInit_v2(void) { return fail() ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "other"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  strncpy(text, "580.1", size);
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(size_t)(index + 1);
  return 0;
}
static int hot(void* device) { return (size_t)device == 2; }
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  strncpy(text, hot(device) ? "Hot GPU" : "Cool GPU", size);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const char* uuid = getenv("FAKE_NVML_UUID");
  strncpy(text, hot(device) ? "GPU-hot" : uuid != NULL ? uuid : "GPU-cool", size);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long memory[3]) {
  memory[0] = 1000;
  memory[1] = memory[2] = 500;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  *mhz = hot(device) ? 345 : 1980;
  return type == 1 ? 0 : 2;
}
int nvmlDeviceGetTemperature(void* device, int type, unsigned* celsius) {
  *celsius = hot(device) ? 91 : 40;
  return type == 0 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 123456;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *millijoules = (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
  return hot(device) ? 3 : 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  *reasons = hot(device) ? 0x48 : 0x1;
  return 0;
}
