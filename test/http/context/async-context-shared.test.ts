import { isLockError, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { pathOf } from '../../support/path-of.ts';

/** The owner of a lock that the calling code takes, or why it gets none. */
async function owner(): Promise<string> {
  return lock.run('own', (hold) => pathOf(hold)).catch((error) => (isLockError(error) ? error.code : String(error)));
}

describeStyles('The owner in what requests share', (framework) => {
  it('A listener of a response runs as the owner of that response’s request, whatever registered it', async () => {
    const go = gate();
    let shared: Call | undefined;
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/first', async (call) => {
          shared = call;
          stage.note('at work');
          await go;
          call.send('done');
        })
        .route('/second', async (call) => {
          const heard = new Promise((resolve) => shared?.res.on('drawn', () => resolve(owner())));
          shared?.res.emit('drawn');
          call.send({ owner: await heard });
        }),
    );
    const first = stage.get('/first', 'first');
    await stage.until('at work');
    expect((await stage.get('/second', 'second')).body).toEqual({ owner: 'first' });
    go.open();
    await first;
  });
});
