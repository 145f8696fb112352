import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AxeResults } from 'axe-core';
import express from 'express';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { installMs, launchBrowser } from '../support/http/browser.ts';

// A browser opens some hundred pages.
jest.setTimeout(600_000);
const root = join(__dirname, '../..');
const site = join(root, 'website/dist');
const phone = { width: 390, height: 844 };
const desk = { width: 1440, height: 900 };

let browser: Browser;
let server: Server;
let address: string;
let paths: string[];

/** Opens pages of the site, and says what is wrong on each. */
async function faultsOf(paths: readonly string[], options: BrowserContextOptions, look: Look): Promise<string[]> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  const complain = (fault: string) => void faults.push(`${new URL(page.url()).pathname}: ${fault}`);
  page.on('console', (message) => {
    if (message.type() === 'error') complain(message.text());
  });
  page.on('pageerror', (error) => complain(String(error)));
  for (const path of paths) {
    await page.goto(`${address}/${path}`);
    for (const fault of await look(page)) complain(fault);
  }
  await context.close();
  return faults;
}

type Look = (page: Page) => Promise<string[]>;

const lookAtSize: Look = async (page) =>
  (await page.evaluate(`(() => {
    const { clientWidth, scrollWidth, scrollHeight } = document.documentElement;
    const wide = [...document.querySelectorAll('.vp-doc table')].filter((table) => table.scrollWidth > table.clientWidth);
    return [
      ...(scrollWidth > clientWidth ? [scrollWidth + ' px wide'] : []),
      ...(scrollHeight > 15_000 ? [scrollHeight + ' px high'] : []),
      ...wide.map((table) => 'a table of ' + table.scrollWidth + ' px'),
    ];
  })()`)) as string[];

describe('The built site in a browser', () => {
  beforeAll(async () => {
    await promisify(execFile)('npm', ['run', 'docs'], { cwd: root });
    browser = await launchBrowser();
    server = express()
      .use(express.static(site, { extensions: ['html'] }))
      .listen(0, '127.0.0.1');
    await once(server, 'listening');
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const files = readdirSync(site, { recursive: true, encoding: 'utf8' });
    const pages = files.filter((file) => file.endsWith('.html')).map((file) => file.replace(/(index)?\.html$/, ''));
    // Of the reference of the API, whose pages are alike, the lists and the longest.
    const isAlike = (path: string) =>
      /^reference\/api\/.*\w$/.test(path) && !/\/(TestLocks|LockEvents|LockStore)$/.test(path);
    paths = pages.filter((path) => !isAlike(path));
  }, installMs);
  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  it.each([
    ['a phone', phone],
    ['a desk', desk],
  ])('No page or table is too wide or long for %s, and no page logs an error', async (_, viewport) => {
    expect(paths.length).toBeGreaterThan(50);
    expect(await faultsOf(paths, { viewport }, lookAtSize)).toEqual([]);
  });

  it.each(['light', 'dark'] as const)('Text and code have enough contrast, in the %s', async (colorScheme) => {
    const axe = readFileSync(createRequire(__filename).resolve('axe-core/axe.min.js'), 'utf8');
    const pages = [
      '',
      'start/quick-start',
      'stores/choose',
      'reference/errors',
      'reference/api/reenlock/interfaces/Lock',
    ];
    const look: Look = async (page) => {
      await page.evaluate(axe);
      const { violations } = (await page.evaluate("axe.run({ runOnly: 'color-contrast' })")) as AxeResults;
      return violations.flatMap(({ nodes }) => nodes.map(({ html }) => html));
    };
    expect(await faultsOf(pages, { viewport: desk, colorScheme }, look)).toEqual([]);
  });

  it.each(['Express', 'Koa', 'Fastify', 'Hono', 'Nest'])(
    'The tab of %s on the first page shows its code',
    async (name) => {
      const look: Look = async (page) => {
        await page.locator('.vp-code-group label').getByText(name, { exact: true }).click();
        const code = await page.locator('.vp-code-group .active code').textContent();
        return code?.includes(`reenlock/${name.toLowerCase()}`) ? [] : [`${code}`];
      };
      expect(await faultsOf([''], { viewport: desk }, look)).toEqual([]);
    },
  );
});
