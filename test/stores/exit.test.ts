import { join } from 'node:path';
import { freePort } from '../support/processes/free-port.ts';
import { runScript } from '../support/processes/processes.ts';
import { RedisNodes } from '../support/redis/nodes.ts';

describe('A process that has closed its locks and its clients', () => {
  const run = (...ports: number[]) =>
    runScript(join(__dirname, 'exit-client.ts'), { args: ports.map(String), timeoutMs: 50_000 });

  it('A process ends by itself while no server is there, and while one of a quorum is missing', async () => {
    const redis = new RedisNodes();
    const [nobody] = await Promise.all([freePort(), redis.start(2)]);
    const [alone, quorum] = await Promise.all([run(nobody), run(nobody, ...redis.servers.map(({ port }) => port))]);
    expect(alone).toEqual({ code: 0, stdout: 'ERR_LOCK_STORE', stderr: '' });
    expect(quorum).toEqual({ code: 0, stdout: 'granted', stderr: '' });
    await redis.stop();
  });
});
