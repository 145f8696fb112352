const { describeKit } = require('./scenes.cjs');

const { useFakeTimers: use, advanceTimersByTime: advance, useRealTimers: end } = jest;
describeKit({ test, beforeEach, afterEach }, { use, advance, end });
