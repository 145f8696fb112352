import type { Redis } from 'ioredis';
import { LockStoreError } from '../../../src/core/model/errors.ts';
import { RedisUptime } from '../../../src/core/stores/redis/uptime.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

/** A client whose server has been up for as long as a test says, and answers as late as it says. */
class Server {
  readonly clock = new ManualClock();
  stream: object | undefined = {};
  seconds = 100;
  lateMs = 0;
  asked = 0;
  /** What happens while an answer is on its way. */
  meanwhile: () => void = () => {};

  async info(): Promise<string> {
    this.asked += 1;
    const answer = `# Server\r\nuptime_in_seconds:${this.seconds}\r\n`;
    this.clock.skip(this.lateMs);
    this.meanwhile();
    return answer;
  }
}

describe('the uptime of a server', () => {
  let server: Server;
  let uptime: RedisUptime;

  beforeEach(() => {
    server = new Server();
    uptime = new RedisUptime(server as unknown as Redis, server.clock);
  });

  it('is never told as longer than it is, however long its answer took', async () => {
    server.lateMs = 5_000;
    // Of 100 whole seconds, both ends were cut: it may be 99.
    expect(await uptime.uptimeMs()).toBe(99_000);
    server.clock.skip(1_000);
    expect(await uptime.uptimeMs()).toBe(100_000);
    expect(server.asked).toBe(1);
  });

  it('is nothing for a server that has just started', async () => {
    server.seconds = 0;
    expect(await uptime.uptimeMs()).toBe(0);
  });

  it.each<[string, object]>([
    ['is a cluster, which has no one answer', { isCluster: true, info: async () => 'uptime_in_seconds:100' }],
    ['does not say', { info: async () => '# Server' }],
    ['fails', { info: () => Promise.reject(new Error('Connection is closed.')) }],
  ])('is a LockStoreError where the client %s', async (_, client) => {
    await expect(new RedisUptime(client as Redis, server.clock).uptimeMs()).rejects.toBeInstanceOf(LockStoreError);
  });

  it('is counted from the first answer on where the server’s clock was set back behind its start', async () => {
    server.seconds = -86_400;
    expect(await uptime.uptimeMs()).toBe(0);
    server.clock.skip(5_000);
    expect(await uptime.uptimeMs()).toBe(5_000);
  });

  it('goes on by the monotonic clock', async () => {
    await uptime.uptimeMs();
    server.clock.jumpWall(3_600_000);
    expect(await uptime.uptimeMs()).toBe(99_000);
  });

  it('is asked for anew on another connection, which may be to a server that restarted', async () => {
    await uptime.uptimeMs();
    server.stream = {};
    server.seconds = 3;
    expect(await uptime.uptimeMs()).toBe(2_000);
  });

  it('is not kept where the connection changed before the answer came', async () => {
    server.meanwhile = () => {
      server.stream = {};
    };
    await uptime.uptimeMs();
    server.meanwhile = () => {};
    server.seconds = 3;
    expect(await uptime.uptimeMs()).toBe(2_000);
  });

  it('is not kept where there was no connection yet', async () => {
    server.stream = undefined;
    await uptime.uptimeMs();
    server.seconds = 3;
    expect(await uptime.uptimeMs()).toBe(2_000);
  });
});
