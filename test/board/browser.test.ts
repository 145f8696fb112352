import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import {
  createLocks,
  currentTrace,
  type Hold,
  type LockEvents,
  type Locks,
  lock,
  MemoryStore,
  runInTrace,
  traceHeaders,
} from 'reenlock';
import { systemClock } from '../../src/core/base/clock.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { type Gate, gate } from '../support/gate.ts';
import { type Above, type BoardHost, type BoardOptions, BoardServer, boardHosts } from '../support/http/boards.ts';
import { installMs, launchBrowser } from '../support/http/browser.ts';
import { FakeStore } from '../support/stores/fake-store.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

// A browser on a machine that others use, too, takes seconds for what it does in milliseconds.
jest.setTimeout(60_000);

const pictureFile = join(__dirname, '../../docs/observe/board.webp');

let browser: Browser;

/** A server with a board, and a browser that looks at it. */
class Scene {
  readonly store = new FakeStore(systemClock);
  readonly locks: Locks = createLocks({ store: this.store });
  readonly forced: LockEvents['forced'][] = [];
  /** What the browser complained of. */
  readonly complaints: string[] = [];
  readonly isOver: Gate = gate();
  readonly #host: BoardHost;
  readonly #options: BoardOptions;
  readonly #above: readonly Above[];
  readonly #jobs: Job[] = [];
  readonly #contexts: BrowserContext[] = [];
  server!: BoardServer;

  private constructor(host: BoardHost, options: Partial<BoardOptions>, above: readonly Above[]) {
    this.locks.on('forced', (event) => void this.forced.push(event));
    this.#host = host;
    this.#options = { locks: this.locks, authorize: () => ({ name: 'ann', mayForceRelease: true }), ...options };
    this.#above = above;
  }

  static async start(host: BoardHost, options: Partial<BoardOptions> = {}, ...above: Above[]): Promise<Scene> {
    const scene = new Scene(host, options, above);
    scenes.push(scene);
    await scene.serve();
    return scene;
  }

  async serve(port = 0): Promise<void> {
    this.server = await BoardServer.start(this.#host.listener(this.#options, ...this.#above), port);
  }

  async visit(options: Parameters<Browser['newContext']>[0] = {}, path = '/ops/locks'): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
    page.on('pageerror', (error) => void this.complaints.push(String(error)));
    page.on('dialog', (dialog) => void this.complaints.push(`dialog ${dialog.message()}`));
    await page.goto(this.server.url(path));
    return page;
  }

  /** Without a name, its branches have paths that the store knows. */
  job(traceId?: string): Job & { readonly traceId: string | undefined } {
    const job = startJob(this.locks, traceId);
    this.#jobs.push(job);
    return { ...job, traceId: job.in(() => currentTrace()?.traceId) };
  }

  hold(traceId: string, key: string, options = {}): Promise<Hold> {
    return this.job(traceId).in(() => lock.acquire(key, options));
  }

  /** Resolves once the request stands in the queue. */
  wait(traceId: string, key: string): Promise<void> {
    return this.queued(() => this.hold(traceId, key));
  }

  /** Resolves once an acquire waits. */
  async queued(acquire: () => Promise<unknown>): Promise<void> {
    const stands = new Promise<void>((resolve) => {
      const off = this.locks.on('waiting', () => {
        off();
        resolve();
      });
    });
    // At the end of its job or test it is refused.
    acquire().catch(() => {});
    await stands;
  }

  async end(): Promise<void> {
    this.isOver.open();
    for (const context of this.#contexts) await context.close();
    await this.server.stop();
    const closed = this.locks.close({ drainMs: 0 });
    for (const job of this.#jobs) await job.end();
    await closed;
  }
}

const scenes: Scene[] = [];

/** A request in whose first branch a called service has the key as well, while its second branch waits. */
async function branchesOf(scene: Scene, key: string): Promise<{ traceId: string | undefined; called: string }> {
  const job = scene.job();
  const headers = new Promise<Record<string, string>>((resolve) => {
    const first = () =>
      lock.run(key, async () => {
        resolve(traceHeaders());
        await scene.isOver;
      });
    void job.in(first);
  });
  const request = { headers: new Headers(await headers) };
  const called = await new Promise<string>((resolve) => {
    const service = async (): Promise<void> => {
      resolve((await lock.acquire(key)).branch);
      await scene.isOver;
    };
    void runInTrace(service, { locks: scene.locks, request, trust: 'all' });
  });
  await scene.queued(() => job.in(() => lock.run(key, () => scene.isOver)));
  return { traceId: job.traceId, called };
}

/** What the panel says of a trace, a line for each entry, with its depth. */
function outlineOf(page: Page): Promise<string[]> {
  return panel(page).evaluate((node) => {
    const lines = [...node.querySelectorAll('.family .trace')].map(({ textContent }) => textContent);
    for (const entry of node.querySelectorAll('.family :is(.holder, .wait)')) {
      let depth = 0;
      for (let at = entry.closest('ul'); at; at = at.parentElement?.closest('ul')) depth += 1;
      const isHold = entry.matches('.holder');
      const branch = entry.querySelector(isHold ? 'dd' : '.who > :first-child')?.textContent;
      lines.push(`${'-'.repeat(depth)} ${branch} ${isHold ? 'holds' : entry.querySelector('.remark')?.textContent}`);
    }
    return lines;
  });
}

const row = (page: Page, key: string) => page.getByRole('row').filter({ has: page.getByText(key, { exact: true }) });
const panel = (page: Page) => page.locator('#panel');
const down = { kind: 'rejected', error: new Error('down') } as const;
const live = (page: Page) => page.getByText('Live', { exact: true }).waitFor();

describe('The board in a browser', () => {
  beforeAll(async () => {
    browser = await launchBrowser();
  }, installMs);
  afterAll(() => browser?.close());
  afterEach(async () => {
    for (const scene of scenes.splice(0)) await scene.end();
  });

  const host = boardHosts[0] as BoardHost;

  it('The board shows which request holds order 42, for how long, and its waiters in order of turn', async () => {
    const scene = await Scene.start(host);
    await scene.hold('the-holder', 'order:42', { category: 'shop' });
    const page = await scene.visit();
    await row(page, 'order:42').getByText('the-holder').waitFor();
    expect(await row(page, 'order:42').textContent()).toMatch(/^order:42shopthe-holder.*\d s/);
    await scene.hold('other', 'order:43');
    await scene.wait('first-waiter', 'order:43');
    await scene.wait('second-waiter', 'order:43');
    await page.getByRole('button', { name: 'order:43' }).click();
    await panel(page).getByText('2 requests wait for it').waitFor();
    expect(await panel(page).locator('#holders').textContent()).toMatch(/^Traceother.*Held for\d/);
    expect(await panel(page).getByRole('listitem').allTextContents()).toEqual([
      expect.stringMatching(/^first-waiter.*\d s$/),
      expect.stringMatching(/^second-waiter.*\d s$/),
    ]);
    expect(scene.complaints).toEqual([]);
  });

  it('The board shows branches of a request below each other, and which one waits for which', async () => {
    const scene = await Scene.start(host);
    const order = await branchesOf(scene, 'order:42');
    await scene.wait('a-stranger', 'order:42');
    const page = await scene.visit();
    await row(page, 'order:42').locator('.queue').getByText('2', { exact: true }).waitFor();
    expect(await row(page, 'order:42').locator('.name').first().textContent()).toBe(`${order.traceId}/1`);
    await page.getByRole('button', { name: 'order:42' }).click();
    await panel(page).getByText('2 requests wait for it').waitFor();
    expect(await outlineOf(page)).toEqual([
      `Trace ${order.traceId}`,
      '- 1 holds',
      `-- ${order.called} holds`,
      `- 2 waits for branch 1, branch ${order.called}, number 1 in the queue`,
    ]);
    expect(await panel(page).locator('#waiters .remark').allTextContents()).toEqual([
      expect.stringMatching(`waits for branch 1, branch ${order.called} of its own trace$`),
      expect.not.stringMatching('waits'),
    ]);
    const job = scene.job();
    await job.in(() => lock.acquire('stock:7'));
    await scene.queued(() => job.in(() => Promise.all([1, 2].map(() => lock.run('stock:7', () => scene.isOver)))));
    await page.getByRole('button', { name: 'stock:7' }).click();
    await panel(page).getByText('Nobody else waits for it').waitFor();
    expect(await outlineOf(page)).toEqual([
      `Trace ${job.traceId}`,
      '- root holds',
      '-- 1 waits for another branch, in this process',
    ]);
    const deep = (): Promise<void> => lock.run('deep', () => scene.isOver);
    const nested = scene.job();
    void nested.in(() => lock.run('outer', () => lock.run('inner', deep)));
    await row(page, 'deep').waitFor();
    const name = row(page, 'deep').locator('.name').first();
    expect(await name.textContent()).toBe(`${nested.traceId}/1/…/3`);
    expect(await name.getAttribute('title')).toBe(`${nested.traceId}/1/2/3`);
    expect(scene.complaints).toEqual([]);
  });

  // The page is the same on every framework: this has each of them serve all that the page asks for.
  it.each(boardHosts)(
    'The board releases a lock with a reason and two clicks, and shows that, on $name',
    async (host) => {
      const scene = await Scene.start(host);
      const { fence } = await scene.hold('the-holder', 'order:42');
      await scene.wait('the-waiter', 'order:42');
      const page = await scene.visit();
      await page.getByRole('button', { name: 'order:42' }).click();
      await page.getByRole('button', { name: 'Force release…' }).click();
      const release = page.getByRole('button', { name: 'Release the lock' });
      expect(await release.isDisabled()).toBe(true);
      await page.getByLabel('Reason').fill('stuck for an hour');
      await release.click();
      await panel(page).locator('#holders').getByText('the-waiter').waitFor();
      await row(page, 'order:42').getByText('the-waiter').waitFor();
      expect(scene.forced).toEqual([
        { key: 'order:42', category: undefined, fence, by: 'ann', reason: 'stuck for an hour' },
      ]);
      expect(await page.locator('#announcement').textContent()).toBe('order:42 was released');
      expect(scene.complaints).toEqual([]);
    },
  );

  it('The board does not release a lock that changed hands between the look and the click', async () => {
    const scene = await Scene.start(host);
    const job = scene.job('the-holder');
    await job.in(() => lock.acquire('order:42'));
    await scene.wait('the-waiter', 'order:42');
    const page = await scene.visit();
    await page.getByRole('button', { name: 'order:42' }).click();
    await page.getByRole('button', { name: 'Force release…' }).click();
    await job.in(() => lock.release('order:42'));
    await page.getByLabel('Reason').fill('stuck');
    const reply = page.waitForResponse(/\/release$/);
    await page.getByRole('button', { name: 'Release the lock' }).click();
    expect((await reply).status()).toBe(409);
    await page.getByText('The lock has changed hands since you looked. Nothing was released.').waitFor();
    expect((await scene.locks.inspect('order:42')).holds).toMatchObject([{ traceId: 'the-waiter', branch: '' }]);
    expect(scene.forced).toEqual([]);
  });

  it('The board offers no release to a user without that right', async () => {
    const scene = await Scene.start(host, { authorize: () => ({ name: 'bob' }) });
    await scene.hold('the-holder', 'order:42');
    const page = await scene.visit();
    await page.getByText('bob · read-only').waitFor();
    await page.getByRole('button', { name: 'order:42' }).click();
    await page.getByText('You may look, but not release.').waitFor();
    expect(await page.getByRole('button', { name: 'Force release…' }).isVisible()).toBe(false);
  });

  it('The board shows no number before the store has replied, and says so when there is no lock', async () => {
    const scene = await Scene.start(host);
    scene.store.always('list', down);
    const page = await scene.visit();
    const totals = () => page.locator('#totals dd').allTextContents();
    await page.getByText('The store does not reply', { exact: true }).waitFor();
    await page.getByText(/^The lock store has not replied since [^.]*\.$/).waitFor();
    await page.getByText('No lock is known yet.').waitFor();
    expect(await totals()).toEqual(['–', '–', '–', '–']);
    expect(await page.locator('#scan').textContent()).toBe('');
    scene.store.heal();
    await page.getByText('Nobody holds a lock now, and nobody waits for one.').waitFor();
    await live(page);
    await page.getByText('0 locks', { exact: true }).waitFor();
    expect(await totals()).toEqual(['0', '0', '–', '–']);
    scene.store.always('list', down);
    await page.getByText(/^The lock store has not replied since .*\. This page is out of date\.$/).waitFor();
    expect(scene.complaints).toEqual([]);
  });

  it('A phone scrolls to the lock that it opens, and a long key leaves its category readable', async () => {
    const scene = await Scene.start(host);
    const key = `tenant/${'9'.repeat(120)}`;
    await scene.hold('the-holder', key, { category: 'inventory' });
    const page = await scene.visit();
    const category = page.locator('.line .category');
    await category.waitFor();
    expect(await category.evaluate((node) => node.scrollWidth > node.clientWidth)).toBe(false);
    await page.setViewportSize({ width: 390, height: 600 });
    await page.getByRole('button', { name: key }).click();
    await panel(page).getByText('the-holder').waitFor();
    const top = () => panel(page).evaluate((node) => node.getBoundingClientRect().top);
    await until(async () => (await top()) < 300);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect(width).toBe(390);
  });

  it.each([1280, 390])(
    'The button that releases a lock is in view however many wait for it, below a notice as well, %d px wide',
    async (width) => {
      const scene = await Scene.start(host);
      await scene.hold('the-holder', 'order:42');
      for (let n = 0; n < 20; n++) await scene.wait(`waiter-${n}`, 'order:42');
      const page = await scene.visit({ viewport: { width, height: 700 } });
      await page.getByRole('button', { name: 'order:42' }).click();
      await panel(page).getByText('20 requests wait for it').waitFor();
      const button = page.getByRole('button', { name: 'Force release…' });
      // All four corners, a little within the rounding.
      const isWhole = () =>
        button.evaluate((node) => {
          const { left, right, top, bottom } = node.getBoundingClientRect();
          const corners = [left + 4, right - 4].flatMap((x) => [top + 4, bottom - 4].map((y) => [x, y] as const));
          return corners.every(([x, y]) => node.ownerDocument.elementFromPoint(x, y) === node);
        });
      await until(isWhole);
      await panel(page).getByText('waiter-19').scrollIntoViewIfNeeded();
      expect(await isWhole()).toBe(true);
      for (const operation of ['list', 'inspect'] as const) scene.store.always(operation, down);
      await page.getByText(/This page is out of date/).waitFor();
      await page.evaluate('scrollTo(0, 0)');
      expect(await isWhole()).toBe(true);
    },
  );

  it('The board reconnects after a restart of the server and shows the present state', async () => {
    const scene = await Scene.start(host);
    const held = await scene.hold('the-holder', 'order:42');
    const page = await scene.visit();
    await row(page, 'order:42').waitFor();
    const { port } = scene.server;
    await scene.server.stop();
    await page.getByText(/^Connection lost, trying again/).waitFor();
    await held.release();
    await scene.hold('later', 'order:43');
    await scene.serve(port);
    await live(page);
    await row(page, 'order:43').getByText('later').waitFor();
    expect(await row(page, 'order:42').count()).toBe(0);
  });

  it('The board shows a key, a category and a trace as text only', async () => {
    const scene = await Scene.start(host, {
      authorize: () => ({ name: '<b onmouseover="window.isHacked=1">ann</b>', mayForceRelease: true }),
    });
    const evil = [
      '<img src=x onerror="window.isHacked=1">',
      '"><script>window.isHacked=1</script>',
      'javascript:window.isHacked=1//\'"`${window.isHacked=1}',
      '</td><td onclick=window.isHacked=1>',
      '\u202eevil\u0000\n<svg/onload=window.isHacked=1>',
    ];
    for (const key of evil) await scene.hold('holder', key, { category: `${key}!` });
    const page = await scene.visit();
    await until(async () => (await page.locator('tbody tr').count()) === evil.length);
    const keys = await page.locator('.key').allTextContents();
    expect(keys.sort()).toEqual([...evil].sort());
    expect((await page.locator('#category option').allTextContents()).sort()).toEqual(
      ['All', ...evil.map((key) => `${key}!`)].sort(),
    );
    for (const key of evil) {
      await page.locator('.key').nth(keys.indexOf(key)).click();
      await panel(page).locator('h2').waitFor();
      await page.getByRole('button', { name: 'Force release…' }).click();
      await page.getByRole('button', { name: 'Cancel' }).click();
    }
    expect(await page.evaluate('window.isHacked')).toBeUndefined();
    expect(await page.locator('img, td script, svg, [onclick], [onmouseover]').count()).toBe(0);
    expect(scene.complaints).toEqual([]);
  });

  it('The board refuses every kind of request that a page of another site can send', async () => {
    const scene = await Scene.start(host);
    const held = await scene.hold('the-holder', 'k');
    const page = await scene.visit();
    // Another site in the sense of browsers: the name differs, and cookies would be sent along.
    const url = scene.server.url('/ops/locks/release');
    await page.goto(url.replace('127.0.0.1', 'localhost').replace('/ops/locks/release', '/elsewhere'));
    const statuses: number[] = [];
    page.on('response', (response) => {
      if (response.url() === url && response.request().method() === 'POST') statuses.push(response.status());
    });
    const body = JSON.stringify({ id: 'k', fence: held.fence, reason: 'evil' });
    const attempts = [
      `fetch(${JSON.stringify(url)}, { method: 'POST', mode: 'no-cors', body: ${JSON.stringify(body)} })`,
      `fetch(${JSON.stringify(url)}, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: ${JSON.stringify(body)} })`,
      `navigator.sendBeacon(${JSON.stringify(url)}, ${JSON.stringify(body)})`,
    ];
    for (const attempt of attempts) await page.evaluate(`Promise.resolve(${attempt}).catch(() => {})`);
    await page.evaluate(`(() => {
      const form = document.createElement('form');
      Object.assign(form, { method: 'POST', action: ${JSON.stringify(url)}, enctype: 'text/plain' });
      const field = document.createElement('input');
      field.name = ${JSON.stringify(body.slice(0, -1))};
      field.value = '}';
      form.append(field);
      document.body.append(form);
      form.submit();
    })()`);
    await page.waitForURL(url);
    expect(statuses.length).toBeGreaterThanOrEqual(2);
    expect(new Set(statuses)).toEqual(new Set([403]));
    expect([held.isHeld(), scene.forced]).toEqual([true, []]);
  });

  it.each(['light', 'dark'] as const)('axe-core finds no fault with the board, in the %s', async (colorScheme) => {
    const scene = await Scene.start(host);
    await scene.hold('the-holder', 'order:42', { category: 'shop' });
    await scene.hold('a-reader', 'order:43', { mode: 'read' });
    await scene.hold('a-printer', 'pool', { permits: 3 });
    await scene.wait('the-waiter', 'order:43');
    await branchesOf(scene, 'order:44');
    // What checks the page is a script of its own.
    const page = await scene.visit({ colorScheme, bypassCSP: true });
    await row(page, 'order:43').waitFor();
    const axe = readFileSync(createRequire(__filename).resolve('axe-core/axe.min.js'), 'utf8');
    await page.evaluate(axe);
    const faults = async () => {
      const { violations } = (await page.evaluate('axe.run()')) as AxeResults;
      return violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)]);
    };
    expect(await faults()).toEqual([]);
    await page.getByRole('button', { name: 'order:43' }).click();
    await panel(page).getByText('1 request waits for it').waitFor();
    expect(await faults()).toEqual([]);
    await page.getByRole('button', { name: 'pool' }).click();
    await panel(page).getByText('one of 3 permits').waitFor();
    expect(await faults()).toEqual([]);
    await page.getByRole('button', { name: 'order:44' }).click();
    await panel(page).locator('.tree .tree').waitFor();
    expect(await faults()).toEqual([]);
    await page.getByRole('button', { name: 'order:43' }).click();
    await page.getByRole('button', { name: 'Force release…' }).click();
    expect(await faults()).toEqual([]);
    await page.getByLabel('Reason').fill('stuck');
    expect(await faults()).toEqual([]);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByLabel('Find').fill('nothing');
    await page.getByText('No lock matches.').waitFor();
    expect(await faults()).toEqual([]);
    await scene.server.stop();
    await page.getByText(/^Connection lost/).waitFor();
    expect(await faults()).toEqual([]);
  });

  it('The board can be used with the keyboard alone', async () => {
    const scene = await Scene.start(host);
    for (const key of ['order:1', 'order:2', 'order:3']) await scene.hold(`holder-of-${key.slice(-1)}`, key);
    const page = await scene.visit();
    await row(page, 'order:3').waitFor();
    const focused = () => page.evaluate('document.activeElement.id || document.activeElement.textContent');
    await page.keyboard.press('/');
    expect(await focused()).toBe('text');
    await page.keyboard.type('order:');
    // Past the category, the box and the heads of seven columns, to the first line: the longest hold.
    for (let i = 0; i < 10; i++) await page.keyboard.press('Tab');
    expect(await focused()).toBe('order:1');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toBe('order:2');
    await page.keyboard.press('Enter');
    await panel(page).getByText('holder-of-2').waitFor();
    expect(await focused()).toBe('panel-key');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('ask-release');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('reason');
    await page.keyboard.press('Escape');
    expect(await focused()).toBe('ask-release');
    await page.keyboard.press('Escape');
    expect(await panel(page).isVisible()).toBe(false);
    expect(await focused()).toBe('order:2');
  });

  it('The board filters by words, category and waiters, and sorts by each column', async () => {
    const scene = await Scene.start(host);
    await scene.hold('zoe', 'order:1');
    await scene.hold('ann', 'order:2', { category: 'shop' });
    await scene.hold('bob', 'stock:1', { category: 'shop' });
    await scene.wait('waits-for-order-1', 'order:1');
    const page = await scene.visit();
    const keys = () => page.locator('.key').allTextContents();
    const shows = (...wanted: string[]) => until(keys, (seen) => seen.join() === wanted.join());
    await shows('order:1', 'order:2', 'stock:1');
    const sort = page.getByRole('columnheader', { name: 'Held by' });
    await sort.getByRole('button').click();
    await shows('order:2', 'stock:1', 'order:1');
    expect(await sort.getAttribute('aria-sort')).toBe('ascending');
    await sort.getByRole('button').click();
    await shows('order:1', 'stock:1', 'order:2');
    expect(await sort.getAttribute('aria-sort')).toBe('descending');
    await page.getByLabel('Find').fill('WAITS-FOR');
    await shows('order:1');
    await page.getByLabel('Find').fill('stock');
    await shows('stock:1');
    await page.getByText('1 of 3 locks').waitFor();
    await page.getByLabel('Find').fill('');
    await page.getByLabel('Category').selectOption('shop');
    await shows('stock:1', 'order:2');
    await page.getByLabel('Category').selectOption('Without');
    await shows('order:1');
    await page.getByLabel('Category').selectOption('All');
    await page.getByLabel('Only with waiters').check();
    await shows('order:1');
  });

  it('On a phone, the board shows whole keys and every column, and needs no scrolling to the side', async () => {
    const scene = await Scene.start(host);
    const keys = [1, 2, 3].map((n) => `order:4271-8890-lines-in-warehouse-${n}`);
    for (const key of keys) await scene.hold('the-holder-of-a-long-name', key);
    await scene.wait('the-waiter', keys[0]!);
    const page = await scene.visit({ viewport: { width: 390, height: 844 } });
    await row(page, keys[0]!).locator('.queue').getByText('1', { exact: true }).waitFor();
    const cut = `[...document.querySelectorAll('.line :is(th, td, .key)')]
      .filter((cell) => cell.checkVisibility() === false || cell.scrollWidth > cell.clientWidth + 1 && cell.clientWidth > 0)
      .map((cell) => cell.textContent)`;
    expect(await page.evaluate(cut)).toEqual([]);
    expect(await page.evaluate("document.querySelector('.line').children.length")).toBe(7);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await page.evaluate("document.querySelector('#list').scrollWidth <= 390")).toBe(true);
    // Where the text of each begins: the time left of the lease above the longest wait.
    const lefts = `[4, 6].map((n) => {
      const range = document.createRange();
      range.selectNodeContents(document.querySelector('.line').children[n]);
      return range.getBoundingClientRect().left;
    })`;
    const [lease, wait] = (await page.evaluate(lefts)) as number[];
    expect(wait).toBe(lease);
  });

  it('No row moves while the pointer is over the table: they are put in order when it has left', async () => {
    const scene = await Scene.start(host);
    const released = await scene.hold('ann', 'order:1');
    await scene.hold('bob', 'order:2');
    await scene.hold('cyd', 'order:3');
    const page = await scene.visit();
    const keys = () => page.locator('.key').allTextContents();
    const shows = (...wanted: string[]) => until(keys, (seen) => seen.join() === wanted.join());
    await shows('order:1', 'order:2', 'order:3');
    await page.getByRole('button', { name: 'order:2' }).hover();
    await scene.wait('the-waiter', 'order:3');
    await row(page, 'order:3').locator('.queue').getByText('1', { exact: true }).waitFor();
    await released.release();
    await page.locator('.gone').getByText('order:1').waitFor();
    await page.getByText('2 locks', { exact: true }).waitFor();
    expect(await keys()).toEqual(['order:1', 'order:2', 'order:3']);
    await page.mouse.move(0, 0);
    await shows('order:3', 'order:2');
  });

  it('The board opens the lock that its address names, and its address names the lock that is open', async () => {
    const scene = await Scene.start(host);
    await scene.hold('the-holder', 'a key|with = signs/&?#', { category: 'a%b' });
    const page = await scene.visit();
    await page.locator('.key').click();
    await panel(page).getByText('the-holder').waitFor();
    const address = page.url();
    expect(address).toMatch(/#lock=/);
    await page.getByRole('button', { name: 'Close' }).click();
    expect(page.url()).not.toContain('#');
    await page.goto(address);
    await panel(page).getByText('the-holder').waitFor();
    expect(await panel(page).locator('h2').textContent()).toBe('a key|with = signs/&?#');
  });

  // PICTURE=write keeps it: fonts and browsers differ, so that two machines never make quite the same.
  it('The documents have the board’s picture: order 42, its holder and its waiters', async () => {
    const clock = new ManualClock();
    const store = new MemoryStore({ clock });
    const all = [1, 2, 3].map((n) => createLocks({ store, instance: `orders-7d9f-${n}:1`, leaseMs: 120_000 }));
    const scene = await Scene.start(host, { locks: all[0] as Locks });
    const jobs: Job[] = [];
    const acquire = (n: number, traceId: string, key: string, options = {}): Promise<Hold> => {
      const job = startJob(all[n] as Locks, traceId);
      jobs.push(job);
      return job.in(() => lock.acquire(key, { category: 'orders', waitMs: 60_000, ...options }));
    };
    await acquire(0, '7f3a9c02e1b84d5f', 'order:42');
    clock.skip(23_400);
    for (let i = 0; i < 9; i++) {
      await acquire(i % 3, `${(i * 7_919 + 41_233).toString(16)}c0ffee0${i}a5`, `order:${50 + 3 * i}`);
      clock.skip(1_900);
    }
    await acquire(1, 'e02b77d1a94c3f60', 'stock:lamp', { category: 'stock', mode: 'read' });
    await acquire(2, 'b81d5c7702aa9e34', 'stock:lamp', { category: 'stock', mode: 'read' });
    for (const [n, traceId, key] of [
      [1, '2c5e80a97bd14f36', 'order:42'],
      [2, '91d40f6ce37a2b58', 'order:42'],
      [0, 'd6a1738b05ef49c2', 'order:42'],
      [2, '5b90ce24f81d7a63', 'order:56'],
    ] as const) {
      acquire(n, traceId, key).catch(() => {});
      await until(async () => (await store.inspect(`orders|${key}`)).waiters.some(({ owner }) => owner === traceId));
      clock.skip(1_300);
    }
    try {
      const page = await scene.visit();
      await row(page, 'order:42').locator('.queue').getByText('3', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'order:42' }).click();
      await panel(page).getByText('3 requests wait for it').waitFor();
      await page.mouse.move(0, 0);
      const picture = await pictureOf(page);
      if (process.env.PICTURE === 'write') writeFileSync(pictureFile, picture);
      expect(sizeOf(readFileSync(pictureFile))).toEqual(sizeOf(picture));
    } finally {
      for (const locks of all.slice(1)) await locks.close({ drainMs: 0 });
      for (const job of jobs) await job.end();
      await (all[0] as Locks).close({ drainMs: 0 });
    }
  });

  it('With 1,000 locks, a change touches only its own rows, and the clock only the visible ones', async () => {
    const scene = await Scene.start(host);
    const job = scene.job('holder');
    for (let i = 0; i < 1_000; i++) await job.in(() => lock.acquire(`key:${i}`, { leaseMs: 300_000 }));
    const page = await scene.visit();
    await page.getByText('1,000 locks', { exact: true }).waitFor();
    await until(async () => (await page.locator('.line').count()) === 1_000);
    // Each frame makes a part of the lines.
    await page.evaluate(`
      window.touched = new Set();
      window.added = 0;
      new MutationObserver((changes) => {
        for (const { target, addedNodes, type } of changes) {
          const line = target.nodeType === 1 ? target.closest('.line') : target.parentElement?.closest('.line');
          if (line) window.touched.add(line.dataset.id);
          if (type === 'childList' && target.tagName === 'TBODY') window.added += addedNodes.length;
        }
      }).observe(document.querySelector('tbody'), { subtree: true, childList: true, characterData: true });
    `);
    const inView = (await page.evaluate(
      "[...document.querySelectorAll('.line')].filter((line) => line.getBoundingClientRect().top < innerHeight).length",
    )) as number;
    await until(async () => (await page.evaluate('window.touched.size')) !== 0);
    await scene.wait('the-waiter', 'key:900');
    await row(page, 'key:900').locator('.queue').getByText('1', { exact: true }).waitFor();
    const touched = (await page.evaluate('[...window.touched]')) as string[];
    expect(touched).toContain('key:900');
    // Those that came into view above the first are few.
    expect(touched.length).toBeLessThanOrEqual(inView + 20);
    // The contended one went to the top, and no other was moved.
    expect(await page.evaluate('window.added')).toBe(1);
  });
});

/** As WebP, which is less than half of the PNG that Playwright takes: it is a part of the package. */
async function pictureOf(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  return Buffer.from(data, 'base64');
}

/** What the header of an extended WebP file says. */
function sizeOf(webp: Buffer): readonly [width: number, height: number] {
  return [webp.readUIntLE(24, 3) + 1, webp.readUIntLE(27, 3) + 1];
}
