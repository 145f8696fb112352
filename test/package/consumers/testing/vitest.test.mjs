import * as vitest from 'vitest';
import { describeKit } from './scenes.cjs';

const { vi } = vitest;
describeKit(vitest, {
  use: () => vi.useFakeTimers(),
  advance: (ms) => vi.advanceTimersByTime(ms),
  end: () => vi.useRealTimers(),
});
