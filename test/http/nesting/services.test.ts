import { setImmediate as turn } from 'node:timers/promises';
import { lock, traceHeaders } from 'reenlock';
import { bare } from '../../support/http/bare-app.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { Balance, called, describeServices, type StartService } from '../../support/http/services.ts';

const { lockOn } = bare;

interface System {
  readonly all: readonly ServerStage[];
  readonly first: ServerStage;
  readonly balance: Balance;
}

/** Three services deep: the first one has a guard, the second one calls `run`, the third one `run` and `acquire`. */
async function systemOf(start: StartService): Promise<System> {
  const balance = new Balance(0);
  const third = await start((app) =>
    app.route('/x', async (call) => {
      const inRun = await lock.run('k', async ({ fence }) => {
        await balance.add(1, turn);
        return fence;
      });
      const { fence } = await lock.acquire('k');
      call.send([inRun, fence]);
    }),
  );
  const second = await start((app) =>
    app.route('/x', async (call) => {
      const fences = await lock.run('k', async ({ fence }) => {
        const below = await called<number[]>(third, '/x', traceHeaders());
        await balance.add(1, turn);
        return [fence, ...below];
      });
      call.send(fences);
    }),
  );
  const first = await start((app) => {
    const below = (): Promise<number[]> => called(second, '/x', traceHeaders());
    app.route('/once', lockOn('k'), async (call) => call.send([call.lock?.fence, ...(await below())]));
    app.route('/twice', lockOn('k'), async (call) => {
      const both = await Promise.all([below(), below()]);
      call.send([call.lock?.fence, ...both.flat()]);
    });
    app.route('/unheld', async (call) => {
      const both = await Promise.all([below(), below()]);
      call.send(both.flat());
    });
  });
  return { all: [first, second, third], first, balance };
}

describeServices('Three services that lock one key below each other', (start) => {
  it('Nested calls never wait, have the fence of the first hold, and leave nothing held', async () => {
    const { all, first, balance } = await systemOf(start);
    const waits: unknown[] = [];
    for (const { locks } of all) locks.on('waiting', (event) => void waits.push(event));
    const fences = await called<number[]>(first, '/once');
    expect(fences).toHaveLength(4);
    expect(new Set(fences).size).toBe(1);
    expect(waits).toEqual([]);
    expect(balance.value).toBe(2);
    await first.free('k');
  });

  it('Two calls at once from below one hold exclude each other with all that is below them', async () => {
    const { all, first, balance } = await systemOf(start);
    const waits: unknown[] = [];
    for (const { locks } of all) locks.on('waiting', ({ traceId }) => void waits.push(traceId));
    const fences = await called<number[]>(first, '/twice');
    expect(balance.value).toBe(4);
    expect(fences).toHaveLength(7);
    expect(new Set(fences).size).toBe(1);
    expect(waits).toHaveLength(1);
    await first.free('k');
  });

  it('Two calls at once of a service that does not hold the key exclude each other with all that is below them', async () => {
    const { first, balance } = await systemOf(start);
    const fences = await called<number[]>(first, '/unheld');
    expect(balance.value).toBe(4);
    expect(fences).toHaveLength(6);
    await first.free('k');
  });

  it('Strangers are served between such requests, and all of them end', async () => {
    const { first, balance } = await systemOf(start);
    await Promise.all(['/twice', '/once', '/unheld', '/twice', '/once'].map((path) => called(first, path)));
    expect(balance.value).toBe(16);
    await first.free('k');
  });
});
