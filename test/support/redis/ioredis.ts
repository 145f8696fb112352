import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import { matrix } from '../matrix.ts';

interface Ioredis {
  readonly Redis: typeof Redis;
  readonly Cluster: typeof Cluster;
}

const load = createRequire(__filename);

/** ioredis by its name: the newest one, and in the whole matrix the oldest that the package knows. */
export const ioredisVersions: readonly (readonly [name: string, ioredis: Ioredis])[] = matrix<
  readonly [string, Ioredis]
>([['ioredis 6', { Redis, Cluster }]], () => [['ioredis 5', load('ioredis5') as Ioredis]]);
