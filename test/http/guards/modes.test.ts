import { gate } from '../../support/gate.ts';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const read = { mode: 'read' } as const;

describeStyles('A guard with mode `read`', (framework) => {
  const { lockOn } = framework;

  it('A read guard lets many readers in at once and none past a waiting writer, and a writer is alone', async () => {
    const go = gate();
    let inside = 0;
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/read', lockOn('k', read), async (call) => {
          inside += 1;
          stage.note('reader in');
          await go;
          inside -= 1;
          call.send({ fence: call.lock?.fence });
        })
        .route('/write', lockOn('k'), (call) => {
          stage.note('writer in');
          call.send({ beside: inside });
        })
        .route('/late', lockOn('k', read), stage.handler('late')),
    );
    const readers = Array.from({ length: 20 }, (_, i) => stage.get('/read', `reader-${i}`));
    for (const reader of readers) void reader.catch(() => {});
    await stage.until('reader in', 20);
    expect(inside).toBe(20);
    const writer = stage.get('/write', 'writer');
    await stage.until('waiting writer k');
    const late = stage.get('/late', 'late');
    await stage.until('waiting late k');
    expect(stage.journal).not.toContain('writer in');
    go.open();
    const fences = (await Promise.all(readers)).map(({ body }) => (body as { fence: number }).fence);
    expect(new Set(fences).size).toBe(1);
    expect((await writer).body).toEqual({ beside: 0 });
    await late;
    stage.expectOrder('reader in', 'writer in', 'late in');
    await stage.free('k');
  });
});

describeStyles('A guard with `permits`', (framework) => {
  const { lockOn } = framework;

  it('So many requests are in at once; the next one waits and gets the first permit, or is refused with 423', async () => {
    const gates = [gate(), gate(), gate()];
    let entered = 0;
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/pool', lockOn('k', { permits: 2 }), async (call) => {
          stage.note('in');
          await gates[entered++];
          call.send({ held: call.lock?.isHeld() });
        })
        .route('/now', lockOn('k', { permits: 2, waitMs: 0 }), (call) => call.send('in')),
    );
    const requests = ['a', 'b'].map((trace) => stage.get('/pool', trace));
    await stage.until('in', 2);
    const third = stage.get('/pool', 'c');
    await stage.until('waiting c k');
    expect((await stage.get('/now', 'd')).status).toBe(423);
    gates[0]?.open();
    await stage.until('in', 3);
    for (const each of gates) each.open();
    for (const { body } of await Promise.all([...requests, third])) expect(body).toEqual({ held: true });
    await stage.free('k');
  });
});
