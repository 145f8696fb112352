import { type WorkPhase, WorkState } from '../../../src/http/response/work-state.ts';

type Step = 'end' | 'close' | 'enter' | 'settle' | 'fail';

const express = { awaitsMiddleware: false };
const koa = { awaitsMiddleware: true };
const detached = { awaitsMiddleware: true, isDetached: () => true };

/** After each step, the phase. */
const table: [options: object, ...steps: [step: Step, phase: WorkPhase][]][] = [
  [{ express }, ['end', 'done']],
  [{ express }, ['end', 'done'], ['end', 'done'], ['close', 'done']],
  [{ express }, ['close', 'closed'], ['close', 'closed'], ['end', 'done']],
  // A handler of Nest or Fastify that is awaited, or Koa's middleware within an Express application: only the response ends
  // the work, but not before what has begun has settled.
  [{ express }, ['enter', 'open'], ['settle', 'open'], ['end', 'done']],
  [{ express }, ['enter', 'open'], ['end', 'ended'], ['fail', 'done']],
  [{ express }, ['enter', 'open'], ['end', 'ended'], ['close', 'ended'], ['settle', 'done']],
  [{ express }, ['close', 'closed'], ['enter', 'closed'], ['fail', 'closed'], ['end', 'done']],

  [{ koa }, ['enter', 'open'], ['settle', 'open'], ['end', 'done'], ['close', 'done']],
  [{ koa }, ['enter', 'open'], ['end', 'ended'], ['settle', 'done']],
  [{ koa }, ['enter', 'open'], ['end', 'ended'], ['close', 'ended'], ['settle', 'done']],
  [{ koa }, ['enter', 'open'], ['fail', 'done'], ['end', 'done']],
  [{ koa }, ['enter', 'open'], ['close', 'closed'], ['settle', 'done']],
  [{ koa }, ['enter', 'open'], ['close', 'closed'], ['end', 'ended'], ['settle', 'done']],
  [{ koa }, ['enter', 'open'], ['settle', 'open'], ['close', 'done']],
  // The end of the response alone is not enough before any middleware has begun.
  [{ koa }, ['end', 'ended'], ['enter', 'ended'], ['settle', 'done']],
  [{ koa }, ['close', 'closed'], ['enter', 'closed'], ['settle', 'done']],
  // The outermost middleware decides, also when it handles the failure of an inner one.
  [{ koa }, ['enter', 'open'], ['enter', 'open'], ['fail', 'open'], ['settle', 'open'], ['end', 'done']],
  [{ koa }, ['enter', 'open'], ['enter', 'open'], ['settle', 'open'], ['fail', 'done']],
  [{ koa }, ['enter', 'open'], ['enter', 'open'], ['end', 'ended'], ['settle', 'ended'], ['settle', 'done']],
  // Middleware that a timeout has overtaken, and that begins another guard.
  [{ koa }, ['enter', 'open'], ['settle', 'open'], ['enter', 'open'], ['end', 'ended'], ['settle', 'done']],

  [{ detached }, ['enter', 'open'], ['settle', 'open'], ['close', 'closed'], ['end', 'done']],
  [{ detached }, ['enter', 'open'], ['close', 'closed'], ['settle', 'closed'], ['end', 'done']],
  [{ detached }, ['enter', 'open'], ['fail', 'done']],
];

describe('The work on a request', () => {
  const named = table.map(([options, ...steps]) => {
    const [[framework, given]] = Object.entries(options) as [[string, typeof detached]];
    const path = steps.map(([step, phase]) => `${step} → ${phase}`).join(', ');
    return { title: `${framework}: ${path}`, given, steps };
  });

  it.each(named)(
    'The work on a request passes through its phases and reports its end once ($title)',
    ({ given, steps }) => {
      let ends = 0;
      const work = new WorkState(given, () => {
        ends += 1;
      });
      expect(work.phase).toBe('open');
      for (const [step, phase] of steps) {
        take(work, step);
        expect([step, work.phase, ends]).toEqual([step, phase, phase === 'done' ? 1 : 0]);
      }
    },
  );
});

function take(work: WorkState, step: Step): void {
  if (step === 'settle' || step === 'fail') work.leave(step === 'fail');
  else work[step]();
}
