import * as runner from 'node:test';
import { describeKit } from './scenes.cjs';

const { timers } = runner.mock;
describeKit(runner, {
  use: () => timers.enable({ apis: ['setTimeout', 'Date'], now: Date.now() }),
  advance: (ms) => timers.tick(ms),
  end: () => timers.reset(),
});
