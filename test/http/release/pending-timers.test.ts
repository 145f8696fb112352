import { join } from 'node:path';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { runScript } from '../../support/processes/processes.ts';

watchLeaks();
// It starts processes.
jest.setTimeout(60_000);

describe('a process that has nothing to do but to hold, to wait, and to let a request without a client work on', () => {
  it('ends by itself: no timer of theirs keeps it alive', async () => {
    const { code, stdout, stderr } = await runScript(join(__dirname, 'processes/pending.ts'), { timeoutMs: 50_000 });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'granted order, granted stock, waiting stock',
      stderr: '',
    });
  });
});
