import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Example, stopExamples } from './example.ts';

const path = '/orders/42/invoice';

/** Begins an upload that goes on until its `end` is called. */
function beginUpload(url: string): { upload: ClientRequest; answer: Promise<IncomingMessage> } {
  const upload = request(url, { method: 'PUT', agent: false });
  const answer = new Promise<IncomingMessage>((resolve, reject) => upload.on('response', resolve).on('error', reject));
  upload.write('first half, ');
  return { upload, answer };
}

describe('shutdown/server.ts', () => {
  afterEach(stopExamples);

  it('on SIGTERM lets the holder finish, responds to the waiters with 503, takes nobody new and exits with 0', async () => {
    const example = await Example.start('shutdown/server.ts');
    const { upload, answer } = beginUpload(example.url(path));
    await example.line(/^order:42 is held$/);
    const waiters = [1, 2].map(() => fetch(example.url(path), { method: 'PUT', body: 'other' }));
    await example.line(/^order:42 has a waiter$/, 2);

    example.kill('SIGTERM');
    for (const { status, headers } of await Promise.all(waiters)) {
      expect(status).toBe(503);
      expect(headers.get('retry-after')).toBe('1');
      expect(headers.get('content-type')).toBe('application/problem+json');
    }
    // A connection of its own: one that is still open gets the 503, too.
    await expect(beginUpload(example.url(path)).answer).rejects.toThrow('ECONNREFUSED');
    expect(example.lines).not.toContain('Closed');

    upload.end('second half');
    const { statusCode } = (await answer).resume();
    expect(statusCode).toBe(200);
    expect((await example.exited).code).toBe(0);
    expect(example.lines.slice(-2)).toEqual(['order:42 is free', 'Closed']);
  });
});
