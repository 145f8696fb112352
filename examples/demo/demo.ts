import { randomUUID } from 'node:crypto';
import { priceCents } from '../orders/setup.ts';
import { showBoard } from './live.ts';
import type { Moment, Variant } from './moments.ts';
import { type Answer, type OrderState, readOrder, sendAll } from './requests.ts';
import { ServerProcess } from './server-process.ts';
import { countReentries, drawLanes, paint, spanOf } from './timeline.ts';

const units = 3;
const orders = ['42', '43'];
const requests = ['42', '43', '42', '42', '43', '42'];
const isOnRedis = Boolean(process.env.REDIS_URL);

/** What came of sending all requests once. */
interface Round {
  readonly answers: readonly Answer[];
  readonly states: readonly OrderState[];
}

/** Six requests at once on two orders: behind the lock, then behind one that lets everybody in. */
async function main(): Promise<void> {
  const run = `reenlock-demo:${randomUUID()}`;
  const servers = await Promise.all((isOnRedis ? [1, 2] : [1]).map(() => ServerProcess.start(units, run)));
  const locked = await play(servers, 'locked');
  const open = await play(servers, 'open');
  const seen = (await Promise.all(servers.map((server) => server.stop()))).flat();
  const lockedMoments = momentsOf('locked', locked, seen);
  const openMoments = momentsOf('open', open, seen);
  const spanMs = Math.max(spanOf(lockedMoments), spanOf(openMoments));

  print(
    'Six requests at once, four for order 42 and two for order 43; 3 units of each.',
    'Each ships a unit. The guard and the order service lock the order; so does the',
    'inventory below it, and the payment service, which is called over HTTP.',
    '',
    '. waits   # the guard holds   re-entered by: o orders, i inventory, p payments',
    '',
    paint(
      'bold',
      `WITH THE LOCK, ${isOnRedis ? 'in Redis: two server processes, @1 and @2' : 'in memory: one server process'}`,
    ),
    ...drawLanes(locked.answers, lockedMoments, spanMs, isOnRedis),
    '',
    ...verdicts(locked),
    account(locked.answers, lockedMoments),
    '',
    paint('bold', 'WITHOUT IT, the same code and requests: they read before others have written'),
    ...drawLanes(open.answers, openMoments, spanMs, isOnRedis),
    '',
    ...verdicts(open),
  );
  if (!isOnRedis) print('', 'The same over two processes: REDIS_URL=redis://127.0.0.1:6379 npm start');
  if (!locked.states.every((_, index) => isRight(locked, index))) process.exitCode = 1;
  // For people; a script that reads the time line wants its end.
  if (process.stdout.isTTY || process.env.BOARD) await showBoard();
}

async function play(servers: readonly ServerProcess[], variant: Variant): Promise<Round> {
  // A process is slow with its first requests, which would not come at once then.
  const warmUps = requests.map((_, index) => `warm-up-${index}`);
  await sendAll(servers, variant, warmUps, 'w');
  const answers = await sendAll(servers, variant, requests, 'r');
  const states = await Promise.all(orders.map((order) => readOrder(servers[0]!, variant, order)));
  return { answers, states };
}

function momentsOf(variant: Variant, { answers }: Round, seen: readonly Moment[]): Moment[] {
  const traceIds = new Set(answers.map(({ traceId }) => traceId));
  return seen.filter((moment) => moment.variant === variant && traceIds.has(moment.traceId));
}

/** What each order's books say after the round, and whether that is what happened. */
function verdicts(round: Round): string[] {
  return round.states.map(({ stock, charged }, index) => {
    const books = `${shippedOf(round, index)} of ${units} shipped, stock ${stock}, ${euros(charged)} charged`;
    const verdict = isRight(round, index) ? paint('green', 'right') : paint('red', `WRONG: ${complaint(round, index)}`);
    return `order ${orders[index]}  ${books}  ${verdict}`;
  });
}

function isRight(round: Round, index: number): boolean {
  const { stock, charged } = round.states[index]!;
  const shipped = shippedOf(round, index);
  return stock === units - shipped && charged === shipped * priceCents;
}

function complaint(round: Round, index: number): string {
  const shipped = shippedOf(round, index);
  return `should be ${Math.max(0, units - shipped)}, ${euros(Math.min(units, shipped) * priceCents)}`;
}

function shippedOf({ answers }: Round, index: number): number {
  return answers.filter(({ order, status }) => order === orders[index] && status === 201).length;
}

function account(answers: readonly Answer[], moments: readonly Moment[]): string {
  const count = (doing: Moment['doing']): number => moments.filter((moment) => moment.doing === doing).length;
  const reentries = countReentries(answers, moments);
  return `${count('hold')} grants; ${count('enter')} re-entries by HTTP; ${reentries} within a service, without a store call.`;
}

function euros(cents: number): string {
  return (cents / 100).toFixed(2);
}

function print(...lines: string[]): void {
  for (const line of lines) console.log(line === '' ? '' : ` ${line}`);
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exit(1);
});
