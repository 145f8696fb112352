import { gate } from '../../support/gate.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, Stage } from '../../support/http/stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { Contest } from '../../support/stores/contest.ts';

watchLeaks();

describeFrameworks('over TLS', (framework) => {
  afterEach(Stage.endAll);

  it('the lock is given to the next request when the handler answers, not earlier, and nothing stays on the connection', async () => {
    const work = gate();
    const contest = await Contest.start(
      framework,
      async (call, stage) => {
        stage.note('first works');
        await work;
        call.send('first');
      },
      { locks: { protocol: 'HTTPS' } },
    );
    contest.go();
    await contest.stage.until('first works');
    await contest.expectStillHeld();
    work.open();
    await contest.expectHandedOn();
    await contest.first.receives(/first$/);
    await contest.stage.unheard();
  });

  it.each(['FIN', 'RST'] as const)(
    '[tls-01] a client that hangs up (%s) leaves the hold to its handler',
    async (how) => {
      const work = gate();
      const contest = await Contest.start(
        framework,
        async (call, stage) => {
          await clientLeaves(stage);
          await work;
          call.send('late');
        },
        { locks: { protocol: 'HTTPS' } },
      );
      contest.go();
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.stage.until('first hears');
      await contest.expectStillHeld();
      work.open();
      await contest.expectHandedOn();
    },
  );

  it('[tls-02] a handler that destroys its connection gives the lock back', async () => {
    const contest = await Contest.start(framework, (call) => call.req.destroy(), { locks: { protocol: 'HTTPS' } });
    contest.go();
    await contest.expectHandedOn();
    await contest.first.closed;
  });
});
