import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

const peers = ['ioredis', 'redlock', 'redis-semaphore', 'express', 'cls-rtracer', 'autocannon'];

/** What the figures were measured on, in a few words each. */
export function describeMachine(redisVersion) {
  return {
    date: new Date().toISOString().slice(0, 10),
    processor: `${cpus()[0].model.trim()}, ${availableParallelism()} cores`,
    node: process.versions.node,
    redis: redisVersion,
    packages: peers.map((name) => `${name} ${versionOf(name)}`).join(', '),
  };
}

function versionOf(name) {
  const manifest = readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url), 'utf8');
  return JSON.parse(manifest).version.replace(/^v/, '');
}
