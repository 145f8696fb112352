import { currentTrace, lock, runInTrace, traceHeaders } from 'reenlock';
import { TraceSignatures } from '../../../src/core/model/signature.ts';
import { bare } from '../../support/http/bare-app.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { called } from '../../support/http/services.ts';
import { pathOf } from '../../support/path-of.ts';

const minted = /^[0-9a-f]{32}$/;
const trust = { secrets: ['a-secret-of-some-length-that-services-share'], audience: 'stock' };
const parts = (count: number): string => `sent${'/1'.repeat(count)}`;

const signatureOf = (path: string): string => new TraceSignatures(trust).sign(path, Date.now());

/** The owner of a lock that a request acquires which brings these headers, and why they were refused. */
async function outcome(
  headers: Record<string, string>,
  options: ServerStageOptions = {},
): Promise<{ trace: string; owner: string; refusals: unknown[] }> {
  const refusals: unknown[] = [];
  const stage = await ServerStage.start(bare, options, (app, { locks }) => {
    locks.on('headerRefused', ({ reason }) => void refusals.push(reason));
    app.route('/x', async (call) => {
      const hold = await lock.acquire('k');
      call.send({ trace: currentTrace()?.traceId, owner: pathOf(hold) });
    });
  });
  const reply = await called<{ trace: string; owner: string }>(stage, '/x', headers);
  return { ...reply, refusals };
}

const refused = (reason: string) => ({
  trace: expect.stringMatching(minted),
  owner: expect.stringMatching(minted),
  refusals: [reason],
});

const below = (path: string) => ({
  trace: 'sent',
  owner: expect.stringMatching(new RegExp(`^${path}/[^/]+$`)),
  refusals: [],
});

describe('the header X-Trace-Branch', () => {
  afterEach(ServerStage.endAll);

  it.each([
    ['the trace id itself', 'sent'],
    ['a path', 'sent/1/a-b.c_d'],
    ['64 parts below the trace id', parts(64)],
  ])('A request becomes a new branch below the branch that it sends: %s', async (_, branch) => {
    expect(await outcome({ 'X-Trace-Id': 'sent', 'X-Trace-Branch': branch })).toEqual(below(branch));
  });

  it.each([
    ['65 parts deep', parts(65)],
    ['longer than 1,024 characters', `sent${`/${'a'.repeat(32)}`.repeat(32)}`],
    ['with a part of 33 characters', `sent/${'a'.repeat(33)}`],
    ['with an empty part', 'sent//1'],
    ['with an empty part at its end', 'sent/'],
    ['with other characters', 'sent/ü'],
    ['of another trace', 'other/1'],
    ['whose first part only begins like the trace id', 'sent1/1'],
    ['empty', ''],
    ['sent twice', 'sent/1, sent/1'],
  ])('A request with a branch that is malformed gets a new trace, and an event: %s', async (_, branch) => {
    expect(await outcome({ 'X-Trace-Id': 'sent', 'X-Trace-Branch': branch })).toEqual(refused('malformed'));
  });

  it('A branch without a trace id is no trace', async () => {
    const { trace, owner } = await outcome({ 'X-Trace-Branch': 'sent/1' });
    expect([trace, owner]).toEqual([expect.stringMatching(minted), trace]);
  });

  it('A call from a branch that is too deep to be sent gets a new trace, and does not fail', async () => {
    const refusals: unknown[] = [];
    const service = await ServerStage.start(bare, (app, { locks }) => {
      locks.on('headerRefused', ({ reason }) => void refusals.push(reason));
      app.route('/x', (call) => call.send([currentTrace()?.traceId]));
    });
    const { locks } = service;
    const call = async () => [currentTrace()?.traceId, ...(await called<string[]>(service, '/x', traceHeaders()))];
    const at = (depth: number): Promise<unknown[]> =>
      depth === 0 ? call() : lock.run(`k${depth}`, () => at(depth - 1));
    const [own, sent] = await runInTrace(() => at(64), { locks });
    expect([sent, refusals]).toEqual([own, []]);
    const [ownDeeper, sentDeeper] = await runInTrace(() => at(65), { locks });
    expect([sentDeeper, refusals]).toEqual([expect.stringMatching(minted), ['malformed']]);
    expect(sentDeeper).not.toBe(ownDeeper);
  });

  it.each<[string, () => Record<string, string>]>([
    ['over its path', () => ({ 'X-Trace-Branch': 'sent/1', 'X-Trace-Signature': signatureOf('sent/1') })],
    ['over the trace id, which has no branch', () => ({ 'X-Trace-Signature': signatureOf('sent') })],
  ])('A signature is valid %s', async (_, headers) => {
    const { trace, refusals } = await outcome({ 'X-Trace-Id': 'sent', ...headers() }, { trust });
    expect([trace, refusals]).toEqual(['sent', []]);
  });

  it.each<[string, string, () => Record<string, string>]>([
    [
      'over the trace id alone, with a path',
      'mismatch',
      () => ({ 'X-Trace-Branch': 'sent/1', 'X-Trace-Signature': signatureOf('sent') }),
    ],
    ['over a path that was stripped', 'mismatch', () => ({ 'X-Trace-Signature': signatureOf('sent/1') })],
    [
      'over the path of its parent',
      'mismatch',
      () => ({ 'X-Trace-Branch': 'sent/1/2', 'X-Trace-Signature': signatureOf('sent/1') }),
    ],
    [
      'over the path of its child',
      'mismatch',
      () => ({ 'X-Trace-Branch': 'sent/1', 'X-Trace-Signature': signatureOf('sent/1/2') }),
    ],
  ])(
    'A request is not admitted, and gets a new trace, with a signature %s: the event says `%s`',
    async (_, reason, headers) => {
      expect(await outcome({ 'X-Trace-Id': 'sent', ...headers() }, { trust })).toEqual(refused(reason));
    },
  );
});
