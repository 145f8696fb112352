import compression from 'compression';
import helmet from 'helmet';
import { createLocks, LockConfigError } from 'reenlock';
import request from 'supertest';
import { type Above, BoardServer, boardHosts } from '../support/http/boards.ts';

const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
};

describe.each(boardHosts)('The page of the board ($name)', ({ listener, lockBoard }) => {
  const locks = createLocks();
  const ann = { locks, authorize: () => ({ name: 'ann' }) };
  let board: BoardServer;
  afterEach(() => board?.stop());

  /** The page and all that it refers to, as a browser would find it. */
  async function crawl(): Promise<Map<string, request.Response>> {
    const found = new Map<string, request.Response>();
    const open = ['/ops/locks/'];
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      if (found.has(path)) continue;
      const response = await request(board.server).get(path);
      found.set(path, response);
      for (const [, link = ''] of response.text.matchAll(/(?:href="|src="|^import .* from ')([^"']+)["']/gm)) {
        open.push(new URL(link, `http://board${path}`).pathname);
      }
    }
    return found;
  }

  it.each<[string, Above[]]>([
    ['alone', []],
    ['below helmet and compression', [helmet() as Above, compression({ threshold: 0 }) as Above]],
  ])(
    'The page and its files are served under their own security headers, with nothing inline, %s',
    async (_, above) => {
      board = await BoardServer.start(listener(ann, ...above));
      const files = await crawl();
      expect(files.size).toBeGreaterThan(8);
      for (const [path, response] of files) {
        expect([path, response.status]).toEqual([path, 200]);
        expect(response.headers).toMatchObject(headers);
      }
      const types = new Set([...files.values()].map(({ type }) => type));
      expect([...types].sort()).toEqual(['text/css', 'text/html', 'text/javascript']);
      const html = files.get('/ops/locks/')?.text;
      expect(html).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]* src=)|https?:/);
    },
  );

  it('The address without its final slash redirects to the page, also behind a proxy with another path', async () => {
    board = await BoardServer.start(listener(ann));
    const { status, headers: sent } = await request(board.server).get('/ops/locks?x=1');
    expect([status, sent.location]).toEqual([302, './locks/']);
  });

  it('The board leaves every other path to the application', async () => {
    board = await BoardServer.start(listener({ locks, authorize: () => false }));
    for (const path of ['/ops/locks/other', '/ops/locks/index.html', '/ops/locks/../x', '/ops']) {
      const { status, text } = await request(board.server).get(path);
      expect([path, status, text]).toEqual([path, 404, 'not the board']);
    }
  });

  it('The board refuses a user whom `authorize` does not name', async () => {
    for (const nobody of [false, undefined, null, Promise.resolve(false)]) {
      board = await BoardServer.start(listener({ locks, authorize: () => nobody }));
      for (const path of ['/', '/main.mjs', '/stream', '/lock?id=k']) {
        const { status, headers: sent, body } = await request(board.server).get(`/ops/locks${path}`);
        expect([path, status]).toEqual([path, 403]);
        expect(sent).toMatchObject({ ...headers, 'content-type': 'application/problem+json' });
        expect(body).toEqual({ type: 'about:blank', title: 'Forbidden', status: 403, detail: expect.any(String) });
      }
      const { status } = await request(board.server).post('/ops/locks/release').set('Sec-Fetch-Site', 'same-origin');
      expect(status).toBe(403);
      await board.stop();
    }
  });

  it('The board calls `authorize` with the framework’s request, and waits for it', async () => {
    const authorize = async ({ headers: { authorization } }: { headers: { authorization?: string | undefined } }) => {
      await Promise.resolve();
      return authorization === 'Bearer ok' && { name: 'ann' };
    };
    board = await BoardServer.start(listener({ locks, authorize }));
    expect((await request(board.server).get('/ops/locks/')).status).toBe(403);
    expect((await request(board.server).get('/ops/locks/').set('Authorization', 'Bearer ok')).status).toBe(200);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no session');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no session'))],
    ['returns true', () => true],
    ['returns a user without a name', () => ({ mayForceRelease: true })],
  ])('The request fails as the application’s error if `authorize` %s', async (_, authorize) => {
    board = await BoardServer.start(listener({ locks, authorize }));
    expect((await request(board.server).get('/ops/locks/')).status).toBe(500);
  });

  it('A wrong method gets a 405', async () => {
    board = await BoardServer.start(listener(ann));
    const wrong = [
      ['post', '/', 'GET, HEAD'],
      ['head', '/stream', 'GET'],
      ['get', '/release', 'POST'],
      ['delete', '/lock', 'GET, HEAD'],
    ] as const;
    for (const [method, path, allow] of wrong) {
      const { status, headers: sent } = await request(board.server)[method](`/ops/locks${path}`);
      expect([path, status, sent.allow]).toEqual([path, 405, allow]);
    }
    expect((await request(board.server).head('/ops/locks/')).status).toBe(200);
  });

  it.each<[string, object | undefined]>([
    ['no options', undefined],
    ['no `authorize`', { locks }],
    ['an `authorize` that is no function', { authorize: true }],
    ['`locks` that are none', { authorize: () => false, locks: {} }],
    ['`categories` that are no list', { authorize: () => false, categories: 'shop' }],
    ['`maxViewers` of none', { authorize: () => false, maxViewers: 0 }],
    ['an unknown option', { authorize: () => false, readOnly: true }],
  ])('The board refuses %s with a LockConfigError', (_, options) => {
    expect(() => lockBoard(options)).toThrow(LockConfigError);
  });
});
