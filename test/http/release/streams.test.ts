import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { pipeline as sendAll } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import type { Hangup } from '../../support/http/raw-client.ts';
import { clientLeaves } from '../../support/http/server-stage.ts';

/** More than the buffers of a loopback connection take. */
const largeBytes = 32 * 2 ** 20;
const hangups: Hangup[] = ['FIN', 'RST'];

describeFrameworks('A large or streamed answer', (framework) => {
  const dir = mkdtempSync(join(tmpdir(), 'reenlock-files-'));
  const largeFile = join(dir, 'large.bin');
  beforeAll(() => writeFileSync(largeFile, Buffer.alloc(largeBytes)));
  afterAll(() => rmSync(dir, { recursive: true }));

  it('[streams-01] A response that is piped keeps the lock until its source has ended', async () => {
    const source = new PassThrough();
    const contest = await Contest.start(framework, (call) => call.stream(source));
    contest.go();
    source.write('one,');
    await contest.first.receives(/one,/);
    await contest.expectStillHeld();
    source.end('two.');
    await contest.expectHandedOn();
    await contest.first.receives(/two\./);
  });

  it('[streams-02] A response that is written by hand keeps the lock until it is ended', async () => {
    const rest = gate();
    const contest = await Contest.start(framework, (call) => {
      call.detach();
      call.res.write('data: one\n\n');
      void rest.then(() => call.res.end('data: two\n\n'));
    });
    contest.go();
    await contest.first.receives(/data: one/);
    await contest.expectHeldUntil(rest);
  });

  it('[streams-03] A response does not keep the lock while a slow client reads it', async () => {
    const contest = await Contest.start(framework, (call) => call.send(Buffer.alloc(largeBytes)));
    contest.first.pause();
    contest.go();
    await contest.expectHandedOn();
    expect(contest.first.received.length).toBeLessThan(largeBytes);
  });

  it('[streams-04] With releaseOn `close`, a response keeps the lock while a slow client reads it', async () => {
    const contest = await Contest.start(framework, { guard: { releaseOn: 'close' } }, (call, stage) => {
      call.detach();
      call.res.end(Buffer.alloc(largeBytes), () => stage.note('first is sent'));
      stage.note('first answers');
    });
    contest.first.pause();
    contest.go();
    await contest.stage.until('first answers');
    await contest.expectStillHeld();
    contest.first.socket.resume();
    await contest.expectHandedOn();
    contest.stage.expectOrder('first answers', 'first is sent', 'second in');
  });

  it('[streams-05] With releaseOn `close`, a response releases the lock when a slow client disconnects', async () => {
    const contest = await Contest.start(framework, { guard: { releaseOn: 'close' } }, (call) =>
      call.send(Buffer.alloc(largeBytes)),
    );
    contest.first.pause();
    contest.go();
    await contest.expectStillHeld();
    await contest.first.hangUp('RST');
    await contest.expectHandedOn();
  });

  const piped: [string, (call: Call) => unknown][] = [
    ['a stream in the framework’s way', (call) => call.stream(endless())],
    ['pipe', (call) => detached(call, () => void endless().pipe(call.res))],
    [
      'pipe, unpiped as the request is aborted',
      (call) =>
        detached(call, () => {
          const source = endless();
          source.pipe(call.res);
          call.req.once('aborted', () => source.unpipe(call.res));
        }),
    ],
    ['pipeline', (call) => detached(call, () => void pipeline(endless(), call.res, () => {}))],
    [
      'pipeline through gzip',
      (call) => detached(call, () => void pipeline(endless(), createGzip(), call.res, () => {})),
    ],
    ['gzip and pipe', (call) => detached(call, () => void endless().pipe(createGzip()).pipe(call.res))],
    ['sendFile', (call) => call.sendFile(largeFile)],
  ];
  const cases = piped.flatMap(([name, handler]) => hangups.map((how) => [name, how, handler] as const));

  it.each(cases)(
    '[streams-06] A response by %s releases the lock when the client hangs up in the middle (%s)',
    async (_, how, handler) => {
      const contest = await Contest.start(framework, handler);
      contest.go();
      await contest.first.receives(/\r\n\r\n/);
      contest.first.pause();
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.expectHandedOn();
    },
  );

  it.each(piped)(
    '[streams-07] A response by %s that begins after the client has disconnected releases the lock',
    async (_, handler) => {
      const contest = await Contest.start(framework, async (call, stage) => {
        await clientLeaves(stage);
        try {
          await handler(call);
        } catch (error) {
          // From Node 24 on, `pipeline` throws; Express 4 has to be told.
          call.fail(error);
        }
      });
      contest.go();
      await contest.expectStillHeld();
      await contest.first.hangUp();
      await contest.expectHandedOn();
    },
  );

  it('[streams-08] A response that is piped in part keeps the lock until its end, though the client has disconnected', async () => {
    const rest = gate();
    const contest = await Contest.start(framework, (call, stage) =>
      detached(call, async () => {
        Readable.from(['one,']).pipe(call.res, { end: false });
        await clientLeaves(stage);
        await rest;
        stage.note('first ends');
        call.res.end('two.');
      }),
    );
    contest.go();
    await contest.first.receives(/one,/);
    await contest.first.hangUp();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(rest);
    contest.stage.expectOrder('first ends', 'second in');
  });

  it('A response that is piped in part keeps the lock until its end, though its source ended as the client disconnected', async () => {
    const rest = gate();
    const contest = await Contest.start(framework, (call, stage) =>
      detached(call, async () => {
        const source = new PassThrough();
        source.pipe(call.res, { end: false });
        source.write('one,');
        source.once('end', () => stage.note('source ends'));
        call.res.once('close', () => stage.note('first is cut off'));
        call.req.socket.once('error', () => source.end());
        await clientLeaves(stage);
        await rest;
        call.res.end('two.');
      }),
    );
    contest.go();
    await contest.first.receives(/one,/);
    await contest.first.hangUp('RST');
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(rest);
    contest.stage.expectOrder('source ends', 'first is cut off', 'second in');
  });

  it(`[streams-09] A piped answer ${framework.awaitsHandlers ? 'keeps' : 'does not keep'} the lock for other work of its handler once the client has disconnected`, async () => {
    const work = gate();
    const contest = await Contest.start(framework, (call) =>
      detached(call, async () => {
        endless().pipe(call.res);
        await work;
      }),
    );
    contest.go();
    await contest.first.receives(/\r\n\r\n/);
    contest.first.pause();
    await contest.expectStillHeld();
    await contest.first.hangUp('RST');
    if (framework.awaitsHandlers) await contest.expectStillHeld();
    else await contest.expectHandedOn();
    work.open();
    await contest.expectHandedOn();
  });

  it('[streams-10] A response that is piped and then unpiped keeps the lock until its end, though the client has disconnected', async () => {
    const rest = gate();
    const contest = await Contest.start(framework, (call, stage) =>
      detached(call, async () => {
        const source = new PassThrough();
        source.pipe(call.res).write('part');
        source.unpipe(call.res);
        await clientLeaves(stage);
        await rest;
        call.res.end();
      }),
    );
    contest.go();
    await contest.first.receives(/part/);
    await contest.first.hangUp('RST');
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(rest);
  });

  it('A response with two sources, of which one has ended, releases the lock when the client hangs up', async () => {
    const source = new PassThrough();
    const contest = await Contest.start(framework, (call) =>
      detached(call, async () => {
        source.pipe(call.res);
        Readable.from(['one,']).pipe(call.res, { end: false });
      }),
    );
    contest.go();
    await contest.first.receives(/one,/);
    await contest.first.hangUp();
    await contest.expectHandedOn();
    source.destroy();
  });

  it.each(hangups)(
    '[streams-11] A response whose source is idle releases the lock when the client hangs up (%s)',
    async (how) => {
      const source = new PassThrough();
      const contest = await Contest.start(framework, (call) => call.stream(source));
      contest.go();
      source.write('one,');
      await contest.first.receives(/one,/);
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.expectHandedOn();
      source.destroy();
    },
  );

  it('[streams-12] A response whose source fails in the middle releases the lock', async () => {
    const source = new PassThrough();
    const contest = await Contest.start(framework, (call) => {
      source.on('error', (error) => {
        // Fastify itself has seen it.
        if (framework.adapter === 'fastify') return;
        if (framework.style === 'callback') call.fail(error);
        else call.res.destroy();
      });
      call.stream(source);
    });
    contest.go();
    source.write('one,');
    await contest.first.receives(/one,/);
    await contest.expectStillHeld();
    source.destroy(new Error('the source failed'));
    await contest.expectHandedOn();
    await contest.first.closed;
  });

  const pipelines = [
    ['source fails', (source: PassThrough) => void source.destroy(new Error('the source failed'))],
    ['client leaves', (_: PassThrough, { first }: Contest) => first.hangUp('RST')],
  ] as const;

  it.each(pipelines)(
    `[streams-13] A \`pipeline\` into the response whose %s ${framework.awaitsHandlers ? 'leaves the handler its lock until its end' : 'has released the lock when the handler hears of it'}`,
    async (_, fail) => {
      const source = new PassThrough();
      const undone = gate();
      const contest = await Contest.start(framework, async (call, stage) => {
        call.detach();
        await sendAll(source, call.res).catch(() => stage.note('first is told'));
        await undone;
      });
      contest.go();
      source.write('one,');
      await contest.first.receives(/one,/);
      await contest.expectStillHeld();
      await fail(source, contest);
      await contest.stage.until('first is told');
      if (framework.awaitsHandlers) await contest.expectStillHeld();
      else await contest.expectHandedOn();
      undone.open();
      await contest.expectHandedOn();
    },
  );

  it('[streams-14] A `pipeline` that was handed to `waitUntil` keeps the lock until its `catch` has settled', async () => {
    const source = new PassThrough();
    const undone = gate();
    const contest = await Contest.start(framework, (call, stage) => {
      call.detach();
      const sent = sendAll(source, call.res).catch(() => {
        stage.note('first is told');
        return undone;
      });
      call.lock?.waitUntil(sent);
      return sent;
    });
    contest.go();
    source.write('one,');
    await contest.first.receives(/one,/);
    source.destroy(new Error('the source failed'));
    await contest.stage.until('first is told');
    await contest.expectHeldUntil(undone);
  });
});

function endless(): Readable {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  return new Readable({
    read() {
      this.push(chunk);
    },
  });
}

function detached(call: Call, answer: () => unknown): unknown {
  call.detach();
  return answer();
}
