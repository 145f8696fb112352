import type { Request } from 'express';
import multer from 'multer';
import { currentTrace, getLock } from 'reenlock';
import { Contest, type ThroughOptions, type Work } from '../../support/http/contest.ts';
import {
  type App,
  type Call,
  describeFrameworks,
  type Framework,
  type Middleware,
} from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import type { RawClient } from '../../support/http/raw-client.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';

const places = ['above', 'below'] as const;
const json = { method: 'POST', headers: ['Content-Type: application/json'], body: JSON.stringify({ id: 'k' }) };
const form = {
  method: 'POST',
  headers: ['Content-Type: multipart/form-data; boundary=part'],
  body: [
    '--part',
    'Content-Disposition: form-data; name="id"',
    '',
    'k',
    '--part',
    'Content-Disposition: form-data; name="file"; filename="file.txt"',
    'Content-Type: text/plain',
    '',
    'x'.repeat(200_000),
    '--part--',
    '',
  ].join('\r\n'),
};

/** The first request's key is the `id` of its body, which is read above or below `traceContext`. */
function start(
  framework: Framework,
  read: () => Middleware,
  sent: ThroughOptions,
  place: (typeof places)[number] = 'below',
): Promise<Contest> {
  const idOf = ({ req }: Call): string => (req as Request<unknown, unknown, { id: string }>).body.id;
  const build = (app: App, work: Work, stage: ServerStage): void => {
    const trace = framework.traceContext({ locks: stage.locks });
    const steps = place === 'above' ? [read(), trace] : [trace, read()];
    app.onError((error, call) => {
      stage.note(`failed: ${error.message}`);
      call.send('failed', error.status ?? 500);
    });
    app.route('/first', ...steps, framework.lockOn(idOf), async (call) => {
      stage.note(`${call.req.headers['x-trace-id']} at work`);
      await getLock('k').run(work);
      call.send(`answer to ${currentTrace()?.traceId}`);
    });
  };
  return Contest.through(framework, { ...sent, locks: { bare: true } }, build);
}

/** Shows that the first request holds on until its answer, whatever else was sent meanwhile. */
async function expectHeldUntilAnswer(contest: Contest): Promise<void> {
  await contest.expectHeldUntilGo();
  await contest.expectAnswer(/answer to first$/);
  expect(contest.stage.journal.filter((line) => line.includes('third'))).toEqual([]);
}

/** Begins a request whose body is announced as longer than what is sent of it. */
async function sendPart({ stage }: Contest, { method, headers, body }: typeof form): Promise<RawClient> {
  const client = await stage.connect();
  const length = `Content-Length: ${body.length}`;
  client.request({ path: '/first', trace: 'third', method, headers: [...headers, length] });
  client.socket.write(body.slice(0, body.length / 2));
  return client;
}

describeFrameworks('A guard whose key comes from a JSON body', (framework) => {
  it.each(places)(
    'A guard whose key is from a JSON body that is read %s traceContext holds it until the response',
    async (place) => {
      await expectHeldUntilAnswer(await start(framework, framework.json, json, place));
    },
  );

  it('A guard locks and queues nothing if the body can’t be read', async () => {
    const contest = await start(framework, framework.json, json);
    const client = await contest.stage.connect();
    const headers = [...json.headers, 'Content-Length: 1'];
    client.request({ path: '/first', trace: 'third', method: 'POST', headers }).socket.write('{');
    await client.receives(/^HTTP\/1.1 \d+ [\s\S]*failed$/);
    await expectHeldUntilAnswer(contest);
  });

  it('A guard locks and queues nothing if the client disconnects before the body was read', async () => {
    const contest = await start(framework, framework.json, json);
    await (await sendPart(contest, json)).hangUp('RST');
    await contest.stage.until(framework.adapter === 'express' ? 'failed: request aborted' : 'failed: aborted');
    await expectHeldUntilAnswer(contest);
  });
});

describeExpress('A guard whose key comes from a form with a file, by multer', (framework) => {
  const upload = (): Middleware => multer().any() as Middleware;

  it.each(places)(
    'A guard whose key is from a form that is read %s traceContext holds it until the response',
    async (place) => {
      await expectHeldUntilAnswer(await start(framework, upload, form, place));
    },
  );
});
