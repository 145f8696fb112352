import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id as rtracerId } from 'cls-rtracer';
import multer, { type Multer } from 'multer';
import { currentTrace, lock } from 'reenlock';
import { describeFrameworks, type Framework, type Middleware } from '../../support/http/frameworks.ts';
import type { RawClient } from '../../support/http/raw-client.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { pathOf } from '../../support/path-of.ts';

const dir = mkdtempSync(join(tmpdir(), 'reenlock-uploads-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** What code finds itself in: our trace, cls-rtracer's id, and the owner of a lock that it takes. */
async function whoAmI(): Promise<object> {
  return { trace: currentTrace()?.traceId, rtracer: rtracerId(), owner: await lock.run('own', (hold) => pathOf(hold)) };
}

interface Body {
  readonly type: string;
  text(name: string): string;
}

const json: Body = { type: 'application/json', text: (name) => JSON.stringify({ name, pad: 'x'.repeat(2_000) }) };
const form: Body = {
  type: 'multipart/form-data; boundary=edge',
  text: (name) =>
    [
      ...['--edge', 'Content-Disposition: form-data; name="name"', '', name],
      ...['--edge', `Content-Disposition: form-data; name="file"; filename="${name}.txt"`],
      ...['Content-Type: text/plain', '', 'x'.repeat(2_000), '--edge--', ''],
    ].join('\r\n'),
};

/** multer goes on in a callback; in Koa that settles a promise, as its wrapper for Koa does. */
const upload = (framework: Framework, parser: Multer): Middleware =>
  framework.middleware((call, next) => {
    const run = parser.single('file') as unknown as (req: object, res: object, done: (error?: unknown) => void) => void;
    if (framework.style === 'callback') return run(call.req, call.res, (e) => (e ? call.fail(e) : next()));
    return new Promise<void>((resolve, reject) => run(call.req, call.res, (e) => (e ? reject(e) : resolve()))).then(
      next,
    );
  });

/** Reads by hand, and goes on in the `end` event itself. */
const byHand = (framework: Framework): Middleware =>
  framework.middleware((call, next) => {
    let text = '';
    call.req.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    return new Promise((resolve, reject) => {
      call.req.on('end', () => {
        Object.assign(call.req, { body: JSON.parse(text) });
        Promise.resolve(next()).then(resolve, reject);
      });
    });
  });

const parsers: [string, Body, (framework: Framework) => Middleware][] = [
  ['the JSON parser', json, (framework) => framework.json()],
  ['multer in memory', form, (framework) => upload(framework, multer({ storage: multer.memoryStorage() }))],
  ['multer on disk', form, (framework) => upload(framework, multer({ dest: dir }))],
  ['`req.on("end")`', json, byHand],
];

/** The head of a request and half of its body; the function that comes back sends the other half. */
function sendHalf(client: RawClient, trace: string, body: Body): () => void {
  const text = body.text(trace);
  const headers = [`Content-Type: ${body.type}`, `Content-Length: ${text.length}`];
  client.request({ path: '/x', method: 'POST', trace, headers });
  client.socket.write(text.slice(0, text.length / 2));
  return () => client.socket.write(text.slice(text.length / 2));
}

describeFrameworks('The owner after a body was read', (framework) => {
  it.each(parsers)(
    'A request that reads its body keeps its own owner while others send theirs on used connections: %s',
    async (_, body, parser) => {
      const stage = await ServerStage.start(framework, (app, stage) => {
        const arrived = framework.middleware((_, next) => {
          stage.note('arrived');
          return next();
        });
        app.route('/x', arrived, parser(framework), async (call) => {
          const { name } = (call.req as unknown as { body: { name: string } }).body;
          call.send({ name, ...(await whoAmI()) });
        });
      });
      const clients = await Promise.all(['a', 'b', 'c'].map(() => stage.connect()));
      for (const round of [1, 2]) {
        const names = ['a', 'b', 'c'].map((letter) => `${letter}-${round}`);
        const finish = clients.map((client, i) => sendHalf(client, names[i]!, body));
        await stage.until('arrived', 3 * round);
        // The last one to come is the first one to be read.
        for (const i of [2, 0, 1]) {
          finish[i]!();
          const name = names[i]!;
          const [answer] = await clients[i]!.receives(new RegExp(`\\{"name":"${name}.*\\}`));
          expect(JSON.parse(answer)).toEqual({ name, trace: name, rtracer: name, owner: name });
        }
      }
    },
  );
});
