import { execFileSync } from 'node:child_process';
import { Redis } from 'ioredis';
import { createLocks, type LockError, type LockStore, type Locks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { useRedis } from '../support/redis/redis-stage.ts';
import { root } from './markdown.ts';

// What fails in a job is in `wrong-uses.test.ts`, what fails with a request in `wrong-requests.test.ts`, and names and options
// in the wrong place in `test/core/model/did-you-mean.test.ts`.
describe('The messages of a wrong set-up', () => {
  it.each(['prom-client', '@opentelemetry/api', '@nestjs/common'] as const)(
    '%s that is not installed: the error says what was expected, what came and what to do, and where',
    async (peer) => {
      const error: unknown = await withoutPeer(peer).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code: 'ERR_LOCK_CONFIG',
        message: expect.stringMatching(
          `^Expected \`${peer}\` to be installed for \`reenlock/\\w+\`, got none: npm install ${peer}$`,
        ),
        stack: expect.stringContaining('wrong-setups.test.ts'),
      });
    },
  );

  it.each(['reenlock/ioredis', 'reenlock/postgresql', 'reenlock/dist/core/index.js'])(
    'A subpath that does not exist, %s: Node names the file with the right ones, and the file that asked',
    (subpath) => {
      const code = `import '${subpath}'`;
      const run = () => execFileSync('node', ['--input-type=module', '-e', code], { cwd: root, stdio: 'pipe' });
      expect(run).toThrow(
        new RegExp(
          `Package subpath '\\./${subpath.slice(9)}' is not defined by "exports" in .*package\\.json imported from `,
        ),
      );
    },
  );
});

/** Uses the subpath that needs a peer as if it were not installed. */
async function withoutPeer(peer: 'prom-client' | '@opentelemetry/api' | '@nestjs/common'): Promise<void> {
  await jest.isolateModulesAsync(async () => {
    jest.doMock(peer, () => {
      throw new Error(`Cannot find module '${peer}'`);
    });
    try {
      const locks = {} as Locks;
      if (peer === 'prom-client') (await import('reenlock/prometheus')).collectLockMetrics(locks);
      else if (peer === '@opentelemetry/api') (await import('reenlock/otel')).instrumentLocks(locks);
      else await import('reenlock/nest');
    } finally {
      jest.dontMock(peer);
    }
  });
}

describe('The messages of a store that does not work', () => {
  const stage = useRedis();

  it.each<[use: string, options: () => object, cause: RegExp]>([
    ['no server', () => ({ port: 1 }), /ECONNREFUSED/],
    ['a wrong password', () => ({ port: stage.server.port, username: 'nobody', password: 'wrong' }), /^WRONGPASS/],
  ])('%s: the error says what was not sent, and where, and its cause says why', async (_, options, cause) => {
    const client = new Redis({ ...options(), disconnectTimeout: 0 });
    await new Promise((resolve) => client.on('error', resolve));
    const store: LockStore = new RedisStore({ client });
    const locks = createLocks({ store });
    const error: unknown = await runInTrace(() => lock.acquire('key'), { locks }).catch((reason: unknown) => reason);
    await locks.close({ drainMs: 0 });
    client.disconnect();
    expect(error).toMatchObject({
      message: 'The lock store has no connection: acquire was not sent',
      code: 'ERR_LOCK_STORE',
      status: 503,
      outcome: 'not-applied',
      key: 'key',
      cause: { message: expect.stringMatching(cause) },
    });
    expect((error as LockError).stack).toContain('wrong-setups.test.ts');
  });
});
