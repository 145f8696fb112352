import { LockConfigError } from 'reenlock';
import { sendProblem as express } from 'reenlock/express';
import { sendProblem as fastify } from 'reenlock/fastify';
import { sendProblem as hono } from 'reenlock/hono';
import { sendProblem as koa } from 'reenlock/koa';
import { sendProblem as node } from 'reenlock/node';

describe('sendProblem, called where it should be given', () => {
  it.each<[string, (...args: never[]) => unknown, string]>([
    ['express', express, 'app.use(sendProblem)'],
    ['node', node, 'app.use(sendProblem)'],
    ['fastify', fastify, 'app.setErrorHandler(sendProblem)'],
    ['hono', hono, 'app.onError(sendProblem)'],
    ['koa', koa, 'lockOn(key, { handler: sendProblem })'],
  ])('The one of %s says how to give it', (_, sendProblem, usage) => {
    const call = (): unknown => Reflect.apply(sendProblem, undefined, []);
    expect(call).toThrow(LockConfigError);
    expect(call).toThrow(`Did you mean \`${usage}\`, without a call?`);
  });

  it('As middleware of Koa it says so, too: its second argument is `next`', () => {
    const call = (): unknown => Reflect.apply(koa, undefined, [{ req: {}, res: {} }, () => {}] as never);
    expect(call).toThrow(LockConfigError);
  });
});
