// The driver's management library without a device: a GPU that its power cap holds back.

extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int made = 0;
  *device = &made;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* megahertz) {
  *megahertz = 1410;
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* megahertz) {
  *megahertz = 1980;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x4 | 0x1;
  return 0;
}
}
