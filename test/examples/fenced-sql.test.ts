import { runScript } from '../support/processes/processes.ts';
import { exampleFile } from './example.ts';

describe('fenced-sql.ts', () => {
  it("refuses the late write of a paused holder, though the newer one has only read, and keeps the newer one's", async () => {
    const { code, stdout } = await runScript(exampleFile('fenced-sql/fenced-sql.ts'), { timeoutMs: 55_000 });
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.replace(/, its fence is \d+/, ''))).toEqual([
      'slow: reads 10 units',
      'quick: reads 10 units',
      'slow: writes 9 units: refused, a newer holder has come',
      'quick: writes 6 units: accepted',
      'at the end: 6 units',
    ]);
    const [slow, quick] = lines.map((line) => Number(/its fence is (\d+)/.exec(line)?.[1]));
    expect(quick).toBeGreaterThan(slow!);
    expect(code).toBe(0);
  });
});
