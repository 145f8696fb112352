import { EventEmitter, once } from 'node:events';
import { lock, runInTrace, traceHeaders } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { called } from '../../support/http/services.ts';

const branchHere = (): string | undefined => traceHeaders()['X-Trace-Branch'];

describeStyles('Listeners of a request or its response, and its branches', (framework) => {
  /** Calls `listen` in a handler. When that calls `draw`, it emits `drawn` on both where nobody's context is. */
  async function drawn(listen: (call: Call, draw: () => void) => Promise<unknown>): Promise<void> {
    const handlers = new EventEmitter();
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', async (call) => {
        await listen(call, () => handlers.emit('draw', call));
        call.send({});
      }),
    );
    const draw = once(handlers, 'draw');
    const reply = called(stage, '/x');
    const [{ req, res }] = (await draw) as [Call];
    for (const emitter of [req, res]) emitter.emit('drawn');
    expect(await reply).toEqual({});
  }

  /** Adds listeners to both, and resolves with what `look` sees in each of them. */
  function seenIn<T>({ req, res }: Call, look: () => Promise<T>): Promise<T[]> {
    const seen = (emitter: EventEmitter) => new Promise<T>((resolve) => emitter.on('drawn', () => resolve(look())));
    return Promise.all([req, res].map(seen));
  }

  const canEnter = async (key: string): Promise<boolean> => {
    const hold = await lock.tryAcquire(key);
    await hold?.release();
    return hold !== null;
  };

  it('A listener that is added within a branch enters what that branch holds, and not what others hold', async () => {
    let seen: unknown;
    await drawn(async (call, draw) => {
      const over = gate();
      const other = lock.run('theirs', () => over);
      await lock.run('ours', async () => {
        const look = async () => ({ ours: await canEnter('ours'), theirs: await canEnter('theirs') });
        const listening = seenIn(call, look);
        draw();
        seen = await listening;
      });
      over.open();
      await other;
    });
    expect(seen).toEqual(Array(2).fill({ ours: true, theirs: false }));
  });

  it('A listener that is added in a job within a branch enters what that branch holds', async () => {
    let seen: unknown;
    await drawn((call, draw) =>
      lock.run('ours', async () => {
        const { listening } = await runInTrace(() => ({ listening: seenIn(call, () => canEnter('ours')) }));
        draw();
        seen = await listening;
      }),
    );
    expect(seen).toEqual([true, true]);
  });

  it('A listener that is added alongside all branches enters nothing that they hold', async () => {
    let seen: unknown;
    await drawn(async (call, draw) => {
      const listening = seenIn(call, () => canEnter('ours'));
      await lock.run('ours', async () => {
        draw();
        seen = await listening;
      });
    });
    expect(seen).toEqual([false, false]);
  });

  it('A listener of `finish` that a branch added runs in it, though it has ended', async () => {
    const finished = new EventEmitter();
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', async (call) => {
        const branch = await lock.run('k', async () => {
          call.res.on('finish', () => finished.emit('finish', branchHere()));
          return branchHere();
        });
        call.send({ root: branchHere(), branch });
      }),
    );
    const atFinish = once(finished, 'finish');
    const { root, branch } = await called<{ root: string; branch: string }>(stage, '/x');
    expect(branch).toMatch(new RegExp(`^${root}/.`));
    expect(await atFinish).toEqual([branch]);
  });
});
