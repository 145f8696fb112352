import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import express from 'express';
import { createLocks, type Hold, lock, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { gate } from '../../support/gate.ts';

describe('An application that destroys connections on which clients send garbage', () => {
  it('[client-error-01] A client that sends garbage can’t end the lock of a handler that still works', async () => {
    const locks = createLocks();
    let answer = (): void => {};
    const started = gate();
    const app = express();
    app.use(traceContext({ locks }));
    app.post('/', lockOn('key'), (_req, res) => {
      answer = () => res.end();
      started.open();
    });
    const server = createServer(app as RequestListener);
    const destroyed = new Promise((resolve) => {
      server.on('clientError', (_error, socket: Socket) => {
        socket.once('close', resolve);
        socket.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n');
    await started;
    client.write('garbage\r\n\r\n');
    await destroyed;
    await new Promise((resolve) => setImmediate(resolve));

    const tryNow = (): Promise<Hold | null> => runInTrace(() => lock.tryAcquire('key'), { locks });
    expect(await tryNow()).toBeNull();
    answer();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await tryNow()).not.toBeNull();

    client.destroy();
    await new Promise((resolve) => server.close(resolve));
    await locks.close();
  });
});
