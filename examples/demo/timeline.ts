import { styleText } from 'node:util';
import type { Doing, Moment } from './moments.ts';
import type { Answer } from './requests.ts';

const marks: Readonly<Record<Doing, string>> = {
  wait: '.',
  hold: '#',
  orders: 'o',
  inventory: 'i',
  enter: 'p',
  payments: 'p',
  leave: ' ',
};

const labels: Readonly<Record<number, string>> = { 201: '201 shipped', 409: '409 none left' };
const labelColumns = 16;
const statusColumns = 13;
/** The space at the begin of each line, and two before the status. */
const gapColumns = 3;
const laneColumns = { least: 20, most: 62 };
/** Of a terminal, if nobody is at one. */
const usualColumns = 80;

/** How long it took from the first moment to the last, in milliseconds. */
export function spanOf(moments: readonly Moment[]): number {
  const times = moments.map(({ atMs }) => atMs);
  return Math.max(...times) - Math.min(...times);
}

/** One lane a request: by order, then by who got the lock first. The columns stand for `spanMs`. */
export function drawLanes(
  answers: readonly Answer[],
  moments: readonly Moment[],
  spanMs: number,
  showsServer: boolean,
): string[] {
  const lanes = answers.map((answer) => ({ answer, own: momentsOf(answer, moments) }));
  lanes.sort((a, b) => a.answer.order.localeCompare(b.answer.order) || heldAt(a.own) - heldAt(b.own));
  const startMs = Math.min(...moments.map(({ atMs }) => atMs));
  const width = laneWidth();
  const rows = lanes.map(({ answer, own }, index) => {
    const order = answer.order === lanes[index - 1]?.answer.order ? '' : `order ${answer.order}`;
    const label = `${order.padEnd(10)}${answer.traceId}${showsServer ? ` @${answer.server}` : ''}`;
    const lane = drawLane(own, startMs, spanMs, width);
    return `${label.padEnd(labelColumns)}${colored(lane)}  ${labels[answer.status] ?? answer.status}`;
  });
  return [paint('dim', axis(spanMs, width)), ...rows];
}

/** How often a service of the same process locked an order that its request held already. */
export function countReentries(answers: readonly Answer[], moments: readonly Moment[]): number {
  const isReentry = ({ doing, holds }: Moment, index: number, own: readonly Moment[]): boolean =>
    // Fewer holds than before: a service has ended, and the one that called it goes on.
    holds > 1 && doing !== own[index - 1]?.doing && holds >= (own[index - 1]?.holds ?? 0);
  const isHere = ({ doing }: Moment): boolean => doing !== 'enter' && doing !== 'payments';
  return answers.flatMap((answer) => momentsOf(answer, moments).filter(isHere).filter(isReentry)).length;
}

/** Colour for people, plain text for pipes and files. */
export function paint(style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text;
}

function momentsOf({ traceId }: Answer, moments: readonly Moment[]): Moment[] {
  return moments.filter((moment) => moment.traceId === traceId).sort((a, b) => a.atMs - b.atMs);
}

function heldAt(moments: readonly Moment[]): number {
  return moments.find(({ doing }) => doing === 'hold')?.atMs ?? Number.POSITIVE_INFINITY;
}

/** As wide as the terminal lets a lane be: a line that is broken in two shows nothing. */
function laneWidth(): number {
  const room = (process.stdout.columns ?? usualColumns) - labelColumns - statusColumns - gapColumns;
  return Math.max(laneColumns.least, Math.min(laneColumns.most, room));
}

/** What each moment began lasts until the next, and takes one column at least, however short it was. */
function drawLane(moments: readonly Moment[], startMs: number, spanMs: number, width: number): string {
  let lane = '';
  moments.forEach(({ atMs }, index) => {
    const column = Math.round(((atMs - startMs) / spanMs) * width);
    const before = moments[index - 1];
    lane =
      before === undefined ? ' '.repeat(column) : lane.padEnd(Math.max(column, lane.length + 1), marks[before.doing]);
  });
  return lane.slice(0, width).padEnd(width);
}

function axis(spanMs: number, width: number): string {
  return `${' '.repeat(labelColumns)}0 ms${`${Math.round(spanMs)} ms`.padStart(width - '0 ms'.length)}`;
}

function colored(lane: string): string {
  return lane.replace(/\.+/, (waits) => paint('yellow', waits)).replace(/[#oip]+/, (holds) => paint('green', holds));
}
