import { openQueue } from './queue.ts';

/** Puts a job for each order that is named on the command line. */
async function main(orders: readonly string[]): Promise<void> {
  const queue = openQueue();
  await queue.addBulk(orders.map((order) => ({ name: 'settle', data: { order } })));
  await queue.close();
}

void main(process.argv.slice(2));
