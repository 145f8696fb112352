import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

const peers = [
  'ioredis',
  'redis',
  'pg',
  'mysql2',
  'redlock',
  'redis-semaphore',
  'express',
  'cls-rtracer',
  'autocannon',
];

/** What the figures were measured on, in one line. */
export function describeMachine(servers) {
  const processor = `${cpus()[0].model.trim()}, ${availableParallelism()} cores`;
  const packages = peers.map((name) => `${name} ${versionOf(name)}`);
  return `${processor}; Node ${process.versions.node}, ${servers.join(', ')}; ${packages.join(', ')}`;
}

function versionOf(name) {
  const manifest = readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), 'utf8');
  return JSON.parse(manifest).version.replace(/^v/, '');
}
