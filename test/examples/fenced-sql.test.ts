import { watchLeaks } from '../helpers/leaks.ts';
import { runScript } from '../helpers/processes.ts';
import { exampleFile } from './example.ts';

watchLeaks();

describe('fenced-sql.ts', () => {
  it("refuses the late write of a paused holder, and keeps the newer holder's", async () => {
    const { code, stdout } = await runScript(exampleFile('fenced-sql/fenced-sql.ts'), { timeoutMs: 28_000 });
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.replace(/, its fence is \d+/, ''))).toEqual([
      'slow: reads 10 units',
      'quick: reads 10 units',
      'quick: writes 6 units: accepted',
      'slow: writes 9 units: refused, a newer holder has written',
      'at the end: reads 6 units',
    ]);
    const [slow, quick] = lines.map((line) => Number(/its fence is (\d+)/.exec(line)?.[1]));
    expect(quick).toBeGreaterThan(slow!);
    expect(code).toBe(0);
  });
});
