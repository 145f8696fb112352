/** Microseconds on the machine's monotonic clock: one clock for all processes, so their times may be compared. */
export function nowUs() {
  return Number(process.hrtime.bigint()) / 1000;
}
