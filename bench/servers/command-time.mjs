import { once } from 'node:events';
import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';

const samples = 5_000;
const own = new Set(['info', 'monitor']);

/**
 * For each command that the server runs during `work`, the share of its calls that come from clients; the others come from
 * scripts. INFO commandstats counts the time of a command in a script twice, under its own name and under the script's; with
 * the shares it can be counted once. Only the first few thousand calls are looked at: MONITOR slows the server down.
 */
export async function learnClientShares(port, work) {
  const counts = new Map();
  const socket = createConnection(port, '127.0.0.1');
  await once(socket, 'connect');
  let seen = 0;
  // A line is: +1700000000.123456 [0 127.0.0.1:50000] "set" "key" …; of a script, `lua` is in place of the address.
  const onLine = (line) => {
    const [, source, command] = line.match(/^\+[\d.]+ \[\d+ (\S+)\] "([^"]+)"/) ?? [];
    if (command === undefined) return;
    const name = command.toLowerCase();
    const count = counts.get(name) ?? { client: 0, script: 0 };
    counts.set(name, count);
    count[source === 'lua' ? 'script' : 'client'] += 1;
    seen += 1;
    if (seen === samples) socket.destroy();
  };
  createInterface({ input: socket }).on('line', onLine);
  socket.write('MONITOR\r\n');
  await work();
  socket.destroy();
  return new Map([...counts].map(([name, { client, script }]) => [name, client / (client + script)]));
}

/** The time within commands that clients sent, between two replies to INFO commandstats; in µs. */
export function timeInCommandsUs(before, after, shares) {
  const earlier = parse(before);
  let totalUs = 0;
  for (const [name, us] of parse(after)) {
    const [container] = name.split('|');
    if (!own.has(container)) totalUs += (us - (earlier.get(name) ?? 0)) * (shares.get(container) ?? 0);
  }
  return totalUs;
}

function parse(stats) {
  const lines = stats.matchAll(/^cmdstat_([^:]+):calls=\d+,usec=(\d+)/gm);
  return new Map([...lines].map(([, name, us]) => [name, Number(us)]));
}
