import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../lib/connect.mjs';
import { learnClientShares, timeInCommandsUs } from './command-time.mjs';
import { freePort, superviseServer } from './supervise.mjs';

/**
 * Starts a Redis server on a free loopback port, without persistence. The binary is `REDIS_SERVER`, or else the
 * `redis-server` on the path. `admin` is a connection of the benchmark's own.
 */
export async function startRedis(more = []) {
  const binary = process.env.REDIS_SERVER || 'redis-server';
  const port = await freePort();
  const options = [
    '--port',
    port,
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    tmpdir(),
    ...more,
  ];
  const server = spawn(binary, options.map(String), { stdio: 'ignore' });
  const { stop } = await superviseServer(server, { name: binary, port, stopSignal: 'SIGTERM' });
  const admin = await connect(port);
  const version = (await admin.info('server')).match(/redis_version:(\S+)/)[1];
  const shares = new Map();

  return {
    port,
    admin,
    description: `Redis ${version}`,
    /** Learns from a piece of work of a contender which of the server's commands come from clients. */
    learn: async (name, work) => shares.set(name, await learnClientShares(port, work)),
    usedBy: (name, work) => usedBy(admin, shares.get(name), work),
    /** The processor time that it has used, in µs. */
    cpuUs: async () => cpuUs(await admin.info('cpu')),
    async stop() {
      await admin.quit();
      await stop();
    },
  };
}

/** Starts a cluster of one server, which has all slots. */
export async function startCluster() {
  const folder = mkdtempSync(join(tmpdir(), 'reenlock-bench-'));
  const options = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--dir', folder];
  const server = await startRedis(options);
  await server.admin.cluster('ADDSLOTSRANGE', 0, 16_383);
  while (!/cluster_state:ok/.test(await server.admin.cluster('INFO'))) await sleep(20);
  const stop = () => server.stop().then(() => rmSync(folder, { recursive: true }));
  return { ...server, stop };
}

/** The processor time that the server uses during `work`: in all, and of it the time within commands; in µs. */
async function usedBy(admin, shares, work) {
  const commandsBefore = await admin.info('commandstats');
  const cpuBefore = cpuUs(await admin.info('cpu'));
  const result = await work();
  const serverUs = cpuUs(await admin.info('cpu')) - cpuBefore;
  const commandsAfter = await admin.info('commandstats');
  return { result, serverUs, commandsUs: timeInCommandsUs(commandsBefore, commandsAfter, shares) };
}

function cpuUs(info) {
  const [user, system] = ['user', 'sys'].map((kind) => Number(info.match(new RegExp(`used_cpu_${kind}:(\\S+)`))[1]));
  return (user + system) * 1e6;
}

/** How often the server has run a command, by INFO commandstats. */
export async function callsOf(admin, command) {
  const stats = await admin.info('commandstats');
  return Number(stats.match(new RegExp(`cmdstat_${command}:calls=(\\d+)`))?.[1] ?? 0);
}

/** How many commands the server has run in all, including those inside scripts. */
export async function commandsProcessed(admin) {
  return Number((await admin.info('stats')).match(/total_commands_processed:(\d+)/)[1]);
}
