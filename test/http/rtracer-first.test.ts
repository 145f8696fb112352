import { describeFrameworks } from '../helpers/frameworks.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { Stage } from '../helpers/stage.ts';

watchLeaks();

describeFrameworks('traceContext below cls-rtracer', (framework) => {
  afterEach(Stage.endAll);

  it('warns once that it must come first, and of nothing where it does', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const state = (globalThis as { [slot: symbol]: { warned: Set<string> } })[Symbol.for('reenlock')];
    state?.warned.delete('LOCK_RTRACER');
    const first = await Stage.start(framework, (app) => app.route('/x', (call) => call.send({})));
    await first.get('/x');
    expect(warn).not.toHaveBeenCalled();

    const below = await Stage.start(
      framework,
      (app, stage) =>
        app
          .use(framework.rtracer())
          .use(framework.traceContext({ locks: stage.locks }))
          .route('/x', (call) => call.send({})),
      { bare: true },
    );
    await below.get('/x');
    await below.get('/x');
    expect(warn.mock.calls.map(([, options]) => options)).toEqual([expect.objectContaining({ code: 'LOCK_RTRACER' })]);
    warn.mockRestore();
  });
});
