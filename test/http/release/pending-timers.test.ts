import { join } from 'node:path';
import { runScript } from '../../support/processes/processes.ts';

// It starts processes.
jest.setTimeout(60_000);

describe('Timers and the end of a process', () => {
  it('A process with only a held lock and a guarded request whose client has disconnected ends by itself: no timer keeps it alive', async () => {
    const { code, stdout, stderr } = await runScript(join(__dirname, 'processes/pending.ts'), { timeoutMs: 50_000 });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'granted order, granted stock',
      stderr: '',
    });
  });
});
