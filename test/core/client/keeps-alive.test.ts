import { join } from 'node:path';
import { runScript } from '../../support/processes/processes.ts';

// It starts a process.
jest.setTimeout(60_000);

describe('A call to a store that does not reply, and the end of a process', () => {
  it('A process stays alive until a call that its code awaits has failed, so that the rest of its work is done', async () => {
    const script = join(__dirname, 'processes/silent-store.ts');
    const { code, stdout, stderr } = await runScript(script, { timeoutMs: 50_000 });
    const lines = [
      'acquire lost-call: ERR_LOCK_STORE',
      'release lost-reply: done',
      'release down: done',
      'renew lost-call: ERR_LOCK_STORE',
      'transfer late: ERR_LOCK_STORE',
    ];
    expect({ code, stdout: stdout.trim().split('\n'), stderr }).toEqual({ code: 0, stdout: lines, stderr: '' });
  });
});
